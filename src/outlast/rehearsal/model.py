"""The input of the kind `rehearsal`, schema version 1."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from outlast.domain.limits import MAX_LIMIT, MAX_LIMIT_KEY

Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Times = Annotated[int, Meta(ge=0, le=1_000_000)]
Code = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class Fail(Struct, frozen=True, kw_only=True):
    """A failure in the first `times` claims. retry_after: what a provider's Retry-After would say; transient ones only."""

    times: Times = 1
    kind: Literal["transient", "permanent"] = "transient"
    code: Code = "rehearsed"
    retry_after: Seconds | None = None


class Question(Struct, frozen=True, kw_only=True):
    """A question to the owner in the first claim. `dismiss` is always offered."""

    code: Code = "needs_choice"
    actions: Annotated[tuple[Literal["retry", "answer", "skip"], ...], Meta(max_length=3)] = ("retry",)


class Effect(Struct, frozen=True, kw_only=True):
    """One call to the fake provider through the effect ledger."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    mode: Literal["idempotent", "reconcile", "neither"] = "idempotent"


class Part(Struct, frozen=True, kw_only=True):
    """One task of the rehearsal, and how it misbehaves."""

    label: str
    after: tuple[str, ...] = ()
    queue: str = "default"
    seconds: Seconds = 0.0
    block_seconds: Seconds = 0.0
    sync: bool = False
    optional: bool = False
    usable: bool = False
    steps: Annotated[int, Meta(ge=0, le=10_000)] = 0
    fail: Fail | None = None
    crash_times: Times = 0
    ignore_cancel: bool = False
    ask: Question | None = None
    raises: str | None = field(default=None, name="raise")
    attach: str | None = None
    key: Annotated[str, Meta(min_length=1, max_length=MAX_LIMIT_KEY)] | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] | None = None
    deadline: Annotated[float, Meta(ge=0.001, le=864_000)] = 600.0
    effect: Effect | None = None
    output_bytes: Annotated[int, Meta(ge=0, le=67_108_864)] = 0


class Rehearsal(Struct, frozen=True, kw_only=True):
    """The tasks of a job, in the order in which they are listed unless `after` wants another. `note` is kept and not interpreted."""

    tasks: Annotated[tuple[Part, ...], Meta(min_length=1)]
    max_attempts: Annotated[int, Meta(ge=1, le=1_000_000)] = 3
    retry_base: Seconds = 0.2
    note: Any = None


class Report(Struct, frozen=True, kw_only=True):
    """A task's output: which claim made it, the owner's answer if it asked for one, the id of its effect, and data."""

    label: str
    attempt: int
    fence: int
    answer: Any = None
    effect: str | None = None
    data: str = ""
