"""SQLAlchemy's sessions and connections. Statements go through its own connection, never past it to the driver's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Literal

from outlast.store.program import Rows
from outlast.store.sessions.marks import (
    BECOME_WRITER,
    COMMITTED,
    FATE,
    NUMBER,
    PRESENT,
    RELEASE,
    SAVEPOINT,
    VERSION,
    WRITER,
    no_such_savepoint,
    number,
    refuse_autocommit,
    write_version,
)
from outlast.store.sessions.sides import Host, invalid

DRIVERS: Final[Mapping[str, Literal["postgresql", "sqlite"]]] = {
    "psycopg": "postgresql",
    "psycopg_async": "postgresql",
    "asyncpg": "postgresql",
    "pysqlite": "sqlite",
    "aiosqlite": "sqlite",
}
_PLACEHOLDER: Final = re.compile(r"%%|%\((\w+)\)s")
_READ_COMMITTED: Final = "set transaction isolation level read committed"


def dialect_of(connection: Host) -> Literal["postgresql", "sqlite"]:
    """The store's dialect that a connection speaks; TransactionMisused for a driver whose statements are written otherwise."""
    driver = str(connection.dialect.driver)
    if driver not in DRIVERS:
        raise invalid(
            f"SQLAlchemy's driver {driver!r} is not supported here: use postgresql+psycopg, postgresql+asyncpg, sqlite or sqlite+aiosqlite."
        )
    return DRIVERS[driver]


def rows_of(result: Host) -> Rows:
    """The rows of a result as tuples."""
    return [tuple(row) for row in result.fetchall()] if result.returns_rows else ()


def written(connection: Host, sql: str, params: Mapping[str, Any]) -> tuple[str, Any]:
    """The statement and its parameters as the connection's driver takes them."""
    if connection.dialect.driver != "asyncpg":
        return sql, dict(params)
    text, names = _numbered(sql)
    return text, tuple(params[name] for name in names)


@lru_cache(maxsize=256)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """The statement with numbered placeholders, and the names in their order."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match.group(1)
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _PLACEHOLDER.sub(number, sql), tuple(names)


class AsyncAlchemy:
    """An AsyncSession or AsyncConnection."""

    def __init__(self, session: Host) -> None:
        self._session = session
        # A connection has a property `connection` too, which raises when it is looked at.
        self._is_session = hasattr(session, "sync_session")
        self._mark: str | int | None = None
        self._driver: Host = None

    async def _connection(self) -> Host:
        return await self._session.connection() if self._is_session else self._session

    async def begin(self) -> None:
        """See `AsyncSide`."""
        connection = await self._connection()
        dialect = dialect_of(connection)
        raw = await connection.get_raw_connection()
        self._driver = raw.driver_connection
        if dialect == "postgresql":
            refuse_autocommit(raw.dbapi_connection if connection.dialect.driver == "asyncpg" else self._driver)
            await connection.exec_driver_sql(_READ_COMMITTED)
            self._mark = str((await self.execute(NUMBER, {}))[0][0])
            return
        await connection.exec_driver_sql(BECOME_WRITER if self._driver.in_transaction else WRITER)
        mark = number()
        await connection.exec_driver_sql(write_version(mark))
        await connection.exec_driver_sql(SAVEPOINT)
        self._mark = mark

    async def intact(self) -> bool:
        """See `AsyncSide`."""
        if getattr(self._session, "closed", False):  # a connection's; a session that was closed opens itself anew
            return False
        if isinstance(self._mark, str):
            return bool((await self.execute(PRESENT, {}))[0][0] == self._mark)
        connection = await self._connection()
        try:
            await connection.exec_driver_sql(RELEASE)
        except Exception as error:
            if not no_such_savepoint(error):
                raise
            return False
        await connection.exec_driver_sql(SAVEPOINT)
        return True

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncSide`."""
        connection = await self._connection()
        return rows_of(await connection.exec_driver_sql(*written(connection, sql, params)))

    async def flush(self) -> None:
        """See `AsyncSide`."""
        if self._is_session:
            await self._session.flush()

    async def commit(self) -> None:
        """See `AsyncSide`."""
        await self._session.commit()

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """See `AsyncSide`."""
        mark, self._mark = self._mark, None
        with suppress(Exception):
            await self._session.rollback()
            if mark is None or cause is None:
                return False
            if isinstance(mark, str):
                fate = (await self.execute(FATE, {"mark": mark}))[0][0]
                await self._session.rollback()
                return bool(fate == COMMITTED)
            row = await (await self._driver.execute(VERSION)).fetchone()
            return bool(row[0] == mark)
        return False


class Alchemy:
    """A Session or Connection."""

    def __init__(self, session: Host) -> None:
        self._session = session
        # A Session's `connection` is a method; a Connection has a property of that name, which is the driver's.
        self._is_session = not hasattr(session, "exec_driver_sql")
        self._mark: str | int | None = None
        self._driver: Host = None

    def _connection(self) -> Host:
        return self._session.connection() if self._is_session else self._session

    def begin(self) -> None:
        """See `SyncSide`."""
        connection = self._connection()
        dialect = dialect_of(connection)
        self._driver = connection.connection.driver_connection
        if dialect == "postgresql":
            refuse_autocommit(self._driver)
            connection.exec_driver_sql(_READ_COMMITTED)
            self._mark = str(self.execute(NUMBER, {})[0][0])
            return
        connection.exec_driver_sql(BECOME_WRITER if self._driver.in_transaction else WRITER)
        mark = number()
        connection.exec_driver_sql(write_version(mark))
        connection.exec_driver_sql(SAVEPOINT)
        self._mark = mark

    def intact(self) -> bool:
        """See `SyncSide`."""
        if getattr(self._session, "closed", False):  # a connection's; a session that was closed opens itself anew
            return False
        if isinstance(self._mark, str):
            return bool(self.execute(PRESENT, {})[0][0] == self._mark)
        connection = self._connection()
        try:
            connection.exec_driver_sql(RELEASE)
        except Exception as error:
            if not no_such_savepoint(error):
                raise
            return False
        connection.exec_driver_sql(SAVEPOINT)
        return True

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `SyncSide`."""
        return rows_of(self._connection().exec_driver_sql(sql, dict(params)))

    def flush(self) -> None:
        """See `SyncSide`."""
        if self._is_session:
            self._session.flush()

    def commit(self) -> None:
        """See `SyncSide`."""
        self._session.commit()

    def rollback(self, cause: BaseException | None = None) -> bool:
        """See `SyncSide`."""
        mark, self._mark = self._mark, None
        with suppress(Exception):
            self._session.rollback()
            if mark is None or cause is None:
                return False
            if isinstance(mark, str):
                fate = self.execute(FATE, {"mark": mark})[0][0]
                self._session.rollback()
                return bool(fate == COMMITTED)
            return bool(self._driver.execute(VERSION).fetchone()[0] == mark)
        return False
