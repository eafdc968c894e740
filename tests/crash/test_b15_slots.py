"""Slots of concurrency keys while their holders and those who sweep are killed (B15), and who is held up by them (B50, C8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from crash.stage import Process, Stage, until
from invariants import check, problems, query


def held(stage: Stage, key: str) -> list[dict[str, Any]]:
    return query(stage.url, "select n, job_id, fence from {slot} where key = ? and job_id is not null", (key,))


def test_b15_the_slot_of_a_dead_worker_is_free_when_its_own_lease_has_ended(stage: Stage) -> None:
    """The holder of a key's only slot is killed, then the worker that sweeps, in the middle of it; a fresh one needs nothing of either."""
    part = {"key": "only", "limit": 1, "seconds": 0.2}
    victim = stage.worker(lease=1, queues={"default": 1})
    first = stage.submit({"label": "A", **part, "seconds": 1.5})
    stage.started(first)
    waiting = stage.submit({"label": "A", **part})
    other = stage.submit({"label": "A", "deadline": 600, "seconds": 0.1})
    victim.kill()
    assert [row["job_id"] for row in held(stage, "only")] == [first]
    sweeper = stage.worker(lease=1, queues={"nothing": 1}, hooks=[{"op": "retry_lost", "at": "before", "do": "kill"}], wait=False)
    assert sweeper.ended() == -9
    stage.worker(lease=1, queues={"default": 2})

    stage.reached([waiting, other])
    assert stage.past(first)[0] == ("A", 1, "worker_lost")
    stage.reached([first])
    assert not held(stage, "only")
    stage.works()


def test_b15_a_sweep_that_is_killed_between_its_statements_frees_a_slot_once(stage: Stage) -> None:
    statement = "statement release_lost" if stage.dialect == "sqlite" else "statement retry_lost"
    victim = stage.worker(lease=1, queues={"default": 1})
    job = stage.submit({"label": "A", "key": "only", "limit": 1, "seconds": 1})
    stage.started(job)
    victim.kill()
    sweeper = stage.worker(lease=1, queues={"nothing": 1}, hooks=[{"op": "retry_lost", "at": statement, "do": "kill"}], wait=False)
    assert sweeper.ended() == -9
    assert problems(stage.url) == []
    stage.worker(lease=1, queues={"default": 1})
    stage.reached([job])
    assert not held(stage, "only")


def holder(stage: Stage, workers: Sequence[Process]) -> Process | None:
    """A worker that holds a slot now."""
    rows = query(stage.url, "select holder from {queue_entry} where holder is not null and slot_key is not null")
    ids = {str(row["holder"]).partition(":")[0] for row in rows}
    return next((worker for worker in workers if worker.id in ids), None)


def most_at_once(attempts: Sequence[tuple[Any, Any]]) -> int:
    """How many of these intervals, in the store's time, lie over one another; one that ends when another begins does not."""
    moves = sorted([(began, 1) for began, _ in attempts] + [(ended, -1) for _, ended in attempts])
    now = most = 0
    for _, step in moves:
        now += step
        most = max(most, now)
    return most


@pytest.mark.timeout(120)
def test_c8_holders_of_a_key_counted_in_the_stores_time_never_pass_its_limit(stage: Stage) -> None:
    """Workers are killed and frozen again and again; each attempt lasts from its claim to its end, its loss or its last lease."""
    jobs = [stage.submit({"label": "A", "key": "two", "limit": 2, "seconds": 0.3}, max_attempts=50, retry_base=0) for _ in range(10)]
    workers = [stage.worker(lease=0.6, queues={"default": 3}) for _ in range(2)]
    for turn in range(3):
        victim = until(lambda: holder(stage, workers) or all(stage.job(job).final for job in jobs), "a holder")
        if not isinstance(victim, Process):
            break
        assert len(held(stage, "two")) <= 2
        if turn % 2:
            victim.freeze()
        else:
            victim.kill()
        workers.append(stage.worker(lease=0.6, queues={"default": 3}))
        if turn % 2:
            victim.thaw()
        workers.remove(victim)
        assert problems(stage.url) == []
    stage.reached(jobs, timeout=60)

    ended = query(stage.url, "select started_at, finished_at from {task}")
    failed = query(stage.url, "select started_at, ended_at from {attempt}")
    spans = [(row["started_at"], row["finished_at"]) for row in ended] + [(row["started_at"], row["ended_at"]) for row in failed]
    assert len(spans) > len(jobs), "nobody was killed while it held a slot"
    assert most_at_once(spans) == 2
    check(stage.url, settled=True)


def test_b50_short_tasks_do_not_wait_for_a_key_that_hangs(stage: Stage) -> None:
    """A provider with one slot hangs, fifty wait for it; what does not need it is done meanwhile, by two workers of four slots."""
    stuck = [stage.submit({"label": "A", "key": "hangs", "limit": 1, "seconds": 30}) for _ in range(50)]
    for _ in range(2):
        stage.worker(lease=2, grace=0.2, queues={"default": 4})
    until(lambda: held(stage, "hangs"), "the one that hangs")
    quick = [stage.submit({"label": "A"}) for _ in range(20)]
    stage.reached(quick)
    assert len(held(stage, "hangs")) == 1
    assert sum(bool(stage.starts(job)) for job in stuck) == 1
