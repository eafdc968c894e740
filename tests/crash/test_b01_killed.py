"""A worker killed while it works: before the handler, in it, before the commit of its result, after it (B01); and a client (K1)."""

from __future__ import annotations

import sys

import pytest

from crash.stage import TESTS, Stage, until

KILL_POINTS = {
    "k4": {"op": "claim", "at": "after", "do": "kill"},  # claim committed, handler not entered
    "k5": {"op": "finish", "at": "before", "do": "kill"},  # handler done, completion not committed
    "k6": {"op": "finish", "at": "after", "do": "kill", "count": 5},  # completion committed, nobody told
}


def test_twenty_jobs_survive_kills_at_every_point(stage: Stage) -> None:
    points = (*KILL_POINTS, "mid")
    jobs = {point: [stage.submit({"label": "A", "queue": point, "seconds": 0.4}) for _ in range(5)] for point in points}
    victims = {
        point: stage.worker(lease=2, queues={point: 5}, hooks=[KILL_POINTS[point]] if point in KILL_POINTS else (), wait=False)
        for point in points
    }
    until(lambda: sum(len(stage.starts(job)) for job in jobs["mid"]) == 5, "five in the middle of their work")
    victims["mid"].kill()
    for point, victim in victims.items():
        assert victim.ended() == -9, point
    before = {point: [stage.starts(job) for job in of_point] for point, of_point in jobs.items()}
    assert not any(before["k4"])
    survivor = stage.worker(lease=2, queues=dict.fromkeys((*points, "default"), 5))

    stage.reached([job for of_point in jobs.values() for job in of_point])

    for point, of_point in jobs.items():
        for job in of_point:
            starts, past = stage.starts(job), stage.past(job)
            fences = [line["fence"] for line in starts]
            assert len(set(fences)) == len(fences) <= 2, point
            assert past[-1][2] is None, point
            assert past[:-1] in ([], [("A", 1, "worker_lost")]), point
            assert len(stage.lines(job, event="end")) >= 1, point
            result = stage.jobs.result(job, principal=stage_owner())
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
