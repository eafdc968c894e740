"""Late verdicts on finished work: a holder that was frozen past its lease, a sweep that read before the finish (B07)."""

from __future__ import annotations

import time

from crash.stage import OWNER, Stage, until
from invariants import query
from outlast.domain.work import Claimed, Finished, LostLease, Swept, Verdict
from outlast.rehearsal import app
from outlast.store.programs import claims, completion, sweep

LATE = "came too late and was dropped"


def test_a_worker_frozen_before_its_commit_is_refused_and_stays_up(stage: Stage) -> None:
    frozen = stage.worker(hooks=[{"op": "finish", "at": "before", "do": "stop"}])
    job = stage.submit({"label": "A", "seconds": 0.2})
    until(frozen.frozen, "the first worker frozen")
    other = stage.worker()
    stage.reached([job])
    row, result = row_of(stage, job), stage.jobs.result(job, principal=OWNER)
    other.terminate()
    assert other.ended() == 0

    frozen.thaw()

    until(lambda: LATE in frozen.log, "the late result refused")
    assert row_of(stage, job) == row
    assert stage.jobs.result(job, principal=OWNER) == result
    assert isinstance(result, dict)
    assert result["fence"] == 2
    assert [line["fence"] for line in stage.starts(job)] == [1, 2]
    following = stage.submit({"label": "A"})
    stage.reached([following])
    assert stage.starts(following)[0]["worker"] == frozen.id
    assert frozen.log.count(LATE) == 1


def test_a_frozen_worker_stores_no_step_and_keeps_nothing(stage: Stage) -> None:
    frozen = stage.worker(hooks=[{"op": "store_step", "at": "before", "do": "stop", "count": 2}])
    job = stage.submit({"label": "A", "steps": 4, "seconds": 0.05})
    until(frozen.frozen, "the first worker frozen in its second step")
    stage.worker()
    stage.reached([job])
    frozen.thaw()
    stage.works()

    steps = query(stage.url, "select name, fence from {step} where job_id = ? order by name", [job])
    assert [(s["name"], s["fence"]) for s in steps] == [("step 1", 1), ("step 2", 2), ("step 3", 2), ("step 4", 2)]
    ran = [(line["fence"], line["step"]) for line in stage.lines(job, event="step")]
    assert ran == [(1, 1), (1, 2), (2, 2), (2, 3), (2, 4)]
    assert frozen.alive


def test_a_sweep_that_read_before_the_finish_changes_nothing(stage: Stage) -> None:
    for max_attempts in (3, 1):
        job = stage.submit({"label": "A"}, max_attempts=max_attempts, retry_base=0)
        (first,) = claimed(stage, "gone:1", lease_ms=150)
        until(lambda: ended_leases(stage), "its lease ended")
        (candidate,) = ended_leases(stage)
        if max_attempts == 1:
            assert stage.store.run_sync(sweep.give_up_lost(candidate, window_ms=60_000, retention_ms=60_000)) is Swept.GAVE_UP
            question = stage.job(job).attention
            assert question is not None
            stage.jobs.act(job, question.id, action="retry", principal=OWNER)
        else:
            assert stage.store.run_sync(sweep.retry_lost(candidate, 0)) is Swept.RETRIED
            stage.store.run_sync(claims.wake(10))
        (second,) = claimed(stage, "there:1", lease_ms=60_000)
        assert second.ref.fence == first.ref.fence + 1
        assert finish(stage, second, "2") is Verdict.ACCEPTED
        row = row_of(stage, job)

        for verdict in (
            stage.store.run_sync(sweep.lost(candidate, 0.5)),
            stage.store.run_sync(sweep.retry_lost(candidate, 0)),
            stage.store.run_sync(sweep.give_up_lost(candidate, window_ms=60_000, retention_ms=60_000)),
            stage.store.run_sync(sweep.stop_lost(candidate)),
        ):
            assert verdict in (None, Swept.PASSED)
        assert finish(stage, first, "1") is Verdict.STALE
        assert row_of(stage, job) == row
        assert stage.job(job).state == "completed"


def claimed(stage: Stage, holder: str, *, lease_ms: int) -> list[Claimed]:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        rows = stage.store.run_sync(claims.claim("default", app.registry.handlers(), 5, holder, lease_ms))
        if rows:
            return rows
    raise AssertionError("nothing to claim")


def ended_leases(stage: Stage) -> list[LostLease]:
    return stage.store.run_sync(sweep.ended_leases(None, 10))


def finish(stage: Stage, claim: Claimed, body: str) -> Verdict:
    (settled,) = stage.store.run_sync(completion.finish([Finished(claim.ref, "w", body)], 60_000))
    return settled.verdict


def row_of(stage: Stage, job: str) -> dict[str, object]:
    (row,) = query(stage.url, "select * from {job} where id = ?", [job])
    return row
