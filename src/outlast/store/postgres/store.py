"""The store on PostgreSQL, in both colours, over pools of psycopg connections."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import psycopg
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from outlast.domain.defaults import LEASE_POSTGRES, PATIENCE, SLOTS
from outlast.domain.errors import OutlastError
from outlast.store import migrate
from outlast.store.drive import Fault, SubPrograms, Tries, adrive, drive
from outlast.store.postgres.dialect import CLOCK, SCHEMA, schema_migrations, statements
from outlast.store.postgres.faults import fault_of
from outlast.store.postgres.migrating import applied_sql, to_applied
from outlast.store.postgres.notify import CHANNEL, listen
from outlast.store.postgres.session import CONNECT_LIMIT, PID, Profile, behind_pooler, pooled
from outlast.store.postgres.watchdog import answer, watchdog
from outlast.store.program import Access, Operation, Repeat, Rows, Statement, T
from outlast.store.programs import status
from outlast.store.programs.status import Whereabouts
from outlast.store.protocol import Hints

Async = psycopg.AsyncConnection[tuple[Any, ...]]
Sync = psycopg.Connection[tuple[Any, ...]]
BEGIN: Final = "begin isolation level read committed"
_NOTIFY_EVERY = 0.02
_abandoned: list[object] = []  # pools of the process that this one was forked from: never closed here


class PostgresStore:
    """Runs operations on PostgreSQL. One per process; pools are made at first use, one per event loop, and anew after a fork."""

    dialect = "postgresql"
    default_lease = LEASE_POSTGRES

    def __init__(
        self,
        conninfo: str,
        *,
        schema: str = SCHEMA,
        profile: Profile | None = None,
        size: int = 4,
        least: int = 0,
        now: str = CLOCK,
        patience: float = PATIENCE,
    ) -> None:
        self.conninfo = conninfo
        self.schema = schema
        self.profile = profile or Profile()
        self.hints = Hints()
        self._size = size
        self._least = least
        self._patience = patience
        self._now = now
        self._sql = {name: text.encode() for name, text in statements(schema, now).items()}
        self._pid = os.getpid()
        self._async: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncConnectionPool[Async]] = WeakKeyDictionary()
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Async]] = WeakKeyDictionary()
        self._sync: ConnectionPool[Sync] | None = None
        self._lending: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lending] = WeakKeyDictionary()
        self._lending_sync: _LendingSync | None = None
        self._most_lent = SLOTS
        self._checked = False
        self._whereabouts: Whereabouts | None = None
        self._lock = threading.Lock()
        self._announced = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    # -- async ------------------------------------------------------------------------------------------------

    async def run(self, operation: Operation[T]) -> T:
        """Runs the operation; see `Store`."""
        tries = Tries(operation, now=time.monotonic(), patience=self._patience)
        while True:
            step = _Step(operation)
            try:
                pool = await self._pool()
                async with pool.connection(timeout=self._patience) as connection:
                    if not self._checked:
                        await self._check(connection)
                    return await self._arun(connection, operation, step)
            except (OutlastError, asyncio.CancelledError):
                raise
            except Repeat:
                continue
            except Exception as error:
                pause = tries.pause(fault_of(error), now=time.monotonic(), certain=step.certain, cause=error)
            await asyncio.sleep(pause)

    async def _arun(self, connection: Async, operation: Operation[T], step: _Step) -> T:
        async def execute(statement: Statement) -> Rows:
            step.sent()
            cursor = await answer(connection, self._sql[statement.name], statement.params)
            return await cursor.fetchall() if cursor.description else ()

        local = pooled.get(connection, False)
        if operation.access is not Access.TRANSACTION and not local:
            return await adrive(operation.start(), execute)
        await answer(connection, BEGIN)
        try:
            if local:
                await answer(connection, self.profile.settings(local=True))
            value = await adrive(operation.start(), execute)
        except BaseException:
            with suppress(psycopg.Error):
                await answer(connection, "rollback")
            raise
        step.committing()
        await answer(connection, "commit")
        return value

    async def _pool(self) -> AsyncConnectionPool[Async]:
        self._after_fork()
        loop = asyncio.get_running_loop()
        pool = self._async.get(loop)
        if pool is None:
            self._forget_closed_loops()
            pool = self._async[loop] = self._make_pool("outlast", self._least, self._size)
            await pool.open()
        return pool

    def _make_pool(self, name: str, least: int, most: int) -> AsyncConnectionPool[Async]:
        return AsyncConnectionPool(
            self.conninfo,
            connection_class=psycopg.AsyncConnection[tuple[Any, ...]],
            kwargs={"autocommit": True, "application_name": "outlast", "connect_timeout": CONNECT_LIMIT},
            min_size=least,
            max_size=most,
            open=False,
            configure=self._aconfigure,
            reconnect_timeout=self._patience,
            timeout=self._patience,
            name=name,
        )

    def _forget_closed_loops(self) -> None:
        """Ends the connections of loops that ended without `close`: with one loop a call they would fill the server."""
        for loop in [loop for loop in self._async if loop.is_closed()]:
            self._async.pop(loop, None)
            self._lending.pop(loop, None)
            for connection in self._connections.pop(loop, ()):
                connection.pgconn.finish()

    async def _aconfigure(self, connection: Async) -> None:
        self._connections.setdefault(asyncio.get_running_loop(), WeakSet()).add(connection)
        row = await (await answer(connection, PID)).fetchone()
        if row is not None and behind_pooler(connection, row[0]):
            connection.prepare_threshold = None
            pooled[connection] = True
            return
        await answer(connection, self.profile.settings(local=False))

    async def _check(self, connection: Async) -> None:
        try:
            rows = await (await answer(connection, applied_sql(self.schema))).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            rows = []
        self._require(rows)

    # -- sync -------------------------------------------------------------------------------------------------

    def run_sync(self, operation: Operation[T]) -> T:
        """Runs the operation on a blocking connection; see `Store`."""
        tries = Tries(operation, now=time.monotonic(), patience=self._patience)
        while True:
            step = _Step(operation)
            try:
                with self._sync_pool().connection(timeout=self._patience) as connection, watchdog.limited(connection):
                    if not self._checked:
                        self._check_sync(connection)
                    return self._run(connection, operation, step)
            except OutlastError:
                raise
            except Repeat:
                continue
            except Exception as error:
                pause = tries.pause(fault_of(error), now=time.monotonic(), certain=step.certain, cause=error)
            time.sleep(pause)

    def _run(self, connection: Sync, operation: Operation[T], step: _Step) -> T:
        def execute(statement: Statement) -> Rows:
            step.sent()
            cursor = connection.execute(self._sql[statement.name], statement.params)
            return cursor.fetchall() if cursor.description else ()

        local = pooled.get(connection, False)
        if operation.access is not Access.TRANSACTION and not local:
            return drive(operation.start(), execute)
        connection.execute(BEGIN)
        try:
            if local:
                connection.execute(self.profile.settings(local=True))
            value = drive(operation.start(), execute)
        except BaseException:
            with suppress(psycopg.Error):
                connection.rollback()
            raise
        step.committing()
        connection.execute("commit")
        return value

    def _sync_pool(self) -> ConnectionPool[Sync]:
        self._after_fork()
        with self._lock:
            if self._sync is None:
                self._sync = self._make_sync_pool("outlast-sync", self._least, self._size)
            return self._sync

    def _make_sync_pool(self, name: str, least: int, most: int) -> ConnectionPool[Sync]:
        return ConnectionPool(
            self.conninfo,
            connection_class=psycopg.Connection[tuple[Any, ...]],
            kwargs={"autocommit": True, "application_name": "outlast", "connect_timeout": CONNECT_LIMIT},
            min_size=least,
            max_size=most,
            open=True,
            configure=self._configure,
            reconnect_timeout=self._patience,
            timeout=self._patience,
            name=name,
        )

    def _configure(self, connection: Sync) -> None:
        with watchdog.limited(connection):
            row = connection.execute(PID).fetchone()
            if row is not None and behind_pooler(connection, row[0]):
                connection.prepare_threshold = None
                pooled[connection] = True
                return
            connection.execute(self.profile.settings(local=False))

    def _check_sync(self, connection: Sync) -> None:
        try:
            rows = connection.execute(applied_sql(self.schema)).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            rows = []
        self._require(rows)

    # -- both -------------------------------------------------------------------------------------------------

    def _require(self, rows: list[tuple[Any, ...]]) -> None:
        migrate.require_migrated(schema_migrations(self.schema), to_applied(rows))
        self._checked = True

    def _after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        # Another thread of the parent may have held the lock at the fork; nobody will ever release it here.
        self._lock = threading.Lock()
        _abandoned.extend((self._sync, *self._async.values(), self._lending_sync, *self._lending.values()))
        self._lending_sync, self._lending = None, WeakKeyDictionary()
        self._sync, self._async, self._connections = None, WeakKeyDictionary(), WeakKeyDictionary()
        self._pid = os.getpid()

    @property
    def texts(self) -> Mapping[str, str]:
        """See `Store`."""
        return statements(self.schema, self._now)

    @property
    def subprograms(self) -> SubPrograms:
        """None: each statement is one."""
        return {}

    async def whereabouts(self, *, fresh: bool) -> Whereabouts:
        """See `Store`."""
        if self._whereabouts is None or fresh:
            self._whereabouts = await self.run(status.whereabouts())
        return self._whereabouts

    def whereabouts_sync(self, *, fresh: bool) -> Whereabouts:
        """See `Store`."""
        if self._whereabouts is None or fresh:
            self._whereabouts = self.run_sync(status.whereabouts())
        return self._whereabouts

    def fault_of(self, error: BaseException) -> Fault:
        """See `Store`."""
        return fault_of(error)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """See `Store`; any number at a time."""
        return nullcontext()

    def turn_sync(self) -> AbstractContextManager[None]:
        """See `Store`; any number at a time."""
        return nullcontext()

    def lend_at_most(self, connections: int) -> None:
        """See `Store`; before the first is lent."""
        self._most_lent = connections

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Async]:
        """A connection outside a transaction, of a pool of its own, so that what is lent for long takes none from the store's own work."""
        self._after_fork()
        loop = asyncio.get_running_loop()
        lending = self._lending.get(loop)
        if lending is None:
            self._forget_closed_loops()
            pool = self._make_pool("outlast-lent", 0, self._most_lent)
            lending = self._lending[loop] = _Lending(pool, asyncio.Semaphore(self._most_lent))
        # Waited for here, however long: in the pool's own queue a full pool could not be told from a server that does not answer.
        async with lending.free:
            await lending.pool.open()
            async with lending.pool.connection(timeout=self._patience) as connection:
                yield connection

    @contextmanager
    def lend_sync(self) -> Generator[Sync]:
        """The same for blocking code."""
        self._after_fork()
        with self._lock:
            if self._lending_sync is None:
                pool = self._make_sync_pool("outlast-lent-sync", 0, self._most_lent)
                self._lending_sync = _LendingSync(pool, threading.Semaphore(self._most_lent))
            lending = self._lending_sync
        with lending.free, lending.pool.connection(timeout=self._patience) as connection:
            yield connection

    def notes(self) -> tuple[str, ...]:
        """Nothing: what matters is seen at the connection (a pooler, say) and said there."""
        return ()

    def reserved(self) -> PostgresStore:
        """A store with one connection of its own, for the lease keeper."""
        other = PostgresStore(self.conninfo, schema=self.schema, profile=self.profile, size=1, least=1, patience=self._patience)
        other._sql = self._sql
        return other

    def announce(self, queues: tuple[str, ...]) -> None:
        """Hints to this process at once, to others by NOTIFY in a statement of its own, at most 50 times a second."""
        for queue in queues:
            self.hints.send(queue)
        now = time.monotonic()
        if now - self._announced < _NOTIFY_EVERY:
            return
        self._announced = now
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            with suppress(Exception), self._sync_pool().connection(timeout=1) as connection, watchdog.limited(connection):
                for queue in queues:
                    connection.execute("select pg_notify(%s, %s)", (CHANNEL, queue))
            return
        task = loop.create_task(self._notify(queues), name="outlast-notify")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self, queues: tuple[str, ...]) -> None:
        with suppress(Exception):
            pool = await self._pool()
            async with pool.connection(timeout=1) as connection:
                for queue in queues:
                    await answer(connection, "select pg_notify(%s, %s)", (CHANNEL, queue))

    async def listen(self) -> None:
        """Passes on what other processes announce, on a connection of its own; behind a pooler nothing comes."""
        await listen(self.conninfo, self.hints.send)

    async def close(self) -> None:
        """Closes the pool of this loop, and the blocking one."""
        for task in tuple(self._tasks):
            task.cancel()
        loop = asyncio.get_running_loop()
        pool, lending = self._async.pop(loop, None), self._lending.pop(loop, None)
        for one in (pool, lending.pool if lending is not None else None):
            if one is not None:
                await one.close(timeout=1)
        await asyncio.to_thread(self.close_sync)

    def close_sync(self) -> None:
        """Closes the blocking pools."""
        with self._lock:
            pool, self._sync = self._sync, None
            lending, self._lending_sync = self._lending_sync, None
        for one in (pool, lending.pool if lending is not None else None):
            if one is not None and self._pid == os.getpid():
                one.close(timeout=1)


@dataclass(frozen=True, slots=True)
class _Lending:
    """The connections that are lent on one loop."""

    pool: AsyncConnectionPool[Async]
    free: asyncio.Semaphore


@dataclass(frozen=True, slots=True)
class _LendingSync:
    """The connections that are lent to threads."""

    pool: ConnectionPool[Sync]
    free: threading.Semaphore


class _Step:
    """How far one try of an operation came: whether anything of it may have been committed."""

    __slots__ = ("_access", "certain")

    def __init__(self, operation: Operation[Any]) -> None:
        self._access = operation.access
        self.certain = True

    def sent(self) -> None:
        if self._access is Access.STATEMENT:
            self.certain = False

    def committing(self) -> None:
        self.certain = False
