"""Retention: jobs that are due are deleted with all that is theirs, and their keys answer until the horizon is over (J11).

A walk over the ids, which are in time order, finds what is due; a purge deletes it, a few jobs of one tenant a transaction. A rerun locks
the job that it repeats, so that a purge passes it by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from outlast.domain.ids import HIGHEST, LOWEST, first_id
from outlast.domain.work import DueJob, Stretch
from outlast.store.program import Access, Program, Statement, operation


@operation(Access.READ)
def due(after: str | None, *, limit: int, kept_ms: int | None = None, older_ms: int | None = None) -> Program[Stretch]:
    """What is due among so many jobs after an id.

    kept_ms: the walk ends at jobs that were asked for less than so long ago, which cannot be due. older_ms: what ended so long ago is
    due whatever its own date says.
    """
    before = HIGHEST
    if kept_ms is not None:
        now = yield Statement("clock", {})
        before = first_id(int(now[0][0]) - kept_ms)
    rows = yield Statement(
        "walk_jobs", {"after": after or LOWEST, "before": before, "limit": limit, "older_ms": None if older_ms is None else -older_ms}
    )
    found = tuple(DueJob(tenant, job_id, total, finished_at) for tenant, job_id, total, finished_at, is_due, _ in rows if is_due)
    return Stretch(found, rows[-1][1] if rows and int(rows[-1][5]) == limit else None)


@operation(Access.TRANSACTION)
def purge(tenant: str, ids: Sequence[str], *, horizon_ms: int, older_ms: int | None = None) -> Program[list[str]]:
    """Deletes those of a tenant's jobs that are due, with all that is theirs; their ids. What somebody else has just now is passed by."""
    older = None if older_ms is None else -older_ms
    locked = yield Statement("lock_due", {"tenant": tenant, "ids": json.dumps(sorted(ids)), "older_ms": older})
    if not locked:
        return []
    gone = [str(row[0]) for row in locked]
    yield Statement("bury_submissions", {"tenant": tenant, "ids": json.dumps(gone), "horizon_ms": horizon_ms})
    yield from delete(tenant, gone, (str(row[1]) for row in locked))
    return gone


@operation(Access.STATEMENT)
def drop_expired(limit: int) -> Program[int]:
    """Deletes keys whose horizon is over; how many."""
    return len((yield Statement("drop_expired", {"limit": limit})))


@operation(Access.READ)
def expired() -> Program[int]:
    """How many keys there are whose horizon is over."""
    rows = yield Statement("expired_count", {})
    return int(rows[0][0])


def delete(tenant: str, ids: Sequence[str], roots: Iterable[str]) -> Program[None]:
    """Deletes jobs that are locked, with all that is theirs but their submissions; effects only with the last job of their root."""
    yield Statement("delete_jobs", {"tenant": tenant, "ids": json.dumps(list(ids))})
    effects = {"tenant": tenant, "roots": json.dumps(sorted(set(roots)))}
    if (yield Statement("lock_effects", effects)):
        yield Statement("delete_effects", effects)
