"""Faults at a chosen statement of an operation, or at its commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import errors

from contract.backends import Backend
from outlast.store.sqlite.connection import Connection

Cut = Callable[[str], bool]


class Injected(Exception):
    """Something that no driver raises: a defect in a program, say."""


class FaultySql(dict[str, Any]):
    """A store's statements; the armed one raises instead of being looked up, before anything of it reached the database."""

    def __init__(self, statements: Mapping[str, Any]) -> None:
        super().__init__(statements)
        self._left = 0
        self._error: Callable[[], BaseException] = Injected
        self.fired = 0
        self.always = False

    def arm(self, statement: int, error: Callable[[], BaseException], *, always: bool = False) -> None:
        """The n-th statement from now on raises, once; `always`: it and all that follow."""
        self._left, self._error, self.fired, self.always = statement, error, 0, always

    def disarm(self) -> None:
        """Nothing raises any more."""
        self._left = 0

    def __getitem__(self, name: str) -> Any:
        if self._left:
            self._left -= 1
            if not self._left:
                self.fired += 1
                self._left = 1 if self.always else 0
                raise self._error()
        return super().__getitem__(name)


def faulty(backend: Backend) -> FaultySql:
    """Puts faulty statements into a store that has not run anything yet, or takes out those that are there."""
    store = backend.store
    if not isinstance(store._sql, FaultySql):
        store._sql = FaultySql(store._sql)
    return store._sql


def error_of(backend: Backend, meaning: str) -> Callable[[], BaseException]:
    """What the store's driver raises."""
    if meaning == "unknown":
        return Injected
    if backend.name == "sqlite":
        return lambda: sqlite_error(meaning)
    return _POSTGRES[meaning]


_POSTGRES: Mapping[str, Callable[[], BaseException]] = {
    "conflict": errors.SerializationFailure,
    "deadlock": errors.DeadlockDetected,
    "lost": lambda: psycopg.OperationalError("the connection is gone"),
    "data": errors.NumericValueOutOfRange,
    "full": errors.DiskFull,
    "read_only": errors.ReadOnlySqlTransaction,
}
_SQLITE = {
    "conflict": (sqlite3.OperationalError, 5),
    "deadlock": (sqlite3.OperationalError, 6),
    "lost": (sqlite3.OperationalError, 10),
    "data": (sqlite3.IntegrityError, 19),
    "full": (sqlite3.OperationalError, 13),
    "read_only": (sqlite3.OperationalError, 8),
}


def sqlite_error(meaning: str) -> sqlite3.Error:
    """An error as SQLite raises it."""
    kind, code = _SQLITE[meaning]
    error = kind(meaning)
    error.sqlite_errorcode = code
    return error


class Cutter:
    """Loses the connection at chosen statements: before they reach the server, or after it did them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
        self._backend = backend
        self._matches: Cut = lambda _sql: False
        self._after = False
        self.left = 0
        self.cut = 0
        if backend.name == "sqlite":
            self._patch_sqlite(monkeypatch)
        else:
            self._patch_postgres(monkeypatch)

    @contextmanager
    def at(self, matches: Cut, *, after: bool, times: int = 1) -> Iterator[None]:
        """While it lasts."""
        self._matches, self._after, self.left, self.cut = matches, after, times, 0
        try:
            yield
        finally:
            self.left = 0

    def _hit(self, sql: object) -> bool:
        if not self.left or not self._matches(sql.decode() if isinstance(sql, bytes) else str(sql)):
            return False
        self.left -= 1
        self.cut += 1
        return True

    def _patch_sqlite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Connection.execute
        cutter = self

        def execute(self: Connection, sql: str, params: Any = ()) -> Any:
            if not cutter._hit(sql):
                return original(self, sql, params)
            if cutter._after:
                original(self, sql, params)
            raise sqlite_error("lost")

        monkeypatch.setattr(Connection, "execute", execute)

    def _patch_postgres(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original, original_async = psycopg.Connection.execute, psycopg.AsyncConnection.execute
        cutter = self

        def execute(self: psycopg.Connection[Any], query: Any, *args: Any, **options: Any) -> Any:
            if not cutter._hit(query):
                return original(self, query, *args, **options)
            if cutter._after:
                original(self, query, *args, **options)
            self.close()
            raise psycopg.OperationalError("the connection is gone")

        async def execute_async(self: psycopg.AsyncConnection[Any], query: Any, *args: Any, **options: Any) -> Any:
            if not cutter._hit(query):
                return await original_async(self, query, *args, **options)
            if cutter._after:
                await original_async(self, query, *args, **options)
            await self.close()
            raise psycopg.OperationalError("the connection is gone")

        monkeypatch.setattr(psycopg.Connection, "execute", execute)
        monkeypatch.setattr(psycopg.AsyncConnection, "execute", execute_async)
