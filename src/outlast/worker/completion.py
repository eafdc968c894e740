"""What a handler returns in place of a plain value: a completion that is already known to the attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from outlast.domain.errors import Invalid
from outlast.worker.attempt_state import AttemptState

Out_co = TypeVar("Out_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Saving:
    """A function that writes the host's rows, with its arguments behind the session."""

    save: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attaching:
    """A value that goes to the job's target."""

    value: Any


@dataclass(frozen=True, slots=True)
class Within:
    """The block of `ctx.transaction()` commits it; void if it did not."""


class Completion(Generic[Out_co]):
    """What `ctx.complete` and `ctx.commit` make, for a handler to return.

    Made and not returned: permanent failure `completion_dropped`, nothing written. So is one of `tx.complete` whose block was rolled back.
    """

    def __init__(self, value: Out_co, state: AttemptState, save: Saving | Attaching | Within | None = None) -> None:
        self._value = value
        self._state = state
        self.save = save

    def at(self, ref: str) -> Completion[Out_co]:
        """The same; names the resource shown in the task list and as `usable_ref`."""
        self._state.name_resource(ref)
        return self

    if not TYPE_CHECKING:  # a checker refuses to await it by itself

        def __await__(self) -> NoReturn:
            """Invalid: it is returned, and committed after the handler has returned it."""
            raise Invalid(
                "What ctx.commit, ctx.attach and ctx.complete give is returned as it is, not awaited: return ctx.commit(fn).",
                code="completion_awaited",
            )

    @property
    def value(self) -> Out_co:
        """What is stored as the task's output."""
        return self._value
