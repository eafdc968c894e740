"""Taking, holding and letting go of tasks (T4, T5, T6, T8, T12, T13). None of these locks or writes a job, but `fail` without budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outlast.domain.work import Claimed, Renewal, Settled, TaskRef, Verdict, Woken
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.claimed import claimed_of
from outlast.store.programs.verdicts import attempt_code, entry_of, holds, key_of, refused, released


@operation(Access.STATEMENT)
def wake(limit: int) -> Program[Woken]:
    """Makes runnable what has fallen due (T4)."""
    rows = yield Statement("wake", {"limit": limit})
    if rows:
        return Woken(len(rows), tuple(sorted({str(r[0]) for r in rows})), 0)
    due = yield Statement("next_due", {})
    return Woken(0, (), int(due[0][0]) if due else None)


@operation(Access.READ)
def ready_queues() -> Program[frozenset[str]]:
    """The queues in which something is runnable or held."""
    rows = yield Statement("ready_queues", {})
    return frozenset(str(row[0]) for row in rows)


@operation(Access.STATEMENT, repeatable=False)
def claim(queue: str, handlers: Sequence[str], limit: int, holder: str, lease_ms: int) -> Program[list[Claimed]]:
    """Claims up to `limit` runnable tasks of a queue that have no key and a handler that is known (T5). `holder` is new for each statement.

    After a commit of unknown outcome it is not repeated: `claimed_by` reads what this holder got.
    """
    rows = yield Statement("claim", {"queue": queue, "handlers": list(handlers), "limit": limit, "holder": holder, "lease_ms": lease_ms})
    return [claimed_of(row, holder) for row in rows]


@operation(Access.READ)
def claimed_by(queue: str, holder: str) -> Program[list[Claimed]]:
    """What a claim statement of unknown outcome took."""
    rows = yield Statement("claimed_rows", {"queue": queue, "holder": holder})
    return [claimed_of(row, holder) for row in rows]


@operation(Access.STATEMENT, urgent=True)
def renew(renewals: Sequence[Renewal], lease_ms: int) -> Program[list[Verdict]]:
    """Prolongs leases, never past an attempt's deadline; progress rides along (T6)."""
    batch = sorted(renewals, key=lambda r: (r.ref.tenant, r.ref.job_id, r.ref.no))
    params = _refs([r.ref for r in batch])
    rows = yield Statement("renew", {**params, "progress": [r.progress for r in batch], "lease_ms": lease_ms})
    renewed = {(row[0], row[1], row[2], row[3]) for row in rows}
    verdicts: list[Verdict] = []
    for renewal in renewals:
        ref = renewal.ref
        if (ref.tenant, ref.job_id, ref.no, ref.fence) in renewed:
            verdicts.append(Verdict.ACCEPTED)
            continue
        entry = yield from entry_of(ref)
        verdicts.append(Verdict.BUSY if holds(entry, ref) else (yield from refused(ref, entry)))
    return verdicts


@operation(Access.STATEMENT)
def snooze(ref: TaskRef, delay_ms: int) -> Program[Settled]:
    """Lets go of a task until later; no attempt is used (T12)."""
    return (yield from _release(ref, delay_ms))


@operation(Access.STATEMENT)
def hand_back(refs: Sequence[TaskRef]) -> Program[list[Settled]]:
    """Lets go of tasks at once, for other workers; no attempt is used (T13)."""
    held = sorted(refs, key=lambda r: (r.tenant, r.job_id, r.no))
    rows = yield Statement("hand_back", _refs(held))
    released_now = {(row[0], row[1], row[2], row[3]) for row in rows}
    settled: list[Settled] = []
    for ref in refs:
        if (ref.tenant, ref.job_id, ref.no, ref.fence) in released_now:
            settled.append(Settled(Verdict.ACCEPTED, opened=1))
        else:
            settled.append((yield from _release(ref, None)))
    return settled


def _release(ref: TaskRef, delay_ms: int | None) -> Program[Settled]:
    rows = yield Statement("release", {**key_of(ref), "delay_ms": delay_ms})
    if rows:
        return Settled(Verdict.ACCEPTED, opened=int(delay_ms is None), retry_in_ms=delay_ms)
    entry = yield from entry_of(ref)
    if released(ref, entry) and (yield from attempt_code(ref)) is None:
        return Settled(Verdict.ACCEPTED, retry_in_ms=delay_ms)
    return Settled((yield from refused(ref, entry)))


def _refs(refs: Sequence[TaskRef]) -> Mapping[str, list[Any]]:
    return {
        "tenants": [r.tenant for r in refs],
        "ids": [r.job_id for r in refs],
        "nos": [r.no for r in refs],
        "fences": [r.fence for r in refs],
        "holders": [r.holder for r in refs],
    }
