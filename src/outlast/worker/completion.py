"""What a handler returns in place of a plain value: a completion that is already known to the attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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


class Completion(Generic[Out_co]):
    """What `ctx.complete` and `ctx.commit` make, for a handler to return.

    Made and not returned: permanent failure `completion_dropped`, nothing written.
    """

    def __init__(self, value: Out_co, state: AttemptState, save: Saving | Attaching | None = None) -> None:
        self._value = value
        self._state = state
        self.save = save

    def at(self, ref: str) -> Completion[Out_co]:
        """The same; names the resource shown in the task list and as `usable_ref`."""
        self._state.name_resource(ref)
        return self

    @property
    def value(self) -> Out_co:
        """What is stored as the task's output."""
        return self._value
