"""Deadlines that pass while the code keeps running, and settings that contradict (B08)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from crash import apps
from crash.stage import OWNER, Stage, auntil, client, until, working
from invariants import query
from outlast import Invalid, Settings
from outlast.observe.events import Zombie
from outlast.observe.hub import subscribe
from outlast.rehearsal import app
from outlast.store.open import open_store
from outlast.worker.runtime import Exit, Options, Worker


@pytest.mark.timeout(90)
def test_handlers_that_hang_past_their_deadline_take_no_slots_and_end_in_attention(stage: Stage) -> None:
    worker = stage.worker(lease=2, queues={"default": 4})
    stuck = [
        stage.submit({"label": "A", "sync": True, "seconds": 5, "ignore_cancel": True, "deadline": 1}, max_attempts=2) for _ in range(8)
    ]
    quick = [stage.submit({"label": "A"}) for _ in range(4)]

    stage.reached(quick, timeout=30)
    stage.reached(stuck, "needs_attention", timeout=30)

    for job in stuck:
        assert stage.past(job) == [("A", 1, "deadline_exceeded"), ("A", 2, "deadline_exceeded")]
        assert [line["fence"] for line in stage.starts(job)] == [1, 2]
        question = stage.job(job).attention
        assert question is not None
        assert (question.code, "retry" in question.actions) == ("deadline_exceeded", True)
    until(lambda: len(stage.lines(event="end")) >= 20, "every old attempt came to its end at last")
    assert query(stage.url, "select job_id from {output} order by job_id") == [{"job_id": job} for job in sorted(quick)]
    assert worker.log.count("still runs after its lease ended") == 16  # counted, each once
    assert all(stage.job(job).state == "needs_attention" for job in stuck)
    assert worker.alive
    stage.works()


def test_a_worker_with_too_many_hanging_handlers_ends_for_its_supervisor(stage: Stage) -> None:
    worker = stage.worker(queues={"default": 4}, zombies=2)
    stuck = [stage.submit({"label": "A", "sync": True, "seconds": 30, "ignore_cancel": True, "deadline": 0.5}) for _ in range(2)]
    healthy = stage.submit({"label": "A", "seconds": 10})
    stage.started(healthy)

    assert worker.ended() == Exit.ZOMBIES

    assert not query(stage.url, "select no from {queue_entry} where job_id = ? and holder is not null", [healthy])
    assert stage.past(healthy) == []  # handed back: no attempt was used
    assert all(stage.starts(job) for job in stuck)


async def test_a_thread_of_a_step_counts_until_its_code_has_ended(stage: Stage) -> None:
    counted: list[Zombie] = []
    unsubscribe = subscribe(lambda event: counted.append(event) if isinstance(event, Zombie) else None)
    jobs = client(stage.url, apps.app, stage.store)
    try:
        async with working(stage.url, apps.app) as worker:
            job = jobs.submit(apps.hangs_in_a_step, apps.Stall(1.5), owner=OWNER).id
            await auntil(lambda: counted, "the thread counted")
            assert len(worker._zombies) == 1
            await auntil(lambda: not worker._zombies, "its code ended")
            await auntil(lambda: jobs.get(job, principal=OWNER).attention, "the question")
    finally:
        unsubscribe()
    assert [event.job_id for event in counted] == [job]
    assert not query(stage.url, "select name from {step}")


@pytest.mark.parametrize("lease", [math.nan, math.inf, -math.inf, -1.0, 0.0, 0.05])
def test_a_lease_that_cannot_be_kept_is_refused(tmp_path: Path, lease: float) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(Invalid, match="lease"):
        Worker(store, app.registry, Settings(), Options(lease=lease))


@pytest.mark.parametrize(
    "options",
    [
        {"queues": {}},
        {"queues": {"default": 0}},
        {"grace": math.nan},
        {"grace": -1.0},
        {"zombies": 0},
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(Invalid):
        Worker(store, app.registry, Settings(), Options(**options))
