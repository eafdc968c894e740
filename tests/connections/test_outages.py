"""The server goes away and comes back, has no session left, or swallows what is sent to it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import psycopg
import pytest

from connections.proxy import Proxy
from connections.shop import WHO, Order, shop
from connections.working import Load, ask, completed, events, until, working
from invariants import check
from outlast import StoreUnavailable
from outlast.domain.access import Scope
from outlast.observe.events import StoreTrouble
from outlast.store.open import migrate, open_store
from outlast.store.postgres import notify, watchdog
from outlast.store.postgres import store as store_module
from outlast.store.postgres.store import PostgresStore
from outlast.store.programs import status
from outlast.worker.runtime import Exit, Options, Worker
from servers.postgres import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def small() -> Iterator[PostgresServer]:
    """A server of this module's own, with few sessions, that may be stopped."""
    with PostgresServer(max_connections=14, settings={"superuser_reserved_connections": "0"}) as server:
        yield server


@pytest.fixture
def url(small: PostgresServer) -> str:
    name = f"outages_{next(_numbers)}"
    small.create_database(name)
    migrate(small.dsn(name))
    return small.dsn(name)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_work_goes_on_when_the_server_is_back(small: PostgresServer, url: str) -> None:
    jobs, ship = shop(url)
    load = Load(jobs, ship)
    async with events() as seen, working(jobs, lease=3):
        running = asyncio.create_task(load.run(callers=2))
        await asyncio.sleep(2)
        await asyncio.to_thread(small.stop, "immediate")
        await asyncio.sleep(5)
        troubled = len([e for e in seen if isinstance(e, StoreTrouble)])
        await asyncio.to_thread(small.start)
        before = await asyncio.to_thread(completed, url)

        async def more() -> bool:
            return await asyncio.to_thread(completed, url) > before

        took = await until(more, 10)
        await asyncio.sleep(1)
        load.stop()
        await running
        for job_id in load.acknowledged.values():
            assert (await jobs.wait(job_id, principal=WHO, timeout=60)).state == "completed"
    stored = {row[0] for row in ask(url, "select id::text from outlast.job")}
    await jobs.close()

    print(f"work again after {took:.1f} s; {troubled} lines of trouble in 5 s; {len(load.acknowledged)} orders")
    assert stored >= set(load.acknowledged.values())
    assert troubled < 60  # a few loops, each backing off
    check(url, settled=True)


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_refused_start_waits_and_succeeds(small: PostgresServer, url: str) -> None:
    """Every session but a few is taken when the worker starts, at each number of free ones."""
    jobs, ship = shop(url)
    handle = await jobs.submit(ship, Order(1), owner=WHO)
    await jobs.close()
    for free in (0, 1, 2):
        store = open_store(url, worker=True)
        worker = Worker(store, jobs.registry, jobs.settings, Options(lease=3, grace=2))
        ready = asyncio.Event()
        with ExitStack() as stack:
            for _ in range(14 - free):
                stack.enter_context(psycopg.connect(small.dsn()))
            running = asyncio.create_task(worker.run(on_ready=lambda _, ready=ready: ready.set()))
            await asyncio.sleep(3)
            assert not running.done(), running.exception()
        await asyncio.wait_for(ready.wait(), 20)
        worker.stop()
        assert await running is Exit.CLEAN
        await store.close()
    assert (await jobs.wait(handle.id, principal=WHO, timeout=20)).state == "completed"
    await jobs.close()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_more_workers_than_the_server_has_sessions_for(small: PostgresServer, url: str) -> None:
    """Five workers of up to six sessions each against thirteen: whatever they get, all work is done, and nobody ends."""
    jobs, ship = shop(url)
    handles = [await jobs.submit(ship, Order(n), owner=WHO) for n in range(100)]
    await jobs.close()
    stores = [open_store(url, worker=True) for _ in range(5)]
    workers = [Worker(store, jobs.registry, jobs.settings, Options(lease=3, grace=2)) for store in stores]
    with psycopg.connect(url, autocommit=True) as watching:  # later the test would get no session either
        running = [asyncio.create_task(worker.run()) for worker in workers]

        async def done() -> bool:
            return watching.execute("select count(*) from outlast.output").fetchone() == (len(handles),)

        took = await until(done, 60)
        print(f"done after {took:.1f} s; {sum(worker.ready for worker in workers)} of 5 workers got in")
        await asyncio.sleep(5)
        assert not [task for task in running if task.done()]
        for worker in workers:
            worker.stop()
        assert await asyncio.gather(*running) == [Exit.CLEAN] * 5
    for store in stores:
        await store.close()
    check(url, settled=True)


@asynccontextmanager
async def _behind_a_proxy(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    address, _, name = url.rpartition("/")
    with Proxy(int(address.rpartition(":")[2])) as proxy:
        yield proxy, f"postgresql://outlast@127.0.0.1:{proxy.port}/{name}"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are given up after a second of silence, a quiet listener is asked after half a one."""
    monkeypatch.setattr(store_module, "CONNECT_LIMIT", 2)
    monkeypatch.setattr(watchdog, "CALL_LIMIT", 1.0)
    monkeypatch.setattr(notify, "QUIET", 0.5)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_a_connection_that_swallows_everything_is_cut(url: str, colour: str) -> None:
    async with _behind_a_proxy(url) as (proxy, through):
        store = PostgresStore(through, patience=2)
        look = status.job(Scope("acme", "ann"), "019a0000-0000-7000-8000-000000000001")

        async def run() -> None:
            assert await (store.run(look) if colour == "async" else asyncio.to_thread(store.run_sync, look)) is None

        try:
            await run()
            proxy.swallow = True
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(run(), 30)
            took = time.monotonic() - began
            proxy.swallow = False

            async def answers() -> bool:
                try:
                    await run()
                except StoreUnavailable:
                    return False
                return True

            back = await until(answers, 30)
            print(f"{colour}: said after {took:.1f} s, and answered {back:.1f} s after the network was back")
            assert took < 12
            assert back < 10
        finally:
            await store.close()


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.usefixtures("hurried")
async def test_a_worker_gets_over_a_network_that_swallows(url: str) -> None:
    async with _behind_a_proxy(url) as (proxy, through):
        jobs, ship = shop(through)
        near, near_ship = shop(url)
        async with working(jobs, lease=3):
            handle = await jobs.submit(ship, Order(1), owner=WHO)
            assert (await jobs.wait(handle.id, principal=WHO, timeout=15)).state == "completed"
            proxy.swallow = True
            await asyncio.sleep(4)
            proxy.swallow = False
            handle = await near.submit(near_ship, Order(2), owner=WHO)
            assert (await near.wait(handle.id, principal=WHO, timeout=20)).state == "completed"
        await near.close()
        await jobs.close()
    check(url, settled=True)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.usefixtures("hurried")
async def test_a_listener_notices_that_nobody_is_there(url: str) -> None:
    async with _behind_a_proxy(url) as (proxy, through):
        heard: list[str] = []
        listening = asyncio.create_task(notify.listen(through, heard.append))
        try:
            for times in (1, 2):

                async def again(times: int = times) -> bool:
                    return heard.count("*") == times

                await until(again, 20)
                proxy.swallow = True
                await asyncio.sleep(2)
                proxy.swallow = False
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
