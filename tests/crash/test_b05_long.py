"""Delays and run times longer than the lease, while other workers come and go (B05)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crash.stage import Stage, until
from invariants import query

LEASE = 2.0


@pytest.mark.timeout(90)
def test_delays_and_long_tasks_run_once_while_other_workers_come_and_go(stage: Stage) -> None:
    due = datetime.now(UTC) + timedelta(seconds=2 * LEASE)
    delayed = stage.submit({"label": "A", "queue": "delayed"}, not_before=due)
    keepers = [stage.worker(lease=LEASE, queues={"long": 1}) for _ in range(2)]
    waiting = [stage.worker(lease=LEASE, queues={"delayed": 2}, wait=False) for _ in range(2)]
    long = [stage.submit({"label": "A", "queue": "long", "seconds": 3.5 * LEASE, "sync": sync}) for sync in (False, True)]
    for job in long:
        stage.started(job)

    for process in waiting:  # all that wait for the delayed job are replaced while it waits
        process.ready().terminate()
        assert process.ended() == 0
    waiting = [stage.worker(lease=LEASE, queues={"delayed": 2}, wait=False) for _ in range(2)]
    leases = {job: {lease_of(stage, job)} for job in long}
    for _ in range(3):
        passer_by = stage.worker(lease=LEASE, queues={"long": 4, "delayed": 4})
        for job in long:
            leases[job].add(lease_of(stage, job))
        passer_by.terminate()
        assert passer_by.ended() == 0
    stage.reached([delayed, *long])

    for job in (delayed, *long):
        assert [(line["fence"], line["attempt"]) for line in stage.starts(job)] == [(1, 1)]
        assert stage.past(job) == [("A", 1, None)]
    (start,) = stage.starts(delayed)
    assert due.timestamp() - 0.002 <= start["time"] <= due.timestamp() + 5
    for seen in leases.values():
        assert len(seen - {None}) >= 2, "the store shows the lease being renewed"
    assert all(process.alive for process in (*keepers, *waiting))
    stage.works("long")


def lease_of(stage: Stage, job: str) -> Any:
    rows = query(stage.url, "select lease_until from {queue_entry} where job_id = ?", [job])
    return rows[0]["lease_until"] if rows else None


def test_a_delayed_job_waits_without_being_claimed(stage: Stage) -> None:
    stage.worker(lease=0.5, queues={"default": 2})
    due = datetime.now(UTC) + timedelta(seconds=1.5)
    job = stage.submit({"label": "A"}, not_before=due)
    while time.time() < due.timestamp() - 0.2:
        assert stage.task(job).next_attempt_at is not None
        assert (stage.job(job).state, stage.starts(job)) == ("queued", [])
    until(lambda: stage.job(job).final, "done")
    assert stage.past(job) == [("A", 1, None)]
