"""The store on SQLite, in both colours: one writer thread and a few readers a process."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, cast

from outlast.domain.defaults import LEASE_SQLITE, PATIENCE
from outlast.domain.errors import Invalid, OutlastError, StoreUnavailable
from outlast.store import migrate
from outlast.store.drive import Fault, SubPrograms, Tries
from outlast.store.program import Access, Operation, Repeat, T
from outlast.store.programs.status import Whereabouts
from outlast.store.protocol import Hints
from outlast.store.sqlite import forks
from outlast.store.sqlite.build import linked
from outlast.store.sqlite.connection import Connection
from outlast.store.sqlite.dialect import CLOCK, schema_migrations, statements
from outlast.store.sqlite.faults import fault_of
from outlast.store.sqlite.migrating import read_applied
from outlast.store.sqlite.raw import ERRORS
from outlast.store.sqlite.readers import Readers
from outlast.store.sqlite.subprograms import SUBPROGRAMS
from outlast.store.sqlite.turns import Turns
from outlast.store.sqlite.writer import CommitFailed, Writer

_abandoned: list[object] = []  # threads and connections of the process that this one was forked from: never closed here


class SqliteStore:
    """Runs operations on one file, which any number of processes of one host may share."""

    dialect = "sqlite"
    default_lease = LEASE_SQLITE

    def __init__(self, path: str, *, now: str = CLOCK, patience: float = PATIENCE) -> None:
        self.path = path
        self.hints = Hints()
        self.before_write: Callable[[], None] | None = None
        """Asked in a thread that is about to wait for a write: refuses what would wait for the thread itself."""
        self._sql = statements(now)
        self._patience = patience
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._turns = Turns()

    async def run(self, operation: Operation[T]) -> T:
        """Runs the operation in the store's threads; see `Store`."""
        tries = Tries(operation, now=time.monotonic(), patience=self._patience)
        while True:
            try:
                return cast("T", await asyncio.wrap_future(self._submit(operation)))
            except (OutlastError, asyncio.CancelledError):
                raise
            except Repeat:
                continue
            except Exception as error:
                pause = self._pause(tries, error)
            await asyncio.sleep(pause)

    def run_sync(self, operation: Operation[T]) -> T:
        """Runs the operation in the store's threads and waits; see `Store`."""
        if self.before_write is not None and operation.access is not Access.READ:
            self.before_write()
        tries = Tries(operation, now=time.monotonic(), patience=self._patience)
        while True:
            try:
                return cast("T", self._submit(operation).result())
            except OutlastError:
                raise
            except Repeat:
                continue
            except Exception as error:
                pause = self._pause(tries, error)
            time.sleep(pause)

    def _pause(self, tries: Tries, error: Exception) -> float:
        commit = isinstance(error, CommitFailed)
        cause = error.__cause__ if commit and error.__cause__ is not None else error
        return tries.pause(fault_of(cause), now=time.monotonic(), certain=not commit, cause=cause)

    def _submit(self, operation: Operation[Any]) -> Future[Any]:
        writer, readers = self._open()
        if operation.access is Access.READ and self.path != ":memory:":
            return readers.submit(operation)
        return writer.submit(operation)

    def _after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        # Another thread of the parent may have held the lock at the fork; nobody will ever release it here.
        self._lock = threading.Lock()
        _abandoned.append((self._writer, self._readers))
        self._writer = self._readers = None
        self._turns = Turns()
        self._pid = os.getpid()

    def _open(self) -> tuple[Writer, Readers]:
        self._after_fork()
        with self._lock:
            if self._writer is None or self._readers is None:
                self._writer = Writer(self._connect, self._sql, self._turns)
                self._readers = Readers(self._connect, self._sql)
            return self._writer, self._readers

    def _connect(self) -> Connection:
        if self.path != ":memory:" and not Path(self.path).exists():
            migrate.require_migrated(schema_migrations(), ())
        try:
            connection = Connection(self.path)
        except ERRORS as error:
            if fault_of(error) in (Fault.CONFLICT, Fault.LOST):
                raise  # it may pass
            raise StoreUnavailable("The store's file cannot be opened. Check its path and permissions.") from error
        try:
            migrate.require_migrated(schema_migrations(), read_applied(connection))
        except BaseException:
            connection.close()
            raise
        if self.path != ":memory:":
            forks.gate.opened(connection)
        return connection

    @property
    def texts(self) -> Mapping[str, str]:
        """See `Store`."""
        return self._sql

    @property
    def subprograms(self) -> SubPrograms:
        """See `Store`."""
        return SUBPROGRAMS

    async def whereabouts(self, *, fresh: bool) -> Whereabouts:
        """See `Store`; its file, which need not be opened for it."""
        return self.whereabouts_sync(fresh=fresh)

    def whereabouts_sync(self, *, fresh: bool) -> Whereabouts:
        """See `Store`; its file, which need not be opened for it."""
        del fresh
        _require_standard("the caller's connection is the standard library's")
        return Whereabouts("" if self.path == ":memory:" else str(Path(self.path).resolve()), migrated=True)

    def fault_of(self, error: BaseException) -> Fault:
        """See `Store`."""
        return fault_of(error)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """See `Store`."""
        self._after_fork()
        return self._turns.turn()

    def turn_sync(self) -> AbstractContextManager[None]:
        """See `Store`."""
        self._after_fork()
        return self._turns.turn_sync()

    def lend_at_most(self, connections: int) -> None:
        """Nothing: one at a time has its turn."""

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[sqlite3.Connection]:
        """A connection of its own, as of `lend_sync`."""
        with self.lend_sync() as connection:
            yield connection

    @contextmanager
    def lend_sync(self) -> Generator[sqlite3.Connection]:
        """A connection of its own of the standard library's; Invalid where Outlast uses another SQLite on the same file."""
        _require_standard("name session= or use the standard driver")
        with forks.gate.work(), closing(sqlite3.connect(self.path, isolation_level=None, timeout=self._patience)) as connection:
            connection.execute("pragma synchronous = extra")
            yield connection

    def notes(self) -> tuple[str, ...]:
        """Which journal the build allows."""
        build = linked()
        if build.wal_is_safe:
            return ()
        note = f"SQLite {build} can corrupt a database in WAL mode (fixed in 3.51.3): this store uses the rollback journal, which is safe"
        return (f"{note} and slower. docs/sqlite.md says how to get a newer build.",)

    def reserved(self) -> SqliteStore:
        """This store: renewals go through its writer thread, ahead of the queue."""
        return self

    def announce(self, queues: tuple[str, ...]) -> None:
        """Hints to this process; other processes poll."""
        for queue in queues:
            self.hints.send(queue)

    async def listen(self) -> None:
        """Nothing comes from other processes."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Ends the threads after what is queued."""
        await asyncio.to_thread(self.close_sync)

    def close_sync(self) -> None:
        """Ends the threads after what is queued."""
        if self._pid != os.getpid():
            return
        with self._lock:
            writer, readers = self._writer, self._readers
            self._writer = self._readers = None
        if readers is not None:
            readers.close()
        if writer is not None:
            writer.close()


def _require_standard(why: str) -> None:
    if linked().driver != "sqlite3":
        raise Invalid(f"With OUTLAST_SQLITE_DRIVER=apsw no second SQLite may open the file: {why}.")
