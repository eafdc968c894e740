"""What runs on its own and may crash: each with a loop of its own, and a store on the database that all share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from outlast.client._async import Client
from outlast.domain.errors import OutlastError
from outlast.worker.runtime import Exit, Options, Worker
from simulate import shop
from simulate.database import SimulatedStore
from simulate.loop import Loop
from simulate.people import Unreachable

if TYPE_CHECKING:
    from simulate.world import World

T = TypeVar("T")


class Process:
    """Something that runs on its own and may crash: a loop, a store, and what it does with them. `times`: how often, to others."""

    times = 1.0

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.loop = Loop(world.clock)
        self.awake_at = 0.0
        self.dead = False
        self.until_replaced = False
        self.number = world.next_number()

    def due_at(self) -> float | None:
        """When it goes on."""
        due = self.loop.due_at()
        return None if due is None else max(due, self.awake_at)

    def bury(self) -> None:
        """After a crash."""
        self.loop.abandon()


class People(Process):
    """The world outside, which does not crash."""


class Api(Process):
    """Answers calls of people."""

    times = 2.5

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.store = SimulatedStore(self)
        self.client = Client(shop.jobs._app, lambda: self.store)
        self._waiting: dict[asyncio.Future[Any], None] = {}  # in the order in which they asked

    async def answer(self, make: Callable[[Client], Awaitable[T]]) -> T:
        """What the call gives or raises; Unreachable where nobody says it."""
        if self.dead:
            raise Unreachable
        future: asyncio.Future[T] = self.world.people.loop.create_future()
        self._waiting[future] = None
        self.loop.call_soon(self._begin, make, future)
        try:
            return await future
        finally:
            self._waiting.pop(future, None)

    def _begin(self, make: Callable[[Client], Awaitable[T]], future: asyncio.Future[T]) -> None:
        self.loop.create_task(self._serve(make, future), name="call")

    async def _serve(self, make: Callable[[Client], Awaitable[T]], future: asyncio.Future[T]) -> None:
        value: T | None = None
        refusal: BaseException | None = None
        try:
            value = await make(self.client)
        except OutlastError as error:
            refusal = error
        except Exception as error:  # noqa: BLE001 - nothing but what is promised may come out of the client
            self.world.violated(f"api: {type(error).__name__}: {error}")
            refusal = Unreachable()
        fault = self.world.faults.draw("answer")
        if fault is not None:
            self.world.note(self, f"!! {fault.kind}")
            if fault.kind == "answer late":
                await asyncio.sleep(fault.degree * 150)
            else:
                refusal = Unreachable()
        if future.done():
            return
        if refusal is not None:
            future.set_exception(refusal)
        else:
            future.set_result(value)  # type: ignore[arg-type] # it is one

    def bury(self) -> None:
        for future in tuple(self._waiting):
            if not future.done():
                future.set_exception(Unreachable())
        super().bury()


class WorkerProcess(Process):
    """A whole worker: claimer, keeper, committer, attempts, sweep, purge and scheduler."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.store = SimulatedStore(self)
        self.worker = Worker(self.store, shop.jobs.registry, shop.SETTINGS, Options(queues=shop.SLOTS, grace=3.0))
        task = self.loop.create_task(self.worker.run(), name=name)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Exit]) -> None:
        if self.dead or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self.world.violated(f"worker: {self.name} ended with {type(error).__name__}: {error}")
        elif task.result() is Exit.LOOP_DIED:
            self.world.violated(f"worker: a loop of {self.name} died")
        self.dead = True
        self.world.gone(self)
