"""Attach, park, takeover (J8): a result reaches what its owner may be editing, or is kept for them. The host's own write comes first."""

from __future__ import annotations

from dataclasses import dataclass

from outlast.domain.access import Scope
from outlast.domain.work import Control, Finished, Settled, TaskRef, Verdict
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.completion import finish_last
from outlast.store.programs.verdicts import entry_of, refused


class TargetMoved(Exception):
    """The target is not at the version that the job last saw, or its owner has taken over: the transaction is rolled back."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A job's target: its reference, the version that the job last saw, and whether the owner has taken over."""

    ref: str | None
    version: str | None
    taken_over: bool


@operation(Access.READ)
def target_of(ref: TaskRef) -> Program[TargetRow]:
    """The target of a task's job, before its transaction begins."""
    rows = yield Statement("target_of", {"tenant": ref.tenant, "job_id": ref.job_id})
    return TargetRow(rows[0][0], rows[0][1], bool(rows[0][2])) if rows else TargetRow(None, None, taken_over=False)


def attach_last(result: Finished, *, expected: str, version: str, retention_ms: int) -> Program[int | None]:
    """`finish_last`, behind the job's guard on its target: TargetMoved if another attach or a takeover came first."""
    place = {"tenant": result.ref.tenant, "job_id": result.ref.job_id}
    rows = yield Statement("attach_target", {**place, "expected": expected, "version": version})
    opened = yield from finish_last(result, retention_ms)
    if opened is not None and not rows:
        raise TargetMoved
    return opened


@operation(Access.TRANSACTION)
def park(result: Finished, retention_ms: int) -> Program[Settled]:
    """The task completes, and its result is kept for its owner to apply."""
    opened = yield from finish_last(result, retention_ms)
    if opened is not None:
        yield Statement("park_output", {"tenant": result.ref.tenant, "job_id": result.ref.job_id, "no": result.ref.no})
        return Settled(Verdict.ACCEPTED, opened=opened)
    entry = yield from entry_of(result.ref)
    return Settled((yield from refused(result.ref, entry, ended_as=("completed",))))


@operation(Access.TRANSACTION)
def takeover(scope: Scope, job_id: str, *, version: int | None) -> Program[Control]:
    """From its commit on nothing is attached by itself. Also when the job is final."""
    locked = yield Statement("lock_job", {"tenant": scope.tenant, "job_id": job_id, "owner": scope.owner})
    if not locked:
        return Control.NOT_FOUND
    ref, _, taken = (yield Statement("target_of", {"tenant": scope.tenant, "job_id": job_id}))[0]
    if taken:
        return Control.REPEATED
    if ref is None:
        return Control.NO_TARGET
    if version is not None and version != int(locked[0][1]):
        return Control.STALE_VERSION
    yield Statement("take_over", {"tenant": scope.tenant, "job_id": job_id})
    return Control.DONE


@operation(Access.READ)
def parked(tenant: str, owner: str, job_id: str, no: int) -> Program[tuple[str, str] | None]:
    """A parked result and the handler that made it, for its owner."""
    rows = yield Statement("parked_output", {"tenant": tenant, "owner": owner, "job_id": job_id, "no": no})
    return (str(rows[0][0]), str(rows[0][1])) if rows else None


@operation(Access.READ)
def nothing_parked(tenant: str, owner: str, job_id: str, no: int) -> Program[bool | None]:
    """True if no result of this task waits for its owner; None if one does."""
    rows = yield Statement("parked_output", {"tenant": tenant, "owner": owner, "job_id": job_id, "no": no})
    return None if rows else True


def apply_last(tenant: str, owner: str, job_id: str, no: int, *, version: str) -> Program[int | None]:
    """The last statements of the owner's own attach: the result is parked no more, and the job knows the target's new version."""
    place = {"tenant": tenant, "job_id": job_id}
    locked = yield Statement("lock_job", {**place, "owner": owner})
    if not locked or not (yield Statement("unpark_output", {**place, "no": no})):
        return None
    rows = yield Statement("attached_by_owner", {**place, "version": version})
    return int(rows[0][0])
