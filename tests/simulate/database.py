"""One SQLite in memory, used by one seed after the other, and the three things of the real store that need threads, without them.

`SimulatedStore` is the real `SqliteStore`: its retries, its batches with their savepoints, its sub-programs. Its writer and its readers
work when the loop of their process comes to them, and each of their statements passes through the world, where faults are.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from outlast.domain.errors import OutlastError
from outlast.store.drive import Tries, drive
from outlast.store.program import Access, Operation, Program, Repeat, Rows, Statement
from outlast.store.sqlite.dialect import statements
from outlast.store.sqlite.migrating import apply_on
from outlast.store.sqlite.store import SqliteStore
from outlast.store.sqlite.writer import Request, Writer
from simulate.loop import Clock

if TYPE_CHECKING:
    from simulate.processes import Process

NOW = "simulated_now()"
SQL: Mapping[str, str] = statements(NOW)
_BETWEEN = 0.2
"""How often time passes between two statements of a read."""
_CODES = {"busy": 5, "lost": 10, "full": 13}


class Crashed(BaseException):
    """The process is gone: nothing of it goes on."""


def error_of(kind: str) -> sqlite3.OperationalError:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(f"simulated: {kind}")
    error.sqlite_errorcode = _CODES[kind]
    return error


class Database:
    """Migrated once; `reset` leaves its tables empty, and the statements that were prepared as they are."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self.raw = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self.raw.create_function(NOW[:-2], 0, self._now)
        apply_on(self)  # type: ignore[arg-type] # it has the three methods that are asked of a connection
        found = self.raw.execute("select name from sqlite_master where type = 'table' and name like 'outlast_%'").fetchall()
        self._tables = [name for (name,) in found if name != "outlast_migration"]

    def execute(self, sql: str, params: Any = ()) -> Rows:
        return self.raw.execute(sql, params).fetchall()

    def _now(self) -> int:
        return self.clock.ms()

    @property
    def in_transaction(self) -> bool:
        return self.raw.in_transaction

    def reset(self, clock: Clock) -> None:
        """No rows, and another clock."""
        if self.raw.in_transaction:
            self.raw.execute("rollback")
        for name in self._tables:
            self.raw.execute(f"delete from {name}")
        self.clock = clock

    def read(self, program: Program[Any]) -> Any:
        """The value of a program that only reads, beside all that is simulated."""
        return drive(program, lambda statement: self.raw.execute(SQL[statement.name], statement.params).fetchall())


class _Session:
    """What the writer and the readers have for a connection."""

    outdated = False

    def __init__(self, process: Process, *, reading: bool) -> None:
        self._process = process
        self._reading = reading

    def execute(self, sql: str, params: Any = ()) -> Rows:
        return self._process.world.execute(self._process, sql, params, reading=self._reading)

    @property
    def in_transaction(self) -> bool:
        return self._process.world.database.in_transaction

    def close(self) -> None:
        """The database is everybody's."""


class _Answer(asyncio.Future[Any]):
    """What a request is answered with, for a loop alone: a future of threads costs as much as the rest of a statement."""

    def set_running_or_notify_cancel(self) -> bool:
        return not self.cancelled()

    def set_result(self, result: Any) -> None:
        if not self.done():
            super().set_result(result)

    def set_exception(self, exception: Any) -> None:
        if not self.done():
            super().set_exception(exception)


def _request(operation: Operation[Any], process: Process) -> Request:
    request = Request.__new__(Request)
    request.operation = operation
    request.asked = 0.0
    request.future = _Answer(loop=process.loop)  # type: ignore[assignment] # it is awaited as it is
    return request


class _Writer(Writer):
    """The real one, without its thread: it takes its turn when the loop comes to it, and then what has gathered."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._connect = lambda: _Session(process, reading=False)
        self._sql = process.world.sql
        self._urgent: deque[Request] = deque()
        self._queue: deque[Request] = deque()
        self._connection = None
        self._due = False

    def submit(self, operation: Operation[Any]) -> Future[Any]:
        request = _request(operation, self._process)
        (self._urgent if operation.urgent else self._queue).append(request)
        if not self._due:
            self._due = True
            self._process.loop.call_later(self._process.world.random.uniform(0.0, 0.02), self.turn)
        return request.future

    def turn(self, now: Request | None = None) -> None:
        """One commit of what has gathered; who asks for it `now` is in it in any case."""
        if now is not None:
            self._urgent.append(now)
            self._serve([r for r in self._take() if r.future.set_running_or_notify_cancel()])
            return
        self._due = False
        if self._process.world.before_turn(self._process, [r.operation.name for r in (*self._urgent, *self._queue)]):
            self._due = True
            self._process.loop.call_soon(self.turn)
            return
        batch = [r for r in self._take() if r.future.set_running_or_notify_cancel()]
        self._serve(batch)

    def close(self) -> None:
        """There is nothing to close."""


class _Readers:
    """A statement at a time, so that others write between two of them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._session = _Session(process, reading=True)

    def submit(self, operation: Operation[Any]) -> Future[Any]:
        future = _Answer(loop=self._process.loop)
        self._process.loop.call_soon(self._begin, operation.start(), future)
        return future  # type: ignore[return-value] # as that of the writer

    def _begin(self, program: Program[Any], future: _Answer) -> None:
        if future.set_running_or_notify_cancel():
            self._go(program, future, None)

    def _go(self, program: Program[Any], future: _Answer, rows: Rows | None) -> None:
        try:
            statement = program.send(rows)  # type: ignore[arg-type] # None starts it
            found = self._statement(statement)
        except StopIteration as stop:
            future.set_result(stop.value)
        except Exception as error:  # noqa: BLE001 - it is the caller's
            future.set_exception(error)
        else:
            loop, random = self._process.loop, self._process.world.random
            if random.random() < _BETWEEN:
                loop.call_later(random.uniform(0.0, 0.2), self._go, program, future, found)
            else:
                loop.call_soon(self._go, program, future, found)

    def now(self, operation: Operation[Any]) -> Any:
        """All of it at once."""
        return drive(operation.start(), self._statement)

    def _statement(self, statement: Statement) -> Rows:
        return self._session.execute(self._process.world.sql[statement.name], statement.params)

    def close(self) -> None:
        """There is nothing to close."""


class SimulatedStore(SqliteStore):
    """The real store on the simulated database."""

    def __init__(self, process: Process) -> None:
        super().__init__("simulated.db", now=NOW)
        self._sql = process.world.sql
        self._process = process
        self._writing = _Writer(process)
        self._reading = _Readers(process)

    def _open(self) -> Any:
        return self._writing, self._reading

    def run_sync(self, operation: Operation[Any]) -> Any:
        """At once, and once: who waits in a thread of its own, the lease keeper, comes again soon anyway."""
        tries = Tries(operation, now=0.0, patience=0.0)
        while True:
            try:
                if operation.access is Access.READ:
                    return self._reading.now(operation)
                request = _request(operation, self._process)
                self._writing.turn(request)
                return request.future.result()
            except OutlastError:
                raise
            except Repeat:
                continue
            except Exception as error:
                self._pause(tries, error)
                raise

    def notes(self) -> tuple[str, ...]:
        return ()
