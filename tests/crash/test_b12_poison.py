"""A poison task that kills its process, and recovery that depends on nothing but the task's own lease (B12, B15)."""

from __future__ import annotations

import pytest

from crash.stage import OWNER, Process, Stage, until
from invariants import query


@pytest.mark.timeout(90)
def test_a_task_that_kills_its_worker_ends_in_attention_after_its_attempts(stage: Stage) -> None:
    poison = stage.submit({"label": "A", "crash_times": 3}, max_attempts=3)
    others = [stage.submit({"label": "A", "seconds": 0.1}, max_attempts=20) for _ in range(12)]
    workers = [stage.worker(queues={"default": 2}, wait=False) for _ in range(2)]

    def given_up() -> bool:
        replace_dead(stage, workers)
        return stage.job(poison).state == "needs_attention"

    until(given_up, "the poison task given up")

    assert [(line["fence"], line["attempt"]) for line in stage.starts(poison)] == [(1, 1), (2, 2), (3, 3)]
    assert stage.past(poison) == [("A", n, "worker_lost") for n in (1, 2, 3)]
    question = stage.job(poison).attention
    assert question is not None
    assert (question.code, question.actions) == ("worker_lost", ("retry", "dismiss"))
    replace_dead(stage, workers)
    stage.reached(others)
    assert len(stage.starts(poison)) == 3

    stage.jobs.act(poison, question.id, action="retry", principal=OWNER)
    stage.reached([poison])  # what killed three claims does not kill the fourth
    assert [(line["fence"], line["attempt"]) for line in stage.starts(poison)][3:] == [(4, 1)]
    assert all(worker.alive for worker in workers)
    stage.works()


def replace_dead(stage: Stage, workers: list[Process]) -> None:
    """What a supervisor does."""
    for place, worker in enumerate(workers):
        if not worker.alive:
            assert worker.ended() == -9
            workers[place] = stage.worker(queues={"default": 2}, wait=False)


def test_a_killed_worker_is_recovered_by_the_lease_of_its_tasks_alone(stage: Stage) -> None:
    once, last = (stage.submit({"label": "A", "seconds": 1.0}, max_attempts=attempts) for attempts in (3, 1))
    first = stage.worker(lease=1, queues={"default": 2})
    stage.started(once)
    stage.started(last)
    first.kill()
    catalogue = {
        "sqlite": "select name from sqlite_master where type = 'table'",
        "postgresql": "select tablename as name from pg_tables where schemaname = 'outlast'",
    }
    tables = catalogue[stage.dialect]
    assert not [row["name"] for row in query(stage.url, tables) if "worker" in row["name"] or "server" in row["name"]]

    # Two sweepers die in the middle of a sweep: before a write, and in a transaction that holds the job's lock.
    retrying = {"op": "retry_lost", "at": "statement entry", "do": "kill"}
    locking = {"op": "give_up_lost", "at": "statement end_lost_entry", "do": "kill"}
    for hook in (retrying, locking):
        sweeper = stage.worker(lease=1, queues={"other": 1}, hooks=[hook])
        assert sweeper.ended() == -9
    fresh = stage.worker(lease=1)

    stage.reached([once])
    stage.reached([last], "needs_attention")
    assert stage.past(once) == [("A", 1, "worker_lost"), ("A", 2, None)]
    assert stage.past(last) == [("A", 1, "worker_lost")]
    assert [line["worker"] for line in stage.starts(once)] == [first.id, fresh.id]
    stage.works()
