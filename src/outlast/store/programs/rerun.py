"""Rerun of a final job: a new job that names the old one (J10)."""

from __future__ import annotations

from outlast.domain.access import Scope
from outlast.domain.states import FINAL_JOBS
from outlast.domain.work import ActiveTaken, Admission, Admitted, KeyTaken
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs import quotas
from outlast.store.programs.admission import each


@operation(Access.TRANSACTION)
def admit_rerun(scope: Scope, job: Admission) -> Program[Admitted | KeyTaken | ActiveTaken | None]:
    """Admits the new job while the old one is locked, so that a purge passes that by; None if it is gone or not final.

    A rerun counts as any other job: QuotaExceeded, nothing written, where there is no room for it.
    """
    yield from quotas.hold([job])
    params = {"tenant": scope.tenant, "job_id": job.rerun_of, "owner": scope.owner}
    locked = yield Statement("lock_job", params)
    if not locked or locked[0][0] not in FINAL_JOBS:
        return None
    (result,) = yield from each([job])
    return result
