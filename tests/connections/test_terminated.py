"""Sessions that end by another's hand, by idleness, or in the middle of anything."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

import psycopg
import pytest

from connections.shop import WHO, Order, shop
from connections.working import Load, ask, completed, sessions, terminate, until, working
from invariants import check
from outlast import Context

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def test_what_was_acknowledged_exists_and_completes_once(database: Callable[[], str]) -> None:
    """Any session of client and worker is ended at random, some forty a second for five seconds, and longer where that is too little."""
    url = database()
    jobs, ship = shop(url)
    load = Load(jobs, ship)
    chance = random.Random(5)
    ended = 0
    async with working(jobs, lease=3):
        running = asyncio.create_task(load.run())
        until_then = time.monotonic() + 5
        while time.monotonic() < until_then or ended <= 20:
            alive = await asyncio.to_thread(sessions, url)
            if alive:
                await asyncio.to_thread(terminate, url, chance.choice(alive))
                ended += 1
            await asyncio.sleep(0.025)
        load.stop()
        await running
        for job_id in load.acknowledged.values():
            view = await jobs.wait(job_id, principal=WHO, timeout=60)
            assert view.state == "completed", view
    stored = ask(url, "select id::text from outlast.job")
    await jobs.close()

    print(f"{ended} sessions ended, {len(load.acknowledged)} orders acknowledged, {load.refused} calls refused")
    assert ended > 20
    assert len(load.acknowledged) > 20
    assert {row[0] for row in stored} >= set(load.acknowledged.values())
    assert len(set(load.acknowledged.values())) == len(load.acknowledged)
    assert completed(url) == len(stored)
    check(url, settled=True)


@pytest.mark.parametrize("setting", ["idle_session_timeout = '300ms'", "idle_in_transaction_session_timeout = '300ms'"])
async def test_idle_sessions_that_the_server_ends_are_replaced(database: Callable[[], str], setting: str) -> None:
    url = database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter database {url.rpartition('/')[2]} set {setting}".encode())
    jobs, ship = shop(url)
    async with working(jobs, lease=3):
        for number in range(4):
            handle = await jobs.submit(ship, Order(number), owner=WHO)
            assert (await jobs.wait(handle.id, principal=WHO, timeout=20)).state == "completed"
            await asyncio.sleep(0.7)
    await jobs.close()
    check(url, settled=True)


async def test_sessions_do_not_add_up(database: Callable[[], str]) -> None:
    """As many after 300 failed tasks as after 30, and no more than a worker's pool, its keeper and its listener."""
    url = database()
    jobs, _ = shop(url)

    @jobs.task(name="fail", max_attempts=1)
    async def fail(ctx: Context, order: Order) -> int:
        raise ValueError(order.number)

    async def failed(count: int) -> bool:
        return int(ask(url, "select count(*) from outlast.attempt")[0][0]) >= count

    counts = []
    async with working(jobs):
        for wanted in (30, 300):
            for number in range(wanted - (0 if wanted == 30 else 30)):
                await jobs.submit(fail, Order(number), owner=WHO)
            await until(lambda wanted=wanted: failed(wanted), 60)
            await jobs.close()  # the client's own
            await asyncio.sleep(0.5)
            counts.append(len(sessions(url)))
    await jobs.close()
    print(f"sessions: {counts}")
    assert counts[1] <= counts[0] + 1
    assert max(counts) <= 4 + 1 + 1
    assert sessions(url) == []
