"""Runs calls on a store, without blocking the loop: what the async client and the HTTP API stand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from outlast.client import attaching, joining, submitting
from outlast.client.calls import Application, Call
from outlast.client.driving import adrive_call
from outlast.client.grouped import Groups
from outlast.client.turns import Turns
from outlast.domain.errors import Locked
from outlast.domain.model import Handle, JobView, Principal
from outlast.domain.work import Admission
from outlast.store.protocol import Store
from outlast.store.sessions.callers import AsyncTransaction
from outlast.store.sessions.transaction import Sessions

T = TypeVar("T")


class Desk:
    """The calls of one `Outlast`. The store is opened by the first of them."""

    def __init__(self, app: Application, store: Callable[[], Store], sessions: Sessions | None = None) -> None:
        self.app = app
        self.sessions = sessions or Sessions()
        self._store = store
        self._groups = Groups(store)
        self._turns = Turns()

    @property
    def store(self) -> Store:
        """The store that the calls run on."""
        return self._store()

    async def submit(self, prepared: Admission, transaction: AsyncTransaction | str | None = None) -> Handle:
        """Admits one job, with others that arrive meanwhile in one commit, and gives the workers a hint.

        In a transaction of the caller's it is alone, and nobody is told: whether it will be there is not known.
        """
        if transaction is not None:
            handles = await self._join([prepared], transaction)
            if handles is not None:
                return handles[0]
        if prepared.quota is not None:
            turn = self._turns.of((prepared.tenant, prepared.owner, prepared.kind))
            async with turn:
                handle = await self._admit(submitting.submit(self.app, prepared), [prepared])
        elif prepared.alone:
            handle = await self._admit(submitting.submit(self.app, prepared), [prepared])
        else:
            handle = await self.drive(submitting.admitted(self.app, prepared, await self._groups.admit(prepared)))
        self.store.announce(submitting.queues_of([prepared]))
        return handle

    async def attach(self, job_id: str, no: int, principal: Principal, target_version: str) -> JobView:
        """Applies a task's parked result to the target."""
        return await attaching.attach(
            self.app, self.store, self.sessions, job_id, no=no, principal=principal, target_version=target_version
        )

    async def submit_many(self, prepared: Sequence[Admission], transaction: AsyncTransaction | str | None = None) -> tuple[Handle, ...]:
        """Admits all or none, in one transaction."""
        if transaction is not None:
            handles = await self._join(prepared, transaction)
            if handles is not None:
                return handles
        handles = await self._admit(submitting.submit_many(self.app, prepared), prepared)
        self.store.announce(submitting.queues_of(prepared))
        return handles

    async def _join(self, prepared: Sequence[Admission], transaction: AsyncTransaction | str) -> tuple[Handle, ...] | None:
        return await joining.submit_joined(self.app, prepared, transaction, self.store)

    async def _admit(self, call: Call[T], prepared: Sequence[Admission]) -> T:
        try:
            return await self.drive(call)
        except Locked as error:
            raise submitting.still_admitting(error, prepared) from error

    async def drive(self, call: Call[T]) -> T:
        """Runs a call to its end."""
        return await adrive_call(call, self.store)
