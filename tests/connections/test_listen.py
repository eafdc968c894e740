"""Notifications are hints: they come back after each cut, carry a queue's name and nothing else, and cost next to nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import psycopg
import pytest

from connections.shop import WHO, Order, shop
from connections.working import ask, sessions, terminate, until, working
from outlast import Context, Invalid, Outlast
from outlast.store.open import open_store

LISTENER = "outlast listen"


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_hints_come_back_after_each_cut(database: Callable[[], str]) -> None:
    url = database()
    here, there = open_store(url, worker=True), open_store(url)
    heard: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    here.hints.subscribe(lambda queue: loop.call_soon_threadsafe(heard.put_nowait, queue))
    listening = asyncio.create_task(here.listen())
    known: set[int] = set()

    async def again() -> bool:
        return bool(set(sessions(url, LISTENER)) - known)

    for cut in range(6):
        assert await until(again, 20 if cut else 10) < 20
        known = set(sessions(url, LISTENER))
        assert len(known) == 1
        assert await asyncio.wait_for(heard.get(), 10) == "*"  # what was missed meanwhile
        there.announce(("default",))
        assert await asyncio.wait_for(heard.get(), 5) == "default"
        terminate(url, known.pop())
        known = set()
        await asyncio.sleep(0.05)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await there.close()
    await here.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_work_that_another_process_submits_is_found_at_once_after_cuts(database: Callable[[], str]) -> None:
    url = database()
    jobs, ship = shop(url)
    async with working(jobs):
        for number in range(3):
            for pid in sessions(url, LISTENER):
                terminate(url, pid)
            await until(lambda: _listening(url), 20)
            await asyncio.sleep(1)  # the worker is idle, and polls at its slowest
            handle = await jobs.submit(ship, Order(number), owner=WHO)
            view = await jobs.wait(handle.id, principal=WHO, timeout=10)
            assert view.state == "completed"
    await jobs.close()


async def _listening(url: str) -> bool:
    return bool(sessions(url, LISTENER))


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_an_idle_worker_is_quiet(database: Callable[[], str]) -> None:
    url = database()
    jobs, _ = shop(url)
    postgres = url.rpartition("/")[0] + "/postgres"
    name = url.rpartition("/")[2]

    def transactions() -> int:
        rows = ask(postgres, "select xact_commit + xact_rollback from pg_stat_database where datname = %s", name)
        return int(rows[0][0])

    async with working(jobs, lease=30):
        await asyncio.sleep(2)
        began, before = time.monotonic(), transactions()
        await asyncio.sleep(5)
        calm = (transactions() - before) / (time.monotonic() - began)
        began, before = time.monotonic(), transactions()
        for pid in sessions(url, LISTENER):
            terminate(url, pid)
        await asyncio.sleep(5)
        cut = (transactions() - before) / (time.monotonic() - began)
    await jobs.close()
    print(f"statements a second: {calm:.1f}, after a cut {cut:.1f}")
    assert calm < 20
    assert cut < 20


async def test_a_notification_carries_the_queue_and_nothing_else(database: Callable[[], str]) -> None:
    url = database()
    queue = "q" * 100
    jobs = Outlast(url)

    @jobs.task(name="ship", queue=queue)
    async def ship(ctx: Context, order: Order) -> int:
        return order.number

    @jobs.kind("labelled", label="\N{ROCKET}" * 500)
    def labelled(plan: object, order: Order) -> None:
        plan.task(ship, label="\N{ROCKET}" * 500)  # type: ignore[attr-defined]

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as listener:
        await listener.execute("listen outlast")
        first = await jobs.submit(ship, Order(1, "x" * 100_000), owner=WHO)
        await asyncio.sleep(0.1)
        second = await jobs.submit(labelled, Order(2), owner=WHO)
        heard = [notice.payload async for notice in listener.notifies(timeout=10, stop_after=2)]

    assert heard == [queue, queue]
    assert (await jobs.get(second.id, principal=WHO)).label == "\N{ROCKET}" * 500
    async with working(jobs, queues={queue: 2}):
        for handle in (first, second):
            assert (await jobs.wait(handle.id, principal=WHO, timeout=15)).state == "completed"
    await jobs.close()


def test_a_label_past_its_length_is_refused_and_nothing_written(database: Callable[[], str]) -> None:
    jobs = Outlast(database())
    with pytest.raises(Invalid):
        jobs.kind("labelled", label="\N{ROCKET}" * 3_000)(lambda plan, order: None)
