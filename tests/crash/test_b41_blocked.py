"""Blocked event loops, a held interpreter, and renewals that fail or are slow (B41)."""

from __future__ import annotations

import pytest

from crash import apps
from crash.stage import OWNER, Stage, client, until

LEASE = 2.0


@pytest.mark.timeout(90)
def test_handlers_that_block_the_loop_keep_their_lease_and_are_named(stage: Stage) -> None:
    sleeper = stage.worker(lease=LEASE, queues={"default": 4})
    cruncher = stage.worker(lease=LEASE, queues={"busy": 1}, target="crash.apps:app")
    neighbours = [stage.submit({"label": "A", "seconds": 2.5 * LEASE, "sync": sync}) for sync in (False, True)]
    for job in neighbours:
        stage.started(job)
    blocking = stage.submit({"label": "A", "block_seconds": 2.5 * LEASE})
    busy = client(stage.url, apps.app, stage.store).submit(apps.busy, apps.Stall(2.5 * LEASE), owner=OWNER).id
    rival = stage.worker(lease=LEASE, queues={"default": 4, "busy": 4}, target="crash.apps:app")  # it sweeps, and would take busy

    stage.reached([blocking, busy, *neighbours], timeout=40)

    for job in (blocking, busy, *neighbours):
        assert [line["fence"] for line in stage.starts(job)] == [1]
        assert [code for _, _, code in stage.past(job)] == [None]
    assert "by rehearsal@1:rehearse: use a plain def" in sleeper.log
    assert "by busy@1:busy: use a plain def" in cruncher.log
    assert "blocked" not in rival.log
    stage.works()


@pytest.mark.timeout(90)
def test_a_call_that_holds_the_interpreter_loses_its_lease_and_changes_nothing(stage: Stage) -> None:
    jobs = client(stage.url, apps.app, stage.store)
    first = stage.worker(lease=1, queues={"gil": 4}, target="crash.apps:app")
    beside = jobs.submit(apps.beside, apps.Stall(1.0), owner=OWNER).id
    stage.started(beside)
    stuck = jobs.submit(apps.holds_the_interpreter, apps.Stall(4.0), owner=OWNER).id
    stage.started(stuck)
    second = stage.worker(lease=1, queues={"gil": 4}, target="crash.apps:app")

    stage.reached([stuck, beside], timeout=30)

    for job in (stuck, beside):
        assert [line["worker"] for line in stage.starts(job)] == [first.id, second.id]
        assert [code for _, _, code in stage.past(job)] == ["worker_lost", None]
        assert jobs.result(job, principal=OWNER) == 2, "the result of the holder of the last fence"
    until(lambda: "too late" in first.log or "still runs" in first.log or "ended" in first.log, "the first one noticed")
    assert first.alive
    following = jobs.submit(apps.beside, apps.Stall(0.0), owner=OWNER).id
    stage.reached([following])


def test_one_renewal_that_fails_and_one_that_is_slow_cost_no_lease(stage: Stage) -> None:
    hooks = [
        {"op": "renew", "at": "before", "do": "fail", "count": 2},
        {"op": "renew", "at": "before", "do": "sleep", "seconds": 1.0, "count": 4},
    ]
    worker = stage.worker(lease=LEASE, hooks=hooks)
    job = stage.submit({"label": "A", "seconds": 2.5 * LEASE})
    stage.started(job)
    rival = stage.worker(lease=LEASE)
    stage.reached([job])

    assert [line["worker"] for line in stage.starts(job)] == [worker.id]
    assert stage.past(job) == [("A", 1, None)]
    assert worker.log.count("lease keeper: ") == 1
    assert "lease of task" not in worker.log
    assert rival.alive
    stage.works()
