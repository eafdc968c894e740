"""Ends connections that do not answer: a network that swallows packets must not hold a caller for ever."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import psycopg

from outlast.store.postgres.session import CALL_LIMIT

Sync = psycopg.Connection[tuple[Any, ...]]


def cut(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Shuts the socket down, so that who waits on it meets an error."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.pgconn.socket))
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        finally:
            duplicate.close()


class limited:  # noqa: N801 - used as a with-statement's verb
    """Cuts a blocking connection that is silent for too long; one thread watches all of a process."""

    _watched: dict[int, tuple[float, Sync]] = {}  # noqa: RUF012 - shared on purpose
    _lock = threading.Lock()
    _watcher: threading.Thread | None = None

    def __init__(self, connection: Sync) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        cls = type(self)
        with cls._lock:
            cls._watched[id(self)] = (time.monotonic() + CALL_LIMIT, self._connection)
            if cls._watcher is None:
                cls._watcher = threading.Thread(target=cls._watch, name="outlast-watchdog", daemon=True)
                cls._watcher.start()

    def __exit__(self, *_exc: object) -> None:
        with type(self)._lock:
            type(self)._watched.pop(id(self), None)

    @classmethod
    def _watch(cls) -> None:
        while True:
            time.sleep(1)
            now = time.monotonic()
            with cls._lock:
                late = [c for until, c in cls._watched.values() if until < now]
            for connection in late:
                cut(connection)


def _forget() -> None:
    limited._watched = {}  # noqa: SLF001 - same module
    limited._lock = threading.Lock()  # noqa: SLF001
    limited._watcher = None  # noqa: SLF001


os.register_at_fork(after_in_child=_forget)
