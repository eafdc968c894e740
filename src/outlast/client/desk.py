"""Runs calls on a store, without blocking the loop: what the async client and the HTTP API stand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from outlast.client import calls
from outlast.client.calls import Application, Call
from outlast.client.grouped import Groups
from outlast.domain.errors import Locked
from outlast.domain.model import Handle
from outlast.domain.work import Admission
from outlast.store.protocol import Store

T = TypeVar("T")


class Desk:
    """The calls of one `Outlast`. The store is opened by the first of them."""

    def __init__(self, app: Application, store: Callable[[], Store]) -> None:
        self.app = app
        self._store = store
        self._groups = Groups(store)

    @property
    def store(self) -> Store:
        """The store that the calls run on."""
        return self._store()

    async def submit(self, prepared: Admission) -> Handle:
        """Admits one job, with others that arrive meanwhile in one commit, and gives the workers a hint."""
        handle = await self.drive(calls.admitted(self.app, prepared, await self._groups.admit(prepared)))
        self.store.announce(calls.queues_of([prepared]))
        return handle

    async def submit_many(self, prepared: Sequence[Admission]) -> tuple[Handle, ...]:
        """Admits all or none, in one transaction."""
        try:
            handles = await self.drive(calls.submit_many(self.app, prepared))
        except Locked as error:
            raise calls.still_admitting(error, prepared) from error
        self.store.announce(calls.queues_of(prepared))
        return handles

    async def drive(self, call: Call[T]) -> T:
        """Runs a call to its end."""
        from asyncio import sleep  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        try:
            wanted = next(call)
            while True:
                if isinstance(wanted, int | float):
                    await sleep(wanted)
                    wanted = call.send(None)
                else:
                    wanted = call.send(await self.store.run(wanted))
        except StopIteration as stop:
            value: T = stop.value
            return value
