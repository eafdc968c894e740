"""Rerun of a final job: a new job that names the old one (J10)."""

from __future__ import annotations

from outlast.domain.access import Scope
from outlast.domain.states import FINAL_JOBS
from outlast.domain.work import Admission, Admitted, KeyTaken
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.admission import admit


@operation(Access.TRANSACTION)
def admit_rerun(scope: Scope, job: Admission) -> Program[Admitted | KeyTaken | None]:
    """Admits the new job while the old one is locked, so that a purge passes that by; None if it is gone or not final."""
    params = {"tenant": scope.tenant, "job_id": job.rerun_of, "owner": scope.owner}
    locked = yield Statement("lock_job", params)
    if not locked or locked[0][0] not in FINAL_JOBS:
        return None
    (result,) = yield from admit([job]).start()
    return result
