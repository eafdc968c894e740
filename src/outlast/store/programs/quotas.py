"""Quotas: how many open jobs of a kind an owner may have, decided in the admission's own transaction.

One row for each owner and kind is locked before anything else, in key order, so that of several admissions each counts what the one
before it has committed. The new jobs are counted after they were admitted: by then it is known which of them were new, which were
there already, and which took the place of another. Too many of them roll the transaction back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from outlast.domain.errors import Invalid, QuotaExceeded
from outlast.domain.work import Admission
from outlast.store.program import Program, Statement

Place: TypeAlias = tuple[str, str, str]
"""Tenant, owner and kind: what a quota is counted for."""


def hold(jobs: Sequence[Admission]) -> Program[None]:
    """Locks the quotas of these jobs to the end of the transaction. Under a new one the jobs that are open already count too."""
    for tenant, owner, kind in sorted({_place(job) for job in jobs if job.quota is not None}):
        place = {"tenant": tenant, "owner": owner, "kind": kind}
        held = yield Statement("hold_quota", place)
        if not held[0][0]:
            yield Statement("take_open_jobs", place)
            yield Statement("quota_counted", place)


def take(jobs: Sequence[Admission]) -> Program[None]:
    """Room for jobs that were admitted in this transaction, their quotas held; QuotaExceeded if there is none.

    Invalid if they are more than the quota by themselves: no end of another job makes room for them.
    """
    wanted: dict[Place, list[Admission]] = {}
    for job in jobs:
        if job.quota is not None:
            wanted.setdefault(_place(job), []).append(job)
    for (tenant, owner, kind), new in sorted(wanted.items()):
        place = {"tenant": tenant, "owner": owner, "kind": kind}
        yield Statement("take_quota", {"tenant": tenant, "owner": owner, "ids": json.dumps([job.job_id for job in new])})
        quota = min(job.quota for job in new if job.quota is not None)
        if len(new) > quota:
            raise Invalid(
                f"These are {len(new)} new jobs of the kind {kind!r}, and one owner may have {quota} unfinished at a time, so they "
                "can never be admitted together. Nothing was written; submit fewer in one call.",
            )
        if (yield Statement("quota_used", place))[0][0] <= quota:
            continue
        if (yield Statement("quota_open", place))[0][0] > quota:
            raise QuotaExceeded(
                f"One owner may have {quota} unfinished {'job' if quota == 1 else 'jobs'} of the kind {kind!r} at a time. "
                "Nothing was written; try again when one has ended, or cancel one.",
                kind=kind,
            )
        yield Statement("free_quota", place)


def room(job: Admission) -> Program[int]:
    """How many more jobs like this one may be open; their quota is held. Less than 0 where it was lowered."""
    tenant, owner, kind = _place(job)
    rows = yield Statement("quota_open", {"tenant": tenant, "owner": owner, "kind": kind})
    return (job.quota or 0) - int(rows[0][0])


def _place(job: Admission) -> Place:
    return job.tenant, job.owner, job.kind
