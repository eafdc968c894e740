"""What ends an attempt: finish, fail, ask (T7 to T11, J2, J3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outlast.domain.retry import GiveUp, RetryIn, decide
from outlast.domain.states import StoredTask
from outlast.domain.work import Asked, Failed, Finished, Settled, TaskRef, Verdict
from outlast.store.program import Access, Program, Statement, operation, row_of
from outlast.store.programs.graph import JobChange, settle_children, write
from outlast.store.programs.slots import free
from outlast.store.programs.verdicts import EntryRow, ended, entry_of, holds, key_of, place_of, refused


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task's attempt ends for good: the task's new state, and the question to the owner where there is one."""

    state: StoredTask
    code: str
    message: str
    actions: tuple[str, ...]
    detail: str | None
    worker: str
    consumed: bool
    effect: tuple[str, str] | None = None
    input_schema: str | None = None
    pause_ms: int | None = None


@operation(Access.STATEMENT)
def finish(results: Sequence[Finished], retention_ms: int) -> Program[list[Settled]]:
    """Stores results and completes their tasks; what depends on them becomes runnable, the jobs move on (T7).

    Each is accepted only from the holder of the current fence, before its lease ended, and not after a cancel.
    """
    rows = yield _finish(results, retention_ms)
    accepted = {(row[0], row[1], row[2]): int(row[3]) for row in rows}
    settled: list[Settled] = []
    for result in results:
        ref = result.ref
        opened = accepted.get((ref.tenant, ref.job_id, ref.no))
        if opened is not None:
            settled.append(Settled(Verdict.ACCEPTED, opened=opened))
            continue
        entry = yield from entry_of(ref)
        settled.append(Settled((yield from refused(ref, entry, ended_as=("completed",)))))
    return settled


def _finish(results: Sequence[Finished], retention_ms: int) -> Statement:
    batch = sorted(results, key=lambda r: (r.ref.tenant, r.ref.job_id, r.ref.no))
    return Statement(
        "finish",
        {
            "tenants": [r.ref.tenant for r in batch],
            "ids": [r.ref.job_id for r in batch],
            "nos": [r.ref.no for r in batch],
            "fences": [r.ref.fence for r in batch],
            "holders": [r.ref.holder for r in batch],
            "workers": [r.worker for r in batch],
            "bodies": [r.body for r in batch],
            "refs": [r.resource for r in batch],
            "retention_ms": retention_ms,
        },
    )


def finish_last(result: Finished, retention_ms: int) -> Program[int | None]:
    """`finish` as the last statement of a transaction of the host's; how many tasks it opened, or None: the guard did not hold.

    Whatever the reason, a transaction whose own statement was not accepted has to be rolled back; `verdict` tells it afterwards.
    """
    rows = yield _finish([result], retention_ms)
    return int(rows[0][3]) if rows else None


@operation(Access.READ)
def verdict(ref: TaskRef) -> Program[Verdict | None]:
    """What became of a claim whose transaction's end is unknown, or whose guard did not hold; None: it still holds its task."""
    entry = yield from entry_of(ref)
    if holds(entry, ref):
        return None
    return (yield from refused(ref, entry, ended_as=("completed",)))


@operation(Access.STATEMENT)
def retry(failure: Failed, delay_ms: int) -> Program[Settled]:
    """A transient failure with budget left: the entry waits, an attempt is used (T8)."""
    ref = failure.ref
    rows = yield Statement(
        "retry",
        {
            **key_of(ref),
            "delay_ms": delay_ms,
            "pause_ms": failure.pause_ms,
            "code": failure.code,
            "worker": failure.worker,
            "detail": failure.detail,
        },
    )
    if rows:
        return Settled(Verdict.ACCEPTED, retry_in_ms=delay_ms)
    entry = yield from entry_of(ref)
    verdict = yield from ended(ref, entry, failure.code)
    return Settled(verdict, retry_in_ms=delay_ms if verdict is Verdict.ACCEPTED else None)


@operation(Access.READ)
def budget(failure: Failed, jitter: float) -> Program[RetryIn | GiveUp | Verdict]:
    """What a failure leads to, decided on the entry, the policy in the row and the store's clock; a verdict if it is not ours any more."""
    ref = failure.ref
    entry = yield from entry_of(ref)
    if entry is not None and holds(entry, ref):
        return decision(entry, jitter, permanent=failure.permanent, retry_after_ms=failure.retry_after_ms)
    return (yield from ended(ref, entry, failure.code))


@operation(Access.TRANSACTION)
def give_up(failure: Failed, *, window_ms: int, retention_ms: int) -> Program[Settled]:
    """A permanent failure, or one without budget: required work needs attention, optional work fails (T9, T10)."""
    locked = yield Statement("lock_job", {"tenant": failure.ref.tenant, "job_id": failure.ref.job_id, "owner": None})
    entry = yield from entry_of(failure.ref)
    if not locked or entry is None:
        return Settled((yield from ended(failure.ref, entry, failure.code)))
    return (
        yield from end_attempt(failure.ref, gave_up(failure, required=bool(entry.required)), window_ms=window_ms, retention_ms=retention_ms)
    )


@operation(Access.TRANSACTION)
def ask(question: Asked, *, window_ms: int, retention_ms: int) -> Program[Settled]:
    """The handler asks the owner; no attempt is used (T11)."""
    yield Statement("lock_job", {"tenant": question.ref.tenant, "job_id": question.ref.job_id, "owner": None})
    ending = Ending(
        "needs_attention",
        question.code,
        question.message,
        question.actions,
        question.detail,
        question.worker,
        consumed=False,
        effect=question.effect,
        input_schema=question.input_schema,
    )
    return (yield from end_attempt(question.ref, ending, window_ms=window_ms, retention_ms=retention_ms))


def decision(entry: EntryRow, jitter: float, *, permanent: bool, retry_after_ms: int | None) -> RetryIn | GiveUp:
    """Retry or give up, by the domain's rule on what the store holds."""
    if permanent:
        return GiveUp()
    return decide(
        consumed=True,
        spent=entry.spent,
        max_attempts=entry.max_attempts,
        first_failed_at_ms=entry.first_failed_at_ms,
        now_ms=entry.now_ms,
        base_ms=entry.base_ms,
        cap_ms=entry.cap_ms,
        window_ms=entry.window_ms,
        retry_after_ms=retry_after_ms,
        jitter=jitter,
    )


def gave_up(failure: Failed, *, required: bool) -> Ending:
    """T9 for required work, T10 for optional."""
    return Ending(
        "needs_attention" if required else "failed",
        failure.code,
        failure.message,
        ("retry", "dismiss"),
        failure.detail,
        failure.worker,
        consumed=True,
        pause_ms=failure.pause_ms,
    )


def end_attempt(ref: TaskRef, ending: Ending, *, window_ms: int, retention_ms: int, lost: bool = False) -> Program[Settled]:
    """Deletes the entry under its guard and writes what follows: attempt, question, task, children, job. The job is locked."""
    place = place_of(ref)
    guard = "end_lost_entry" if lost else "end_entry"
    gone = yield from row_of(Statement(guard, key_of(ref)), tuple_of)
    if gone is None:
        entry = yield from entry_of(ref)
        return Settled((yield from ended(ref, entry, ending.code)))
    spent, claimed_at, slot_key = gone
    yield from free(slot_key, ref.tenant, ref.job_id, ref.no, ref.fence, pause_ms=ending.pause_ms)
    rows = yield Statement(
        "end_task",
        {
            **place,
            "state": ending.state,
            "fence": ref.fence,
            "spent": spent + int(ending.consumed),
            "code": ending.code,
            "worker": ending.worker,
            "started_at": claimed_at,
        },
    )
    required = bool(rows[0][0])
    yield Statement(
        "insert_attempt",
        {
            **place,
            "fence": ref.fence,
            "number": spent + 1,
            "worker": ending.worker,
            "started_at": claimed_at,
            "code": ending.code,
            "detail": ending.detail,
        },
    )
    job = JobChange(ref.tenant, ref.job_id)
    job.moved("open", ending.state, required=required)
    if ending.state == "needs_attention":
        offered = [a for a in dict.fromkeys((*ending.actions, "dismiss")) if not (required and a == "skip")]
        yield Statement(
            "raise_attention",
            {
                **place,
                "id": f"{ref.no}.{ref.fence}",
                "code": ending.code,
                "message": ending.message,
                "actions": " ".join(offered),
                "input_schema": ending.input_schema,
                "window_ms": window_ms,
                "effect": ending.effect[0] if ending.effect else None,
                "effect_input": ending.effect[1] if ending.effect else None,
            },
        )
    else:
        yield from settle_children(job, ref.no, ending.state)
    yield from write(job, retention_ms=retention_ms)
    return Settled(Verdict.ACCEPTED, opened=job.opened, gave_up=True)


def tuple_of(spent: int, claimed_at: int | None, slot_key: str | None) -> tuple[int, int | None, str | None]:
    """Attempts consumed before, when the claim was made, and its concurrency key."""
    return spent, claimed_at, slot_key
