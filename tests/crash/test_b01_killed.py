"""A worker killed while it works: before the handler, in it, before the commit of its result, after it (B01); and a client (K1)."""

from __future__ import annotations

import json
import sys

from crash.runner import HOOKS
from crash.stage import OWNER, TESTS, Stage, until
from invariants import query

KILL_POINTS = {
    "k4": {"op": "claim", "at": "after", "do": "kill"},  # claim committed, handler not entered
    "k5": {"op": "finish", "at": "before", "do": "kill"},  # handler done, completion not committed
    "k6": {"op": "finish", "at": "after", "do": "kill", "count": 5},  # completion committed, nobody told
}


def test_twenty_jobs_survive_kills_at_every_point(stage: Stage) -> None:
    points = (*KILL_POINTS, "mid")
    jobs = {point: [stage.submit({"label": "A", "queue": point, "seconds": 0.4}) for _ in range(5)] for point in points}
    victims = {
        point: stage.worker(queues={point: 5}, hooks=[KILL_POINTS[point]] if point in KILL_POINTS else (), wait=False) for point in points
    }
    until(lambda: sum(len(stage.starts(job)) for job in jobs["mid"]) == 5, "five in the middle of their work")
    victims["mid"].kill()
    for point, victim in victims.items():
        assert victim.ended() == -9, point
    before = {point: [stage.starts(job) for job in of_point] for point, of_point in jobs.items()}
    assert not any(before["k4"])
    survivor = stage.worker(queues=dict.fromkeys((*points, "default"), 5))

    stage.reached([job for of_point in jobs.values() for job in of_point])

    for point, of_point in jobs.items():
        for job in of_point:
            starts, past = stage.starts(job), stage.past(job)
            fences = [line["fence"] for line in starts]
            assert len(set(fences)) == len(fences) <= 2, point
            assert past[-1][2] is None, point
            assert past[:-1] in ([], [("A", 1, "worker_lost")]), point
            assert len(stage.lines(job, event="end")) >= 1, point
            result = stage.jobs.result(job, principal=OWNER)
            assert isinstance(result, dict)
            assert result["fence"] == fences[-1], point
    for job in jobs["k4"]:
        assert [line["fence"] for line in stage.starts(job)] == [2]
    for job in jobs["mid"]:
        assert [(line["fence"], line["attempt"]) for line in stage.starts(job)] == [(1, 1), (2, 2)]
    for job in jobs["k6"]:
        assert len(stage.starts(job)) == 1
        assert stage.past(job) == [("A", 1, None)]
    assert survivor.alive
    stage.works()


def test_a_lost_job_is_shown_as_retrying_until_somebody_takes_it(stage: Stage) -> None:
    victim = stage.worker(queues={"a": 1})
    job = stage.submit({"label": "A", "queue": "a", "seconds": 1.0})
    stage.started(job)
    assert stage.job(job).state == "running"
    victim.kill()
    sweeper = stage.worker(queues={"default": 1})  # recovers what it cannot run itself

    stage.reached([job], "retrying")

    task = stage.task(job)
    assert (task.state, task.attempt, task.code) == ("retrying", 1, "worker_lost")
    assert stage.job(job).attention is None
    stage.worker(queues={"a": 1})
    stage.started(job, 2)
    assert (stage.job(job).state, stage.task(job).attempt) == ("running", 2)
    stage.reached([job])
    assert sweeper.alive
    stage.works()


def test_a_client_killed_before_the_answer_gets_the_same_job_from_a_new_process(stage: Stage) -> None:
    command = [sys.executable, str(TESTS / "crash" / "submitter.py"), stage.url, "order-7"]
    hooks = [{"op": "admit", "at": "after", "do": "kill"}]
    first = stage.start(command, env={HOOKS: json.dumps(hooks)}, wait=False)
    assert first.ended() == -9
    assert first.said == ""

    second = stage.start(command, env={}, wait=False)
    assert second.ended() == 0
    third = stage.handle({"label": "A"}, key="order-7")

    (row,) = query(stage.url, "select id from {job}")
    assert second.said.split() == [row["id"], "True", "ready"]
    assert (third.id, third.replayed) == (row["id"], True)
    stage.worker()
    stage.reached([third.id])
    assert len(stage.starts(third.id)) == 1
