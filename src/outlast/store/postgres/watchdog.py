"""Ends connections that do not answer: a network that swallows packets must not hold a caller for ever."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString, TypeVar

import psycopg

from outlast.store.postgres.session import CALL_LIMIT

Sync = psycopg.Connection[Any]
Row = TypeVar("Row")


def cut(connection: Sync | psycopg.AsyncConnection[Any]) -> None:
    """Shuts the socket down, so that who waits on it meets an error."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.pgconn.socket))
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        finally:
            duplicate.close()


async def answer(
    connection: psycopg.AsyncConnection[Row], sql: LiteralString | bytes, params: Mapping[str, Any] | Sequence[Any] | None = None
) -> psycopg.AsyncCursor[Row]:
    """Executes; cuts the connection if it says nothing for longer than any statement of ours takes."""
    handle = asyncio.get_running_loop().call_later(CALL_LIMIT, cut, connection)
    try:
        return await connection.execute(sql, params)
    finally:
        handle.cancel()


class Watchdog:
    """One thread that watches the blocking calls of a process, started at the first of them and anew after a fork."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew; in a forked child the thread is gone, and nobody will ever release the lock."""
        self._watched: dict[int, tuple[float, Sync]] = {}
        self._lock = threading.Lock()
        self._started = False
        self._next = 0

    @contextmanager
    def limited(self, connection: Sync) -> Generator[None, None, None]:
        """Cuts the connection if the block takes longer than any call of ours does."""
        with self._lock:
            self._next += 1
            token = self._next
            self._watched[token] = (time.monotonic() + CALL_LIMIT, connection)
            if not self._started:
                self._started = True
                threading.Thread(target=self._loop, name="outlast-watchdog", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._watched.pop(token, None)

    def _loop(self) -> None:
        while True:
            time.sleep(1)
            now = time.monotonic()
            with self._lock:
                late = [connection for until, connection in self._watched.values() if until < now]
            for connection in late:
                cut(connection)


watchdog = Watchdog()
os.register_at_fork(after_in_child=watchdog.forget)
