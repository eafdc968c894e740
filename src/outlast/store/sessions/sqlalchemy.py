"""SQLAlchemy's sessions and connections. Statements go through its own connection, never past it to the driver's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from outlast.domain.errors import Invalid
from outlast.store.program import Rows
from outlast.store.sessions.sides import Host

_DRIVERS: Final = {"psycopg": "postgresql", "psycopg_async": "postgresql", "pysqlite": "sqlite", "aiosqlite": "sqlite"}
_BEGIN: Final = {"postgresql": "set transaction isolation level read committed", "sqlite": "begin immediate"}


def dialect_of(connection: Host) -> str:
    """The store's dialect that a connection speaks; Invalid for a driver whose statements are written otherwise."""
    driver = str(connection.dialect.driver)
    if driver not in _DRIVERS:
        raise Invalid(f"SQLAlchemy's driver {driver!r} is not supported here; use postgresql+psycopg or sqlite.")
    return _DRIVERS[driver]


def rows_of(result: Host) -> Rows:
    """The rows of a result as tuples."""
    return [tuple(row) for row in result.fetchall()] if result.returns_rows else ()


class AsyncAlchemy:
    """An AsyncSession or AsyncConnection."""

    def __init__(self, session: Host) -> None:
        self._session = session
        # A session's `connection` is a method; a connection has a property of that name, which is the driver's.
        self._is_session = callable(getattr(session, "connection", None))

    async def _connection(self) -> Host:
        return await self._session.connection() if self._is_session else self._session

    async def begin(self) -> None:
        """See `AsyncSide`."""
        connection = await self._connection()
        await connection.exec_driver_sql(_BEGIN[dialect_of(connection)])

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncSide`."""
        return rows_of(await (await self._connection()).exec_driver_sql(sql, dict(params)))

    async def flush(self) -> None:
        """See `AsyncSide`."""
        flush = getattr(self._session, "flush", None)
        if flush is not None:
            await flush()

    async def commit(self) -> None:
        """See `AsyncSide`."""
        await self._session.commit()

    async def rollback(self) -> None:
        """See `AsyncSide`."""
        with suppress(Exception):
            await self._session.rollback()


class Alchemy:
    """A Session or Connection."""

    def __init__(self, session: Host) -> None:
        self._session = session

    def _connection(self) -> Host:
        # A Session's `connection` is a method; a Connection has a property of that name, which is the driver's.
        connection = getattr(self._session, "connection", None)
        return connection() if callable(connection) else self._session

    def begin(self) -> None:
        """See `SyncSide`."""
        connection = self._connection()
        connection.exec_driver_sql(_BEGIN[dialect_of(connection)])

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `SyncSide`."""
        return rows_of(self._connection().exec_driver_sql(sql, dict(params)))

    def flush(self) -> None:
        """See `SyncSide`."""
        flush = getattr(self._session, "flush", None)
        if flush is not None:
            flush()

    def commit(self) -> None:
        """See `SyncSide`."""
        self._session.commit()

    def rollback(self) -> None:
        """See `SyncSide`."""
        with suppress(Exception):
            self._session.rollback()
