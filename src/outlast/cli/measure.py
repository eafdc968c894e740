"""Measures a store: the real client and a real worker in one process, on jobs that do nothing."""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from outlast.app import Outlast
from outlast.cli.exits import Exit, Refused
from outlast.cli.work import store_for
from outlast.client.submitting import Submission
from outlast.domain.access import scope_of
from outlast.domain.defaults import Settings
from outlast.domain.errors import Invalid
from outlast.domain.kinds import Task
from outlast.domain.model import Principal
from outlast.domain.work import Filter
from outlast.observe.events import AttemptEnded, Event
from outlast.observe.hub import subscribe
from outlast.store.programs import status
from outlast.worker.context import Context
from outlast.worker.runtime import Options, Worker

KIND: Final = "outlast.bench"
TENANT: Final = "outlast-bench"
MOST_SINGLE: Final = 1_000
MOST_PICKUPS: Final = 200
SLOTS: Final = 500
_BATCH = 500
_RETENTION = 60.0
_IDLE = 1.0
_PATIENCE = 600.0


@dataclass(frozen=True)
class Nothing:
    """The input: the number of the job."""

    n: int


@dataclass(frozen=True, slots=True)
class Rate:
    """So many jobs took so long."""

    jobs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Pickup:
    """From the answer to a submit to the first line of the handler, one job at a time."""

    jobs: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All that is measured."""

    enqueue_single: Rate
    enqueue_bulk: Rate
    drain: Rate
    pickup: Pickup


class Bench:
    """One run. Its queue and its owner are its own, so that it neither takes nor counts the jobs of others."""

    def __init__(self, url: str) -> None:
        self._run = secrets.token_hex(4)
        self.app = Outlast(url, settings=Settings(retention=_RETENTION))
        self.owner = Principal(TENANT, f"run-{self._run}")
        self.queue = f"bench.{self._run}"
        self._picked: asyncio.Queue[float] = asyncio.Queue()
        self._expected = 0
        self._ended = 0
        self._all_ended = asyncio.Event()
        self._kind = self._register()

    def _register(self) -> Task[Nothing, None]:
        @self.app.task(name=KIND, queue=self.queue)
        async def nothing(_ctx: Context, _order: Nothing) -> None:
            self._picked.put_nowait(time.perf_counter())

        return nothing

    async def figures(self, jobs: int) -> Figures:
        """Submits, drains and picks up; `jobs` for bulk and drain."""
        await self._refuse_others()
        single = await self._single(min(jobs, MOST_SINGLE))
        bulk = await self._bulk(jobs)
        self._expected = single.jobs + bulk.jobs
        unsubscribe = subscribe(self._hear)
        try:
            async with self._worker() as began:
                await self._until_all_ended()
                drain = Rate(self._expected, time.perf_counter() - began)
                pickup = await self._pickup(min(jobs, MOST_PICKUPS))
        finally:
            unsubscribe()
        await self._check()
        return Figures(single, bulk, drain, pickup)

    async def close(self) -> None:
        """Gives the connections back."""
        await self.app.close()

    async def _refuse_others(self) -> None:
        unfinished = await self.app.store.run(status.unfinished_handlers())
        others = sum(row.count for row in unfinished if not row.handler.startswith(f"{KIND}@"))
        if others:
            raise Invalid(
                f"The store has {others} unfinished tasks of others, which the load would slow down and which would falsify the figures. "
                "Measure on a store of its own: --store URL."
            )

    async def _single(self, jobs: int) -> Rate:
        began = time.perf_counter()
        for n in range(jobs):
            await self.app.submit(self._kind, Nothing(n), owner=self.owner)
        return Rate(jobs, time.perf_counter() - began)

    async def _bulk(self, jobs: int) -> Rate:
        began = time.perf_counter()
        for first in range(0, jobs, _BATCH):
            batch = [Submission(self._kind, Nothing(n)) for n in range(first, min(first + _BATCH, jobs))]
            await self.app.submit_many(batch, owner=self.owner)
        return Rate(jobs, time.perf_counter() - began)

    @asynccontextmanager
    async def _worker(self) -> AsyncGenerator[float]:
        """A worker that is ready; the value is when it was."""
        store = store_for(self.app)
        worker = Worker(store, self.app.registry, self.app.settings, Options({self.queue: SLOTS}))
        ready: asyncio.Future[float] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            if await worker.run(on_ready=lambda _id: ready.set_result(time.perf_counter())):
                raise Refused("The worker ended before the measurement did; see the log above.", Exit.DEFECT, code="worker")

        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(work())
                try:
                    yield await ready
                finally:
                    worker.stop()
                    await asyncio.wait({task})
                    await store.close()
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None

    def _hear(self, event: Event) -> None:
        if isinstance(event, AttemptEnded) and event.task.startswith(f"{KIND}@") and event.outcome == "completed":
            self._ended += 1
            if self._ended >= self._expected:
                self._all_ended.set()

    async def _until_all_ended(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._all_ended.wait()
        except TimeoutError:
            text = f"Only {self._ended} of {self._expected} jobs ended in {_PATIENCE:g} s. Try fewer: --jobs N."
            raise Refused(text, Exit.UNAVAILABLE, code="too_slow") from None

    async def _pickup(self, jobs: int) -> Pickup:
        while not self._picked.empty():
            self._picked.get_nowait()
        self._expected += jobs
        self._all_ended.clear()
        latencies: list[float] = []
        await asyncio.sleep(_IDLE)
        for n in range(jobs):
            await self.app.submit(self._kind, Nothing(n), owner=self.owner)
            answered = time.perf_counter()
            latencies.append(max(await self._picked.get() - answered, 0.0) * 1000)
            await asyncio.sleep(0.005 + n % 10 * 0.005)
        await self._until_all_ended()
        cuts = statistics.quantiles(latencies, n=100, method="inclusive") if jobs > 1 else latencies * 99
        return Pickup(jobs, round(cuts[49], 3), round(cuts[98], 3))

    async def _check(self) -> None:
        """The events said that all jobs ended; so must the store."""
        rows, _ = await self.app.store.run(status.jobs(scope_of(self.owner, "read"), Filter("active"), limit=1, before=None))
        if rows:
            raise Refused("A job of this run is still unfinished, though its end was reported.", Exit.DEFECT, code="lost")
