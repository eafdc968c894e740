"""Draining: signals at any instant, within and over the grace period, twice, and with the store away (B39)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crash.stage import OWNER, Stage, auntil, until, working
from invariants import check, query
from outlast import Submission
from outlast.rehearsal import app
from outlast.store.open import migrate, open_store
from servers.postgres import PostgresServer


def held(stage: Stage) -> list[dict[str, Any]]:
    return query(stage.url, "select job_id, no, holder from {queue_entry} where holder is not null")


def unspent(stage: Stage) -> None:
    """That no attempt was used: what was handed back is as if it had never been claimed, but for its fence."""
    assert not query(stage.url, "select job_id, code from {attempt}")
    assert not query(stage.url, "select job_id from {queue_entry} where spent > 0 or holder is not null")


async def test_a_stop_at_any_instant_leaves_nothing_held_and_uses_no_attempt(stage: Stage) -> None:
    chance = random.Random()
    store = open_store(stage.url, worker=True)
    jobs: list[str] = []
    try:
        for _ in range(25):
            jobs += [stage.submit({"label": "A", "seconds": chance.choice([0.0, 0.02, 5.0])}) for _ in range(3)]
            async with working(stage.url, app, store=store, grace=0.05, queues={"default": 4}):
                await asyncio.sleep(chance.uniform(0.0, 0.12))
            unspent(stage)
            for job in jobs:
                if not stage.job(job).final:
                    stage.jobs.cancel(job, principal=OWNER)
    finally:
        await store.close()


async def test_many_tasks_are_handed_back_as_surely_as_one(stage: Stage) -> None:
    body: Any = {"tasks": [{"label": "A", "seconds": 30}]}
    kind = app.registry.kind("rehearsal")
    count = 250 if stage.dialect == "sqlite" else 60  # one commit, or one each
    jobs = stage.jobs.submit_many([Submission(kind, body) for _ in range(count)], owner=OWNER)
    async with working(stage.url, app, lease=30, grace=0.1, queues={"default": count}) as worker:
        await auntil(lambda: len(worker._running) == len(jobs), "all running")
    unspent(stage)
    assert stage.job(jobs[0].id).state == "running", "it has begun, and nothing stands in its way"


class StopsAtClaim:
    """A store that stops the worker while its claim is under way."""

    def __init__(self, store: Any, *, after: bool, stops: int) -> None:
        self._store = store
        self._after = after
        self._stops = stops
        self.worker: Any = None

    def _stop(self) -> None:
        for _ in range(self._stops):
            self.worker.stop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def run(self, operation: Any) -> Any:
        if operation.name == "claim" and not self._after:
            self._stop()
        value = await self._store.run(operation)
        if operation.name == "claim" and value and self._after:
            self._stop()
            await asyncio.sleep(0.2)  # the answer is on its way
        return value


@pytest.mark.parametrize("stops", [1, 2], ids=["stop", "hurry"])
@pytest.mark.parametrize("after", [False, True], ids=["sent", "committed"])
async def test_what_a_claim_took_while_the_stop_came_is_done_or_handed_back(stage: Stage, *, after: bool, stops: int) -> None:
    quick, long = (stage.submit({"label": "A", "seconds": seconds}) for seconds in (0.05, 20.0))
    inner = open_store(stage.url, worker=True)
    store = StopsAtClaim(inner, after=after, stops=stops)
    try:
        async with working(stage.url, app, store=store, grace=0.6, queues={"default": 4}) as worker:
            store.worker = worker
            await asyncio.wait_for(worker._stop.wait(), 10)
            assert not worker.ready
    finally:
        await inner.close()
    unspent(stage)
    for job in (quick, long):
        assert stage.job(job).state in ("queued", "running", "completed")
    stage.jobs.cancel(long, principal=OWNER)
    async with working(stage.url, app):
        await asyncio.to_thread(stage.reached, [quick])
    assert stage.past(quick) == [("A", 1, None)]


@pytest.mark.timeout(90)
def test_sigterm_around_a_claim_ends_the_process_in_order(stage: Stage) -> None:
    chance = random.Random()
    for _ in range(3):
        job = stage.submit({"label": "A", "seconds": 0.3})
        pair = [stage.worker(grace=3, queues={"default": 1}, wait=False) for _ in range(2)]
        for process in pair:
            process.ready()
        time.sleep(chance.uniform(0.0, 0.3))
        for process in pair:
            process.terminate()
        for process in pair:
            assert process.ended(8) == 0, process.log
        unspent(stage)
        assert len(stage.starts(job)) <= 1
        if stage.starts(job):
            assert stage.job(job).state == "completed", "what had begun was within the grace period"
    stage.worker()
    stage.works()


def test_within_the_grace_period_work_ends_and_over_it_is_handed_back(stage: Stage) -> None:
    worker = stage.worker(lease=5, grace=2, queues={"default": 8})
    short = stage.submit({"label": "A", "seconds": 0.8})
    long = [stage.submit({"label": "A", "seconds": 20, "sync": sync, "ignore_cancel": ignore}) for sync, ignore in _KINDS]
    waiting = stage.submit({"label": "A", "queue": "later"})
    for job in (short, *long):
        stage.started(job)
    os.killpg(worker.pid, signal.SIGTERM)  # as a terminal or a container does: to the whole group
    until(lambda: "stops" in worker.log, "the signal heard")
    after = stage.submit({"label": "A", "seconds": 20})

    assert worker.ended(10) == 0

    unspent(stage)
    assert stage.job(short).state == "completed"
    assert not stage.starts(after), "no claim after the signal"
    second = stage.worker(lease=5, queues={"default": 8})
    for job in long:
        stage.started(job, 2)
        assert [(line["fence"], line["attempt"]) for line in stage.starts(job)] == [(1, 1), (2, 1)]
        assert stage.starts(job)[1]["worker"] == second.id
    for job in (*long, waiting, after):
        stage.jobs.cancel(job, principal=OWNER)


_KINDS = ((False, False), (True, False), (False, True), (True, True))


def test_a_second_signal_hands_back_at_once_and_a_kill_costs_an_attempt(stage: Stage) -> None:
    hurried = stage.worker(lease=30, grace=60, queues={"a": 1})
    killed = stage.worker(lease=1, grace=60, queues={"b": 1})
    jobs = {queue: stage.submit({"label": "A", "queue": queue, "seconds": 1.5}) for queue in ("a", "b")}
    for job in jobs.values():
        stage.started(job)
    hurried.terminate()
    killed.terminate()
    until(lambda: "stops" in hurried.log, "the first signal heard")
    hurried.signal(signal.SIGINT)
    assert hurried.ended(8) == 0
    killed.kill()
    unspent_job = query(stage.url, "select holder, spent from {queue_entry} where job_id = ?", [jobs["a"]])
    assert unspent_job == [{"holder": None, "spent": 0}]

    stage.worker(queues={"a": 1, "b": 1})
    stage.reached(list(jobs.values()))
    assert stage.past(jobs["a"]) == [("A", 1, None)]
    assert stage.past(jobs["b"]) == [("A", 1, "worker_lost"), ("A", 2, None)]


@contextmanager
def away(url: str, server: PostgresServer | None) -> Iterator[None]:
    """The store does not answer: the server is down, the file is locked."""
    if server is not None:
        server.stop("immediate")
        yield
        server.start()
        return
    blocker = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=20)
    blocker.execute("begin exclusive")
    yield
    blocker.execute("rollback")
    blocker.close()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_with_the_store_away_a_worker_still_ends_in_time(tmp_path: Path, dialect: str) -> None:
    server = PostgresServer() if dialect == "postgresql" else None  # its own: the others need theirs
    try:
        if server is not None:
            server.start()
        url = server.dsn() if server is not None else f"sqlite:///{tmp_path / 'jobs.db'}"
        migrate(url)
        stage = Stage(url, tmp_path)
        busy, idle = stage.worker(lease=2, grace=1, queues={"default": 4}), stage.worker(lease=2, grace=1, queues={"other": 1})
        jobs = [stage.submit({"label": "A", "seconds": seconds}) for seconds in (1.0, 20.0)]
        for job in jobs:
            stage.started(job)
        with away(url, server):
            time.sleep(0.3)
            for process in (busy, idle):
                process.terminate()
            assert [process.ended(10) for process in (busy, idle)] == [0, 0]
        fresh = stage.worker(lease=2, queues={"default": 4})
        stage.reached(jobs[:1])
        stage.started(jobs[1], 2)
        stage.jobs.cancel(jobs[1], principal=OWNER)
        assert fresh.alive
        stage.works()
        stage.close()
        check(url)
    finally:
        if server is not None:
            server.close()
