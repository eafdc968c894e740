"""The one writer thread of a process: many requests to a commit, each in its savepoint, so that one refused leaves the others whole."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from outlast.store.drive import Fault, drive, with_subprograms
from outlast.store.program import Operation, Repeat, Rows, Statement
from outlast.store.sqlite import forks
from outlast.store.sqlite.connection import BUSY_PATIENCE, Connection
from outlast.store.sqlite.faults import BUSY, fault_of
from outlast.store.sqlite.raw import ERRORS
from outlast.store.sqlite.subprograms import SUBPROGRAMS
from outlast.store.sqlite.turns import Turns

_BATCH = 256
_OF_ALL = frozenset({Fault.CONFLICT, Fault.LOST, Fault.READ_ONLY, Fault.FULL, Fault.REFUSED})
_REPEATS = 100
_LOOK = 0.25  # seconds between two looks at what has waited too long


class CommitFailed(Exception):
    """The commit itself met an error: what came of it is not known."""


class Request:
    """An operation waiting for the writer, and the future of its value."""

    __slots__ = ("asked", "future", "operation")

    def __init__(self, operation: Operation[Any]) -> None:
        self.operation = operation
        self.asked = time.monotonic()
        self.future: Future[Any] = Future()


class Writer:
    """Takes requests from any thread; commits what gathered while the last commit was under way, never by a timer."""

    def __init__(self, connect: Callable[[], Connection], sql: Mapping[str, str], turns: Turns | None = None) -> None:
        self._connect = connect
        self._turns = turns or Turns()
        self._sql = sql
        self._urgent: deque[Request] = deque()
        self._queue: deque[Request] = deque()
        self._ready = threading.Condition()
        self._closing = False
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._loop, name="outlast-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[Any]) -> Future[Any]:
        """The future of the operation's value; urgent ones go ahead of the queue."""
        request = Request(operation)
        with self._ready:
            if self._closing:
                raise sqlite3.OperationalError("the writer is closed")
            (self._urgent if operation.urgent else self._queue).append(request)
            self._ready.notify()
        return request.future

    def close(self) -> None:
        """Ends the thread after what is queued, and closes the connection."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join(timeout=10)

    def _loop(self) -> None:
        while True:
            with self._ready:
                while not (self._urgent or self._queue or self._closing):
                    self._ready.wait()
                batch = self._take()
            if not batch:
                break
            self._serve_in_turn([r for r in batch if r.future.set_running_or_notify_cancel()])
        if self._connection is not None:
            self._connection.close()

    def _take(self) -> list[Request]:
        batch = list(self._urgent)
        self._urgent.clear()
        while self._queue and len(batch) < _BATCH:
            batch.append(self._queue.popleft())
        return batch

    def _serve_in_turn(self, batch: list[Request]) -> None:
        """Waits for a transaction of the host's in this process: renewals until it is over, all else as long as for any other lock."""
        turn = self._turns.ask(first=True)
        try:
            while batch:
                try:
                    turn.result(timeout=_LOOK)
                except TimeoutError:
                    batch = self._patient([*batch, *self._gathered()])
                else:
                    self._serve(batch)
                    return
        finally:
            self._turns.give(turn)

    def _gathered(self) -> list[Request]:
        with self._ready:
            return [r for r in self._take() if r.future.set_running_or_notify_cancel()]

    def _patient(self, batch: list[Request]) -> list[Request]:
        """Those that go on waiting; the others are told that the file is busy."""
        late = time.monotonic() - BUSY_PATIENCE
        for request in batch:
            if not request.operation.urgent and request.asked <= late:
                request.future.set_exception(_busy())
        return [r for r in batch if not r.future.done()]

    def _serve(self, batch: list[Request]) -> None:
        if not batch:
            return
        try:
            with forks.gate.work():
                results = self._commit(batch)
        except Exception as error:
            for request in batch:
                request.future.set_exception(error)
            return
        for request, value, refusal in results:
            if refusal is None:
                request.future.set_result(value)
            else:
                request.future.set_exception(refusal)

    def _commit(self, batch: list[Request]) -> list[tuple[Request, Any, Exception | None]]:
        """What came of each, all in one transaction."""
        try:
            connection = self._open()
            connection.execute("begin immediate")
            results = [(r, *self._one(connection, r.operation, alone=len(batch) == 1)) for r in batch]
            try:
                connection.execute("commit")
            except ERRORS as error:
                raise CommitFailed from error
        except Exception as error:
            self._abandon(error)
            raise
        return results

    def _one(self, connection: Connection, operation: Operation[Any], *, alone: bool) -> tuple[Any, Exception | None]:
        def execute(statement: Statement) -> Rows:
            return connection.execute(self._sql[statement.name], statement.params)

        for _ in range(_REPEATS):
            if not alone:
                connection.execute("savepoint request")
            try:
                value = drive(with_subprograms(operation.start(), SUBPROGRAMS), execute)
            except Exception as error:
                if isinstance(error, ERRORS) and (fault_of(error) in _OF_ALL or not connection.in_transaction):
                    raise
                connection.execute("rollback" if alone else "rollback to request")
                connection.execute("begin immediate" if alone else "release request")
                if isinstance(error, Repeat):
                    continue
                return None, error
            if not alone:
                connection.execute("release request")
            return value, None
        return None, sqlite3.OperationalError("a program asked too often to be repeated")

    def _open(self) -> Connection:
        if self._connection is not None and self._connection.outdated:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _abandon(self, error: Exception) -> None:
        """Leaves no transaction open; a connection whose file failed is poisoned and opened anew."""
        connection = self._connection
        if connection is None:
            return
        cause = error.__cause__ if isinstance(error, CommitFailed) and error.__cause__ is not None else error
        poisoned = fault_of(cause) is not Fault.CONFLICT
        with suppress(*ERRORS):
            if connection.in_transaction:
                connection.execute("rollback")
        if poisoned or connection.in_transaction:
            with suppress(*ERRORS):
                connection.close()
            self._connection = None


def _busy() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("a transaction of the application holds the file")
    error.sqlite_errorcode = BUSY
    return error
