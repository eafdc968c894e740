"""One transaction of the host's that ends with a guarded statement of ours: opened, run, judged, repeated where that is the answer.

Written once: `flow` yields what is to be done and receives what came of it, or the error; two drivers do it, in async code and in a
thread. The guard is the last statement, so that a claim that is over makes the whole transaction fail and nothing of it remains; the
host's rows come before ours in every transaction that has both.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from outlast.domain.errors import Locked, TransactionMisused
from outlast.store.drive import Fault, adrive, drive, with_subprograms
from outlast.store.program import Operation, Program, Rows, Statement
from outlast.store.protocol import Store
from outlast.store.sessions.inside import refuse, within
from outlast.store.sessions.opening import async_side, check_made, sync_side
from outlast.store.sessions.sides import AsyncSide, SyncSide, elsewhere, ended, fault_of, misused

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
    """Read on the worker's own store when the end is unknown or the guard did not hold; None: begin anew, all else is the answer.

    And before that on the session itself: one that sees another answer than the store works on another database.
    """


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
    def begin(self) -> Made: ...
    def look(self, operation: Operation[Any]) -> Made: ...
    def save(self, save: Callable[[Any], Any]) -> Made: ...
    def flush(self) -> Made: ...
    def run(self, guarded: Guarded[Any]) -> Made: ...
    def commit(self) -> Made: ...
    def rollback(self, cause: BaseException | None) -> Made: ...
    def ask(self, operation: Operation[Any]) -> Made: ...
    def rest(self, seconds: float) -> Made: ...


_Move: TypeAlias = Callable[[_Place], Any]


def flow(work: Work[R], fault: Callable[[BaseException], Fault]) -> Generator[_Move, Any, Landed[R] | Judged]:
    """The moves of one piece of work. Errors of `save`, and of its database that no repeat can cure, come out of it."""
    tries = 0
    while True:
        tries += 1
        landed = False
        ours = False  # whether the statement under way is one of ours
        try:
            yield lambda place: place.open()
            ours = True
            yield lambda place: place.begin()
            ours = False
            made = yield lambda place: place.save(work.save)
            yield lambda place: place.flush()
            guarded = work.last(made)
            ours = True
            value: R | None = yield partial(_run, guarded)
            if value is not None:
                landed = True
                yield lambda place: place.commit()
                return Landed(value)
            seen = yield lambda place: place.look(work.judge)
        except Exception as error:
            committed = yield partial(_rollback, error)
            found = fault(error)
            _explain(error, found, committed=committed and not landed, ours=ours and not landed)
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
        yield partial(_rollback, None)
        verdict = yield lambda place: place.ask(work.judge)
        if verdict is not None:
            return Judged(verdict)
        _refuse_to_repeat(seen, tries)
        yield partial(_rest, _PAUSE * tries)  # the guard met a row that another had for a moment


def _explain(error: Exception, found: Fault, *, committed: bool, ours: bool) -> None:
    """Raises what an error really means, where that is that session or function cannot be used so; nothing is repeated then."""
    if isinstance(error, TransactionMisused):
        raise error
    if committed:
        raise ended() from error
    if ours and found is Fault.SCHEMA:
        raise elsewhere() from error
    wrong = misused(error)
    if wrong is not None:
        raise wrong from error


def _refuse_to_repeat(seen: object, tries: int) -> None:
    """Raises where the guard did not hold, the claim does, and another try would not help."""
    if seen is not None:
        raise elsewhere()
    if tries >= TRIES:
        raise held_back()


def held_back() -> Locked:
    """The claim holds, and others held its rows at every try."""
    return Locked("Another transaction holds what this one needs. Nothing was written; try again.")


def _rollback(cause: BaseException | None, place: _Place) -> Made:
    return place.rollback(cause)


def _run(guarded: Guarded[Any], place: _Place) -> Made:
    return place.run(guarded)


def _rest(seconds: float, place: _Place) -> Made:
    return place.rest(seconds)


async def opened(stack: AsyncExitStack, store: Store, factory: SessionFactory) -> tuple[Any, AsyncSide]:
    """A session of the factory's, in its turn, and how to speak to it; the stack gives both back."""
    await stack.enter_async_context(store.turn())
    made = factory()
    check_made(made, asynchronous=True)
    session = await stack.enter_async_context(made)
    return session, async_side(session)


def opened_sync(stack: ExitStack, store: Store, factory: SyncSessionFactory) -> tuple[Any, SyncSide]:
    """The same in blocking code."""
    stack.enter_context(store.turn_sync())
    made = factory()
    check_made(made, asynchronous=False)
    session = stack.enter_context(made)
    return session, sync_side(session)


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
        self.db, self.side = await opened(self._stack, self._store, self._factory)

    async def begin(self) -> None:
        await self.opened.begin()

    async def look(self, operation: Operation[R]) -> R:
        return await adrive(with_subprograms(operation.start(), self._store.subprograms), self._execute)

    async def save(self, save: Callable[[Any], Any]) -> Made:
        with within(self._store):
            return await cast("Awaitable[Any]", save(self.db))

    async def flush(self) -> None:
        await self.opened.flush()
        if not await self.opened.intact():
            raise ended()

    async def ask(self, operation: Operation[Any]) -> Made:
        return await self._store.run(operation)

    async def rest(self, seconds: float) -> None:
        from asyncio import sleep  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        await sleep(seconds)

    async def run(self, guarded: Guarded[R]) -> R | None:
        return await adrive(with_subprograms(guarded.start(), self._store.subprograms), self._execute)

    async def _execute(self, statement: Statement) -> Rows:
        return await self.opened.execute(self._store.texts[statement.name], statement.params)

    async def commit(self) -> None:
        await self.opened.commit()
        await self._close()

    async def rollback(self, cause: BaseException | None = None) -> bool:
        committed = await self.side.rollback(cause) if self.side is not None else False
        await self._close()
        return committed

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
        self.db, self.side = opened_sync(self._stack, self._store, self._factory)

    def begin(self) -> None:
        self.opened.begin()

    def look(self, operation: Operation[R]) -> R:
        return drive(with_subprograms(operation.start(), self._store.subprograms), self._execute)

    def save(self, save: Callable[[Any], Any]) -> Made:
        with within(self._store):
            made = save(self.db)
        if inspect.iscoroutine(made):
            made.close()  # it has not begun
            raise TransactionMisused(
                "The function that was given a session returned a coroutine, and nobody awaits it there. Give the async function itself "
                "and its arguments, for example ctx.commit(grant, 1, 2), and no lambda around it; in a plain def give plain functions."
            )
        return made

    def flush(self) -> None:
        self.opened.flush()
        if not self.opened.intact():
            raise ended()

    def ask(self, operation: Operation[Any]) -> Made:
        return self._store.run_sync(operation)

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def run(self, guarded: Guarded[R]) -> R | None:
        return drive(with_subprograms(guarded.start(), self._store.subprograms), self._execute)

    def _execute(self, statement: Statement) -> Rows:
        return self.opened.execute(self._store.texts[statement.name], statement.params)

    def commit(self) -> None:
        self.opened.commit()
        self._close()

    def rollback(self, cause: BaseException | None = None) -> bool:
        committed = self.side.rollback(cause) if self.side is not None else False
        self._close()
        return committed

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
    refuse(store, "A function that is given a session")
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
    refuse(store, "A function that is given a session")
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
