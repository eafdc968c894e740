"""What one attempt of a rehearsed task does, in order, once for both colours: a generator of the things that take time."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from outlast.domain.failures import Permanent, Retry
from outlast.rehearsal import ledger
from outlast.rehearsal.faults import die, exception_named
from outlast.rehearsal.model import Effect, Part, Question, Report
from outlast.worker.context import Context, SyncContext

SLICE = 0.05
"""Seconds between two looks at whether the attempt still has its authority."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The owner's answer is wanted."""

    question: Question


@dataclass(frozen=True, slots=True)
class Blocking:
    """The thread stands still."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Working:
    """Time passes, in slices."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stepping:
    """A checkpointed step."""

    no: int


@dataclass(frozen=True, slots=True)
class Calling:
    """A call to the fake provider, through the effect ledger."""

    effect: Effect


Doing: TypeAlias = Asking | Blocking | Working | Stepping | Calling
Performance: TypeAlias = Generator[Doing, Any, Report]


def perform(part: Part, ctx: Context | SyncContext) -> Performance:
    """The attempt. What is yielded is done by the driver of the colour; an Asking is sent the owner's answer, a Calling the effect's id."""
    note("start", ctx)
    answer = (yield Asking(part.ask)) if part.ask is not None else None
    if part.block_seconds:
        yield Blocking(part.block_seconds)
    if part.steps:
        for no in range(1, part.steps + 1):
            ctx.progress(f"step {no} of {part.steps}")
            yield Stepping(no)
    elif part.seconds:
        yield Working(part.seconds)
    effect = (yield Calling(part.effect)) if part.effect is not None else None
    if ctx.fence <= part.crash_times:
        die()
    if part.raises is not None:
        raise exception_named(part.raises)
    if part.fail is not None and ctx.fence <= part.fail.times:
        if part.fail.kind == "permanent":
            raise Permanent(part.fail.code, "This failure was asked for.")
        raise Retry(part.fail.code, "This failure was asked for.", after=part.fail.retry_after)
    made = Report(label=part.label, attempt=ctx.attempt, fence=ctx.fence, answer=answer, effect=effect, data="x" * part.output_bytes)
    note("end", ctx)
    return made


def note(event: ledger.Happening, ctx: Context | SyncContext, *, step: int | None = None) -> None:
    """A line of the ledger."""
    ledger.write(event, job=ctx.job_id, label=ctx.label, attempt=ctx.attempt, fence=ctx.fence, step=step)
