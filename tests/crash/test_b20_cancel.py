"""Cancels that no healthy worker can hear: with none up, in the queue, in a dead worker, against a retry, and ignored (B20)."""

from __future__ import annotations

import pytest

from crash.stage import OWNER, Stage, until
from invariants import query
from outlast import AlreadyCompleted


def cancel(stage: Stage, job: str) -> None:
    view = stage.jobs.cancel(job, principal=OWNER)
    assert (view.state, view.outcome, view.final) == ("cancelled", "user", True)


def test_what_was_cancelled_in_the_queue_never_runs(stage: Stage) -> None:
    nobody_up = stage.submit({"label": "A"})
    cancel(stage, nobody_up)
    assert not stage.job(nobody_up).stopping
    stage.worker(queues={"default": 1})
    long = stage.submit({"label": "A", "seconds": 1.0})
    behind = stage.submit({"label": "A"})
    stage.started(long)
    cancel(stage, behind)
    assert not stage.job(behind).stopping
    stage.reached([long])
    stage.works()

    assert not stage.starts(nobody_up)
    assert not stage.starts(behind)
    with pytest.raises(AlreadyCompleted) as refused:
        stage.jobs.cancel(long, principal=OWNER)
    assert refused.value.job.state == "completed"
    again = stage.jobs.cancel(behind, principal=OWNER)
    assert again.version == stage.job(behind).version


def test_a_running_job_whose_worker_dies_after_the_cancel_stays_cancelled(stage: Stage) -> None:
    deaf = stage.worker()
    job = stage.submit({"label": "A", "seconds": 30}, {"label": "B", "after": ["A"]})
    stage.started(job)
    deaf.freeze()
    cancel(stage, job)
    assert stage.job(job).stopping
    deaf.kill()
    version = stage.job(job).version
    stage.worker()

    until(lambda: not stage.job(job).stopping, "stopping ends")

    assert (stage.job(job).state, stage.job(job).version) == ("cancelled", version + 1)
    assert [task.state for task in stage.jobs.tasks(job, principal=OWNER)] == ["cancelled", "cancelled"]
    assert len(stage.starts(job)) == 1
    assert stage.past(job) == []
    stage.works()


def test_a_retryable_error_after_the_cancel_is_no_retry(stage: Stage) -> None:
    worker = stage.worker()
    job = stage.submit({"label": "A", "seconds": 0.8, "ignore_cancel": True, "fail": {"times": 9}})
    stage.started(job)
    cancel(stage, job)

    until(lambda: not stage.job(job).stopping, "stopping ends")

    stage.works()
    assert stage.job(job).state == "cancelled"
    assert len(stage.starts(job)) == 1
    assert worker.alive


@pytest.mark.parametrize("sync", [False, True], ids=["async", "thread"])
def test_a_handler_that_never_looks_is_shown_as_stopping_until_its_lease_ends(stage: Stage, *, sync: bool) -> None:
    worker = stage.worker(lease=1, queues={"default": 1})
    job = stage.submit({"label": "A", "steps": 16, "seconds": 0.2, "sync": sync, "ignore_cancel": True, "deadline": 30})
    until(lambda: len(stage.lines(job, event="step")) >= 2, "two steps done")
    cancel(stage, job)
    stored = steps(stage, job)
    assert stage.job(job).stopping
    assert stage.task(job).state == "cancelled"

    until(lambda: not stage.job(job).stopping, "stopping ends")

    assert not stage.lines(job, event="end"), "it goes on, and nobody waits for it"
    stage.works()  # nor does it keep the only slot
    until(lambda: stage.lines(job, event="end"), "it came to its own end")
    assert len(stage.lines(job, event="step")) == 16
    assert steps(stage, job) == stored
    assert stage.job(job).state == "cancelled"
    assert not query(stage.url, "select no from {output} where job_id = ?", [job])
    assert len(stage.starts(job)) == 1
    assert worker.alive


def steps(stage: Stage, job: str) -> list[dict[str, object]]:
    return query(stage.url, "select name from {step} where job_id = ? order by name", [job])


def test_a_handler_that_looks_stops_within_a_heartbeat(stage: Stage) -> None:
    stage.worker(lease=1)
    jobs = [stage.submit({"label": "A", "seconds": 30, "sync": sync}) for sync in (False, True)]
    for job in jobs:
        stage.started(job)
        cancel(stage, job)
    for job in jobs:
        until(lambda job=job: not stage.job(job).stopping, "stopping ends")
        assert len(stage.starts(job)) == 1
        assert not stage.lines(job, event="end")
    stage.works()
