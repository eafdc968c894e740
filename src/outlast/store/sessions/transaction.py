"""One transaction of the host's that ends with a guarded statement of ours: opened, run, judged, repeated where that is the answer.

Written once: `flow` yields what is to be done and receives what came of it, or the error; two drivers do it, in async code and in a
thread. The guard is the last statement, so that a claim that is over makes the whole transaction fail and nothing of it remains; the
host's rows come before ours in every transaction that has both.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from outlast.store.drive import Fault, adrive, drive, with_subprograms
from outlast.store.program import Operation, Program, Rows, Statement
from outlast.store.protocol import Store
from outlast.store.sessions.opening import async_side, sync_side
from outlast.store.sessions.sides import AsyncSide, SyncSide, fault_of

T = TypeVar("T")
R = TypeVar("R")

TRIES: Final = 8
"""How often a transaction is begun anew after a serialization failure, a deadlock or a lost connection."""
_PAUSE: Final = 0.02

SessionFactory: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
SyncSessionFactory: TypeAlias = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Sessions:
    """What makes the host's sessions, for async functions and for plain ones; None: a connection of the store's driver is lent."""

    session: SessionFactory | None = None
    sync_session: SyncSessionFactory | None = None


@dataclass(frozen=True, slots=True)
class Guarded(Generic[R]):
    """A program that is the last statement of a transaction: None means that its guard did not hold."""

    start: Callable[[], Program[R | None]]


@dataclass(frozen=True, slots=True)
class Work(Generic[R]):
    """What one transaction does. `save` runs on the session; `last` makes the guarded program of what it returned."""

    save: Callable[[Any], Any]
    last: Callable[[Any], Guarded[R]]
    judge: Operation[Any]
    """Read on the worker's own store when the end is unknown or the guard did not hold; None: begin anew, all else is the answer."""


@dataclass(frozen=True, slots=True)
class Landed(Generic[R]):
    """The transaction committed, with what its guarded program gave."""

    value: R


@dataclass(frozen=True, slots=True)
class Judged:
    """The transaction is not there; what the store says instead."""

    verdict: Any


Made: TypeAlias = Any
"""What a move gives, or, in async code, what is awaited for it."""


class _Place(Protocol):
    """Where moves are made; what they give is awaited in async code."""

    def open(self) -> Made: ...
    def save(self, save: Callable[[Any], Any]) -> Made: ...
    def flush(self) -> Made: ...
    def run(self, guarded: Guarded[Any]) -> Made: ...
    def commit(self) -> Made: ...
    def rollback(self) -> Made: ...
    def ask(self, operation: Operation[Any]) -> Made: ...
    def rest(self, seconds: float) -> Made: ...


_Move: TypeAlias = Callable[[_Place], Any]


def flow(work: Work[R], fault: Callable[[BaseException], Fault]) -> Generator[_Move, Any, Landed[R] | Judged]:
    """The moves of one piece of work. Errors of `save`, and of its database that no repeat can cure, come out of it."""
    tries = 0
    while True:
        tries += 1
        landed = False
        try:
            yield lambda place: place.open()
            made = yield lambda place: place.save(work.save)
            yield lambda place: place.flush()
            guarded = work.last(made)
            value: R | None = yield partial(_run, guarded)
            if value is not None:
                landed = True
                yield lambda place: place.commit()
                return Landed(value)
        except Exception as error:
            yield lambda place: place.rollback()
            found = fault(error)
            if found not in (Fault.CONFLICT, Fault.LOCKED, Fault.LOST) or (tries >= TRIES and not landed):
                raise
            if landed and found is Fault.LOST:
                verdict = yield lambda place: place.ask(work.judge)
                if verdict is not None:
                    return Judged(verdict)
            if tries >= TRIES:
                raise
            yield partial(_rest, _PAUSE * tries)
            continue
        yield lambda place: place.rollback()
        verdict = yield lambda place: place.ask(work.judge)
        if verdict is not None:
            return Judged(verdict)
        if tries >= TRIES:
            return Judged(None)
        yield partial(_rest, _PAUSE * tries)  # the guard met a row that another had for a moment


def _run(guarded: Guarded[Any], place: _Place) -> Made:
    return place.run(guarded)


def _rest(seconds: float, place: _Place) -> Made:
    return place.rest(seconds)


class _AsyncPlace:
    """Where the moves of async code are made: one session at a time."""

    def __init__(self, store: Store, factory: SessionFactory | None) -> None:
        self._store = store
        self._factory = factory or store.lend
        self._stack = AsyncExitStack()
        self.db: Any = None
        self.side: AsyncSide | None = None

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        self.db = await self._stack.enter_async_context(self._factory())
        self.side = async_side(self.db)
        await self.side.begin()

    async def save(self, save: Callable[[Any], Any]) -> Made:
        return await cast("Awaitable[Any]", save(self.db))

    async def flush(self) -> None:
        await self.opened.flush()

    async def ask(self, operation: Operation[Any]) -> Made:
        return await self._store.run(operation)

    async def rest(self, seconds: float) -> None:
        from asyncio import sleep  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        await sleep(seconds)

    async def run(self, guarded: Guarded[R]) -> R | None:
        side = self.opened

        async def execute(statement: Statement) -> Rows:
            return await side.execute(self._store.texts[statement.name], statement.params)

        return await adrive(with_subprograms(guarded.start(), self._store.subprograms), execute)

    async def commit(self) -> None:
        await self.opened.commit()
        await self._close()

    async def rollback(self) -> None:
        if self.side is not None:
            await self.side.rollback()
        await self._close()

    @property
    def opened(self) -> AsyncSide:
        if self.side is None:
            raise RuntimeError("no transaction is open")
        return self.side

    async def _close(self) -> None:
        stack, self._stack, self.side = self._stack, AsyncExitStack(), None
        await stack.aclose()


class _SyncPlace:
    """The same for blocking code."""

    def __init__(self, store: Store, factory: SyncSessionFactory | None) -> None:
        self._store = store
        self._factory = factory or store.lend_sync
        self._stack = ExitStack()
        self.db: Any = None
        self.side: SyncSide | None = None

    def open(self) -> None:
        self._stack = ExitStack()
        self.db = self._stack.enter_context(self._factory())
        self.side = sync_side(self.db)
        self.side.begin()

    def save(self, save: Callable[[Any], Any]) -> Made:
        return save(self.db)

    def flush(self) -> None:
        self.opened.flush()

    def ask(self, operation: Operation[Any]) -> Made:
        return self._store.run_sync(operation)

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def run(self, guarded: Guarded[R]) -> R | None:
        side = self.opened

        def execute(statement: Statement) -> Rows:
            return side.execute(self._store.texts[statement.name], statement.params)

        return drive(with_subprograms(guarded.start(), self._store.subprograms), execute)

    def commit(self) -> None:
        self.opened.commit()
        self._close()

    def rollback(self) -> None:
        if self.side is not None:
            self.side.rollback()
        self._close()

    @property
    def opened(self) -> SyncSide:
        if self.side is None:
            raise RuntimeError("no transaction is open")
        return self.side

    def _close(self) -> None:
        stack, self._stack, self.side = self._stack, ExitStack(), None
        stack.close()


async def transact(work: Work[R], store: Store, factory: SessionFactory | None) -> Landed[R] | Judged:
    """Does the work in async code."""
    place = _AsyncPlace(store, factory)
    moves = flow(work, lambda error: fault_of(error, store.fault_of))
    try:
        move = next(moves)
        while True:
            try:
                made = await move(place)
            except Exception as error:  # noqa: BLE001 - the flow decides
                move = moves.throw(error)
            else:
                move = moves.send(made)
    except StopIteration as stop:
        found: Landed[R] | Judged = stop.value
        return found
    except BaseException:
        await place.rollback()
        raise


def transact_sync(work: Work[R], store: Store, factory: SyncSessionFactory | None) -> Landed[R] | Judged:
    """Does the work in this thread."""
    place = _SyncPlace(store, factory)
    moves = flow(work, lambda error: fault_of(error, store.fault_of))
    try:
        move = next(moves)
        while True:
            try:
                made = move(place)
            except Exception as error:  # noqa: BLE001 - the flow decides
                move = moves.throw(error)
            else:
                move = moves.send(made)
    except StopIteration as stop:
        found: Landed[R] | Judged = stop.value
        return found
    except BaseException:
        place.rollback()
        raise
