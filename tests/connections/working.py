"""Workers and load in the test's own process, and what the server says of its sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from connections.shop import WHO, Order
from outlast import Outlast, OutlastError, Task
from outlast.observe.events import Event
from outlast.observe.hub import subscribe
from outlast.store.open import open_store
from outlast.worker.runtime import Exit, Options, Worker


@asynccontextmanager
async def working(jobs: Outlast, *, lease: float = 5, queues: dict[str, int] | None = None) -> AsyncIterator[Worker]:
    """A worker that is ready; at the end it must still be there, and stop cleanly."""
    store = open_store(jobs.url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(queues=queues, lease=lease, grace=5))
    ready = asyncio.Event()
    running = asyncio.create_task(worker.run(on_ready=lambda _: ready.set()))
    try:
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((running, waiting), timeout=30, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert ready.is_set(), "the worker does not come up"
        yield worker
        assert not running.done(), "the worker ended by itself"
    finally:
        worker.stop()
        ended = await running
        await store.close()
    assert ended is Exit.CLEAN


@dataclass
class Load:
    """Submits as fast as the store takes it, each order under its key until it is acknowledged."""

    jobs: Outlast
    ship: Task[Order, int]
    acknowledged: dict[int, str] = field(default_factory=dict)
    refused: int = 0
    _next: int = 0
    _going: bool = True

    async def run(self, callers: int = 4, pause: float = 0.02) -> None:
        await asyncio.gather(*(self._caller(pause) for _ in range(callers)))

    def stop(self) -> None:
        self._going = False

    async def _caller(self, pause: float) -> None:
        while self._going:
            number, self._next = self._next, self._next + 1
            while True:
                try:
                    handle = await self.jobs.submit(self.ship, Order(number), owner=WHO, key=f"order-{number}")
                except OutlastError as error:
                    if not error.retryable:
                        raise
                    self.refused += 1
                    if not self._going:
                        break
                    await asyncio.sleep(0.1)
                else:
                    self.acknowledged[number] = handle.id
                    break
            await asyncio.sleep(pause)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float, *, every: float = 0.05) -> float:
    """How long it took until the condition held; fails when it took longer."""
    began = time.monotonic()
    while not await condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        await asyncio.sleep(every)
    return time.monotonic() - began


def ask(server_url: str, sql: str, *params: object) -> list[tuple[Any, ...]]:
    """Rows from a session of the test's own."""
    with psycopg.connect(server_url, autocommit=True, application_name="test") as connection:
        return connection.execute(sql.encode(), params).fetchall()


def sessions(url: str, name: str = "outlast%") -> list[int]:
    """The server processes of Outlast's sessions in this database."""
    rows = ask(
        url,
        "select pid from pg_stat_activity where datname = current_database() and application_name like %s and pid <> pg_backend_pid()",
        name,
    )
    return [int(pid) for (pid,) in rows]


def terminate(url: str, pid: int) -> None:
    ask(url, "select pg_terminate_backend(%s)", pid)


def completed(url: str) -> int:
    """How many tasks have their result."""
    return int(ask(url, "select count(*) from outlast.output")[0][0])


@asynccontextmanager
async def events() -> AsyncIterator[list[Event]]:
    """What is reported meanwhile."""
    seen: list[Event] = []
    end = subscribe(seen.append)
    try:
        yield seen
    finally:
        end()
