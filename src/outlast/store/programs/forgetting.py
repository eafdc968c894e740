"""The deletion of everything that is one person's, on request: jobs, open ones too, and what is left of those that were purged."""

from __future__ import annotations

import json
from collections.abc import Sequence

from outlast.domain.ids import HIGHEST
from outlast.domain.states import FINAL_JOBS
from outlast.domain.work import Erased
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.control import end_job
from outlast.store.programs.retention import delete


@operation(Access.STATEMENT)
def record(audit_id: str, *, tenant: str, actor: str, subject: str, reason: str) -> Program[None]:
    """The request on record, before anything is done about it. A repeat changes nothing."""
    yield Statement(
        "record_audit", {"id": audit_id, "tenant": tenant, "actor": actor, "action": "forget", "subject": subject, "reason": reason}
    )


@operation(Access.READ)
def owned(tenant: str, owner: str, before: str | None, limit: int) -> Program[list[str]]:
    """A stretch of a person's jobs, the newest first."""
    rows = yield Statement("jobs_of_person", {"tenant": tenant, "owner": owner, "before": before or HIGHEST, "limit": limit})
    return [str(row[0]) for row in rows]


@operation(Access.TRANSACTION)
def erase(tenant: str, owner: str, ids: Sequence[str], *, audit_id: str, actor: str) -> Program[Erased]:
    """Cancels those of a person's jobs that are open, and deletes all of which nobody holds a task, with their keys.

    What is held is cancelled and stands until its holder has stopped or its lease has ended; then another call deletes it.
    """
    place = {"tenant": tenant, "ids": json.dumps(sorted(ids))}
    locked = yield Statement("lock_jobs_of_person", {**place, "owner": owner})
    live = [str(row[0]) for row in locked if row[1] not in FINAL_JOBS]
    for job_id in live:
        yield from end_job(tenant, job_id, outcome="user", actor=actor, retention_ms=0)
    held = {str(row[0]) for row in (yield Statement("jobs_held", place))} if locked else set[str]()
    gone = [str(row[0]) for row in locked if str(row[0]) not in held]
    if gone:
        yield Statement("drop_submissions", {"tenant": tenant, "ids": json.dumps(gone)})
        yield from delete(tenant, gone, (str(row[2]) for row in locked))
        yield Statement("count_audit", {"id": audit_id, "jobs": len(gone)})
    return Erased(len(gone), len(live), len(locked) - len(gone))


@operation(Access.STATEMENT)
def drop_tombstones(tenant: str, owner: str, limit: int) -> Program[int]:
    """Deletes what is left of a person's purged jobs; how many keys."""
    return len((yield Statement("drop_tombstones", {"tenant": tenant, "owner": owner, "limit": limit})))


@operation(Access.STATEMENT)
def drop_quotas(tenant: str, owner: str) -> Program[None]:
    """Deletes what counts a person's open jobs, where none are left."""
    yield Statement("drop_quotas", {"tenant": tenant, "owner": owner})


@operation(Access.READ)
def counted(tenant: str, owner: str) -> Program[tuple[int, int, int, int, int]]:
    """How many jobs a person has, how many of them are open, how many keys stand for jobs that were purged, and how many schedules.

    Last, how many kinds have a count of the person's open jobs, for a quota: it outlives the jobs.
    """
    ((jobs, live, quotas),) = yield Statement("count_jobs_of_person", {"tenant": tenant, "owner": owner})
    ((keys,),) = yield Statement("count_tombstones", {"tenant": tenant, "owner": owner})
    made = yield Statement("schedule_list", {"tenant": tenant, "owner": owner, "name": None})
    return int(jobs), int(live), int(keys), len(made), int(quotas)
