"""A store of each kind, and workers that end with their test."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from outlast import Outlast
from outlast.store.open import migrate, open_store
from outlast.worker.runtime import Exit, Options, Worker
from servers.postgres import PostgresServer
from worker.accounts import TABLE, Bank

_numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path / 'jobs.db'}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = f"worker_{next(_numbers)}"
        server.create_database(name)
        made = server.dsn(name)
    migrate(made)
    return made


@pytest.fixture
def bank(url: str) -> Bank:
    one = Bank(url)
    one.do(TABLE)
    one.do("insert into account values ('ann', 0)")
    return one


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Worker]]]:
    """Starts a worker of an application and returns it when it is ready; all of them end cleanly."""
    running: list[tuple[Worker, asyncio.Task[Exit]]] = []

    async def begin(jobs: Outlast, options: Options | None = None) -> Worker:
        store = open_store(jobs.url, worker=True)
        worker = Worker(store, jobs.registry, jobs.settings, options or Options(lease=5), sessions=jobs.sessions)
        ready = asyncio.Event()
        task = asyncio.create_task(worker.run(on_ready=lambda _id: ready.set()))
        running.append((worker, task))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return worker

    yield begin
    for worker, task in running:
        worker.stop()
        assert await task is Exit.CLEAN
        await worker._store.close()
