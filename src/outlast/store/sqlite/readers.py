"""Reads on connections of their own, in threads of their own: no read transaction stays open between two statements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from outlast.store.drive import Fault, drive
from outlast.store.program import Operation, Rows, Statement
from outlast.store.sqlite import forks
from outlast.store.sqlite.connection import Connection
from outlast.store.sqlite.faults import fault_of
from outlast.store.sqlite.raw import ERRORS


class Readers:
    """A few threads, each with a connection, that run reading operations."""

    def __init__(self, connect: Callable[[], Connection], sql: Mapping[str, str], *, threads: int = 2) -> None:
        self._connect = connect
        self._sql = sql
        self._queue: SimpleQueue[tuple[Operation[Any], Future[Any]] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._loop, name=f"outlast-reader-{n}", daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, operation: Operation[Any]) -> Future[Any]:
        """The future of the operation's value."""
        future: Future[Any] = Future()
        self._queue.put((operation, future))
        return future

    def close(self) -> None:
        """Ends the threads after what is queued."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def _loop(self) -> None:
        connection: Connection | None = None
        while (item := self._queue.get()) is not None:
            operation, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                with forks.gate.work():
                    if connection is not None and connection.outdated:
                        connection.close()
                        connection = None
                    if connection is None:
                        connection = self._connect()
                    value = self._read(connection, operation)
            except Exception as error:
                if connection is not None and isinstance(error, ERRORS) and fault_of(error) is Fault.LOST:
                    with suppress(*ERRORS):
                        connection.close()
                    connection = None
                future.set_exception(error)
            else:
                future.set_result(value)
        if connection is not None:
            connection.close()

    def _read(self, connection: Connection, operation: Operation[Any]) -> Any:
        def execute(statement: Statement) -> Rows:
            return connection.execute(self._sql[statement.name], statement.params)

        return drive(operation.start(), execute)
