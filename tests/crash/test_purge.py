"""A worker is killed in the middle of a purge: the next one finds all of a job or nothing of it (I1)."""

from __future__ import annotations

import pytest

from crash.apps import Nothing, brief, keep
from crash.stage import OWNER, Stage, client, until
from invariants import check, query
from outlast import Expired

TABLES = (
    *("job", "job_input", "task", "queue_entry", "edge", "output", "attempt", "step", "attention", "submission", "effect", "slot"),
    *("quota", "quota_job"),
)


def rows(stage: Stage) -> dict[str, int]:
    return {table: count for table in TABLES if (count := query(stage.url, f"select count(*) as n from {{{table}}}")[0]["n"])}


def test_a_purge_that_is_killed_leaves_nothing_half(stage: Stage) -> None:
    jobs = client(stage.url, brief, stage.store)
    made = [jobs.submit(keep, Nothing(), owner=OWNER, key=f"k{n}").id for n in range(5)]
    last = "delete_counted" if stage.dialect == "sqlite" else "delete_jobs"
    for statement in ("bury_submissions", last, "delete_effects"):
        hook = {"op": "purge", "at": f"statement {statement}", "do": "kill"}
        worker = stage.worker(target="crash.apps:brief", hooks=[hook], wait=False)
        assert worker.ended() == -9
        check(stage.url)
    worker = stage.worker(target="crash.apps:brief")
    until(lambda: rows(stage) == {"submission": 5}, "everything purged but the keys")
    check(stage.url)
    for job_id in made:
        with pytest.raises(Expired):
            jobs.get(job_id, principal=OWNER)
    again = jobs.submit(keep, Nothing(), owner=OWNER, key="k0")
    assert (again.id, again.expired) == (made[0], True)
    assert worker.alive
