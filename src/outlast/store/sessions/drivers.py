"""The drivers' own connections: psycopg's, in both colours, and sqlite3's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from outlast.store.program import Rows
from outlast.store.sessions.marks import (
    COMMITTED,
    FATE,
    NUMBER,
    PRESENT,
    RELEASE,
    SAVEPOINT,
    VERSION,
    WRITER,
    idle,
    met_shut,
    no_such_savepoint,
    number,
    refuse_open,
    refuse_pipeline,
    shut,
    write_version,
)
from outlast.store.sessions.sides import Host

_READ_COMMITTED: Final = "begin isolation level read committed"
_SET_READ_COMMITTED: Final = "set transaction isolation level read committed"


class AsyncPsycopg:
    """A psycopg AsyncConnection. Outside of a transaction one is opened in words, whatever its autocommit says."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection
        self._mark: str | None = None

    async def begin(self) -> None:
        """See `AsyncSide`."""
        refuse_pipeline(self._connection)
        autocommit = self._connection.autocommit
        # Without autocommit the driver has sent a BEGIN of its own by then.
        await self._connection.execute(_READ_COMMITTED if autocommit else _SET_READ_COMMITTED)
        self._mark = str((await self.execute(NUMBER, {}))[0][0])

    async def intact(self) -> bool:
        """See `AsyncSide`."""
        if self._connection.closed:
            return not shut(self._connection)
        return not idle(self._connection) and bool((await self.execute(PRESENT, {}))[0][0] == self._mark)

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

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """See `AsyncSide`."""
        mark, self._mark = self._mark, None
        if mark is not None and cause is not None and shut(self._connection):
            return met_shut(cause)
        with suppress(Exception):
            await self._connection.execute("rollback")
            if mark is not None and cause is not None:
                fate = (await self.execute(FATE, {"mark": mark}))[0][0]
                await self._connection.rollback()
                return bool(fate == COMMITTED)
        return False


class Psycopg:
    """A psycopg Connection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection
        self._mark: str | None = None

    def begin(self) -> None:
        """See `SyncSide`."""
        refuse_pipeline(self._connection)
        autocommit = self._connection.autocommit
        self._connection.execute(_READ_COMMITTED if autocommit else _SET_READ_COMMITTED)
        self._mark = str(self.execute(NUMBER, {})[0][0])

    def intact(self) -> bool:
        """See `SyncSide`."""
        if self._connection.closed:
            return not shut(self._connection)
        return not idle(self._connection) and bool(self.execute(PRESENT, {})[0][0] == self._mark)

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

    def rollback(self, cause: BaseException | None = None) -> bool:
        """See `SyncSide`."""
        mark, self._mark = self._mark, None
        if mark is not None and cause is not None and shut(self._connection):
            return met_shut(cause)
        with suppress(Exception):
            self._connection.execute("rollback")
            if mark is not None and cause is not None:
                fate = self.execute(FATE, {"mark": mark})[0][0]
                self._connection.rollback()
                return bool(fate == COMMITTED)
        return False


class Sqlite:
    """A sqlite3 Connection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection
        self._mark: int | None = None

    @property
    def connection(self) -> Host:
        """The connection itself."""
        return self._connection

    def begin(self) -> None:
        """See `SyncSide`."""
        refuse_open(self._connection)
        self._connection.execute(WRITER)
        mark = number()
        self._connection.execute(write_version(mark))
        self._connection.execute(SAVEPOINT)
        self._mark = mark

    def intact(self) -> bool:
        """See `SyncSide`."""
        if not self._connection.in_transaction:
            return False
        try:
            self._connection.execute(RELEASE)
        except Exception as error:
            if not no_such_savepoint(error):
                raise
            return False
        self._connection.execute(SAVEPOINT)
        return True

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

    def rollback(self, cause: BaseException | None = None) -> bool:
        """See `SyncSide`."""
        mark, self._mark = self._mark, None
        with suppress(Exception):
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            return mark is not None and cause is not None and bool(self.execute(VERSION, {})[0][0] == mark)
        return False


def _tuples(_cursor: Host) -> Host:
    return tuple
