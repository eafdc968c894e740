"""The recovery scan: ended leases, and questions that nobody answered (T14, T16, T19, T20, J7). One job a transaction."""

from __future__ import annotations

from outlast.domain.ids import LOWEST
from outlast.domain.retry import GiveUp, RetryIn
from outlast.domain.work import Failed, LostLease, OpenWindow, Swept, TaskRef
from outlast.store.program import Access, Program, Statement, operation, rows_of
from outlast.store.programs.completion import decision, end_attempt, gave_up
from outlast.store.programs.control import end_job, last_stopped, skip
from outlast.store.programs.graph import JobChange, write
from outlast.store.programs.slots import free
from outlast.store.programs.verdicts import EntryRow, entry_of

SWEEPER = "sweep"


@operation(Access.READ)
def ended_leases(after: LostLease | None, limit: int) -> Program[list[LostLease]]:
    """Entries whose lease has ended, in key order, after a given one."""
    start = (
        {"tenant": "", "job_id": LOWEST, "no": -1} if after is None else {"tenant": after.tenant, "job_id": after.job_id, "no": after.no}
    )

    rows = yield Statement("ended_leases", {**start, "limit": limit})
    return [LostLease(tenant, job_id, no, fence, bool(revoked), found) for tenant, job_id, no, fence, revoked, found in rows]


@operation(Access.READ)
def windows_over(after: OpenWindow | None, limit: int) -> Program[list[OpenWindow]]:
    """Open questions whose window is over, in key order, after a given one."""
    start = (
        {"tenant": "", "job_id": LOWEST, "id": ""} if after is None else {"tenant": after.tenant, "job_id": after.job_id, "id": after.id}
    )
    return (yield from rows_of(Statement("windows_over", {**start, "limit": limit}), OpenWindow))


@operation(Access.READ)
def lost(candidate: LostLease, jitter: float) -> Program[RetryIn | GiveUp | None]:
    """What the loss leads to, decided on what the store holds now; None: it has moved on."""
    entry = yield from entry_of(_ref(candidate, None))
    if not _still_lost(entry, candidate) or entry is None:
        return None
    return decision(entry, jitter, permanent=False, retry_after_ms=None)


@operation(Access.STATEMENT)
def retry_lost(candidate: LostLease, delay_ms: int) -> Program[Swept]:
    """T14 with budget left: the fence that was read, guarded again in the write."""
    entry = yield from entry_of(_ref(candidate, None))
    if not _still_lost(entry, candidate) or entry is None:
        return Swept.PASSED
    rows = yield Statement(
        "retry_lost",
        {
            "tenant": candidate.tenant,
            "job_id": candidate.job_id,
            "no": candidate.no,
            "fence": candidate.fence,
            "delay_ms": delay_ms,
            "code": loss_code(entry),
            "worker": worker_of(entry.holder),
            "detail": None,
        },
    )
    return Swept.RETRIED if rows else Swept.PASSED


@operation(Access.TRANSACTION)
def give_up_lost(candidate: LostLease, *, window_ms: int, retention_ms: int) -> Program[Swept]:
    """T14 without budget: as T9 or T10. The job row is taken by SKIP LOCKED; who has it now is followed by the next sweep."""
    locked = yield Statement("lock_job_skip", {"tenant": candidate.tenant, "job_id": candidate.job_id})
    entry = yield from entry_of(_ref(candidate, None))
    if not locked or not _still_lost(entry, candidate) or entry is None:
        return Swept.PASSED
    ref = _ref(candidate, entry.holder)
    failure = Failed(ref, worker_of(entry.holder), loss_code(entry), _LOSS_WORDS[loss_code(entry)])
    ending = gave_up(failure, required=bool(entry.required))
    settled = yield from end_attempt(ref, ending, window_ms=window_ms, retention_ms=retention_ms, lost=True)
    return Swept.GAVE_UP if settled.gave_up else Swept.PASSED


@operation(Access.TRANSACTION)
def stop_lost(candidate: LostLease) -> Program[Swept]:
    """T16 for a holder that went away after the cancel."""
    place = {"tenant": candidate.tenant, "job_id": candidate.job_id}
    locked = yield Statement("lock_job_skip", place)
    if not locked:
        return Swept.PASSED
    gone = yield Statement("stop_lost_entry", {**place, "no": candidate.no, "fence": candidate.fence})
    if not gone:
        return Swept.PASSED
    yield from free(gone[0][1], candidate.tenant, candidate.job_id, candidate.no, candidate.fence)
    yield from last_stopped(candidate.tenant, candidate.job_id)
    return Swept.STOPPED


@operation(Access.TRANSACTION)
def close_window(candidate: OpenWindow, *, retention_ms: int) -> Program[Swept]:
    """A question that nobody answered in its window: optional work is skipped, a job that needs it is abandoned (T19, J7)."""
    place = {"tenant": candidate.tenant, "job_id": candidate.job_id}
    locked = yield Statement("lock_job_skip", place)
    if not locked:
        return Swept.PASSED
    still = yield Statement("window_of", {**place, "id": candidate.id})
    if not still:
        return Swept.PASSED
    no, required = still[0]
    if required:
        yield from end_job(candidate.tenant, candidate.job_id, outcome="abandoned", actor=SWEEPER, retention_ms=retention_ms)
        return Swept.ABANDONED
    resolution = {**place, "id": candidate.id, "action": "skip", "actor": SWEEPER, "request_hash": None}
    yield Statement("resolve_attention", resolution)
    job = JobChange(candidate.tenant, candidate.job_id)
    yield from skip(job, no)
    yield from write(job, retention_ms=retention_ms)
    return Swept.SKIPPED


_LOSS_WORDS = {
    "worker_lost": "The worker that ran this went away.",
    "deadline_exceeded": "This took longer than an attempt may.",
}


def loss_code(entry: EntryRow) -> str:
    """Why the lease ended: the attempt's deadline, or nobody renewed it."""
    if entry.deadline_at_ms is not None and entry.deadline_at_ms <= entry.now_ms:
        return "deadline_exceeded"
    return "worker_lost"


def worker_of(holder: str | None) -> str:
    """The worker's id in a holder, which is that id and the number of the claim statement."""
    return (holder or "").rpartition(":")[0]


def _still_lost(entry: EntryRow | None, candidate: LostLease) -> bool:
    return entry is not None and entry.fence == candidate.fence and entry.holder is not None and not entry.leased and not entry.revoked


def _ref(candidate: LostLease, holder: str | None) -> TaskRef:
    return TaskRef(candidate.tenant, candidate.job_id, candidate.no, candidate.fence, holder or "")
