"""The drivers' own connections: psycopg's, in both colours, and sqlite3's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from outlast.store.program import Rows
from outlast.store.sessions.sides import Host

_READ_COMMITTED: Final = "begin isolation level read committed"
_WRITER: Final = "begin immediate"


class AsyncPsycopg:
    """A psycopg AsyncConnection. Outside of a transaction one is opened in words, whatever its autocommit says."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection

    async def begin(self) -> None:
        """See `AsyncSide`."""
        autocommit = self._connection.autocommit
        # Without autocommit the driver has sent a BEGIN of its own by then.
        await self._connection.execute(_READ_COMMITTED if autocommit else "set transaction isolation level read committed")

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncSide`."""
        cursor = self._cursor()
        await cursor.execute(sql, params)
        return await cursor.fetchall() if cursor.description else ()

    def _cursor(self) -> Host:
        """A cursor that gives tuples, whatever the connection's row factory makes."""
        cursor = self._connection.cursor()
        cursor.row_factory = _tuples
        return cursor

    async def flush(self) -> None:
        """See `AsyncSide`."""

    async def commit(self) -> None:
        """See `AsyncSide`."""
        await self._connection.execute("commit")

    async def rollback(self) -> None:
        """See `AsyncSide`."""
        with suppress(Exception):
            await self._connection.execute("rollback")


class Psycopg:
    """A psycopg Connection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection

    def begin(self) -> None:
        """See `SyncSide`."""
        autocommit = self._connection.autocommit
        self._connection.execute(_READ_COMMITTED if autocommit else "set transaction isolation level read committed")

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `SyncSide`."""
        cursor = self._connection.cursor()
        cursor.row_factory = _tuples
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else ()

    def flush(self) -> None:
        """See `SyncSide`."""

    def commit(self) -> None:
        """See `SyncSide`."""
        self._connection.execute("commit")

    def rollback(self) -> None:
        """See `SyncSide`."""
        with suppress(Exception):
            self._connection.execute("rollback")


class Sqlite:
    """A sqlite3 Connection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection

    def begin(self) -> None:
        """See `SyncSide`."""
        self._connection.execute(_WRITER)

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `SyncSide`."""
        cursor = self._connection.cursor()
        cursor.row_factory = None
        rows: Rows = cursor.execute(sql, dict(params)).fetchall()
        return rows

    def flush(self) -> None:
        """See `SyncSide`."""

    def commit(self) -> None:
        """See `SyncSide`."""
        self._connection.execute("commit")

    def rollback(self) -> None:
        """See `SyncSide`."""
        with suppress(Exception):
            self._connection.execute("rollback")


def _tuples(_cursor: Host) -> Host:
    return tuple
