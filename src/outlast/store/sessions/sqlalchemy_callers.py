"""SQLAlchemy's sessions and connections with a transaction of the caller's. Statements go through its own connection, never past it.

Past it they would stand outside of what SQLAlchemy has begun: with asyncpg, which begins at the session's first statement and not before,
what is written on the raw connection until then survives the session's rollback.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from outlast.store.program import Rows
from outlast.store.sessions.callers import Standing
from outlast.store.sessions.driver_callers import commits_by_itself, standing
from outlast.store.sessions.sides import Host, closed, failed, family, invalid
from outlast.store.sessions.sqlalchemy import dialect_of, rows_of, written

_AT_ONCE: Final = {"stream_results": False, "yield_per": None}
"""The session's own options may ask for a cursor on the server, and none can be declared for a statement that writes."""


class AlchemyCaller:
    """A Session, scoped_session or Connection."""

    def __init__(self, session: Host) -> None:
        self._session = current(session)
        self._is_session = not hasattr(self._session, "exec_driver_sql")
        self._connection: Host = None

    def prepare(self) -> Standing:
        """See `Caller`."""
        with _words():
            if self._is_session:
                # Before its connection: what it has noted so far comes before our rows, as with its own execute().
                if self._session.autoflush:
                    self._session.flush()
                self._connection = self._session.connection()
            else:
                self._connection = self._session
            return _standing(self._connection, self._connection.connection.driver_connection)

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `Caller`."""
        made = written(self._connection, sql, params)
        return rows_of(self._connection.exec_driver_sql(*made, execution_options=_AT_ONCE))


class AsyncAlchemyCaller:
    """An AsyncSession, async_scoped_session or AsyncConnection."""

    def __init__(self, session: Host) -> None:
        self._session = current(session)
        # A connection has a property `connection` too, which raises when it is looked at.
        self._is_session = hasattr(self._session, "sync_session")
        self._connection: Host = None

    async def prepare(self) -> Standing:
        """See `AsyncCaller`."""
        with _words():
            if self._is_session:
                if self._session.sync_session.autoflush:
                    await self._session.flush()
                self._connection = await self._session.connection()
            else:
                self._connection = self._session
            raw = await self._connection.get_raw_connection()
            return _standing(self._connection.sync_connection, raw.driver_connection)

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncCaller`."""
        made = written(self._connection, sql, params)
        return rows_of(await self._connection.exec_driver_sql(*made, execution_options=_AT_ONCE))


def current(session: Host) -> Host:
    """The session itself, where it is a registry that gives each thread or task its own."""
    return session() if hasattr(session, "registry") and callable(session) else session


def _standing(connection: Host, driver: Host) -> Standing:
    """How a connection of SQLAlchemy's stands, and the driver's below it."""
    dialect = dialect_of(connection)
    name = str(connection.dialect.driver)
    memory: dict[Any, Any] = connection.info  # of the driver's connection, as long as the pool keeps it
    if name in ("psycopg", "psycopg_async"):
        below = standing(driver)
        return Standing("postgresql", below.open, memory)
    if name == "asyncpg":
        by_itself = bool(connection.connection.dbapi_connection.autocommit)
        return Standing("postgresql", driver.is_in_transaction() or not by_itself, memory)
    return Standing(dialect, bool(driver.in_transaction) or not commits_by_itself(driver), memory)


@contextmanager
def _words() -> Generator[None, None, None]:
    """What SQLAlchemy says of a session or connection that cannot be used, in our words; errors of the host's statements as they are."""
    try:
        yield
    except Exception as error:
        if family(error) != "sqlalchemy":
            raise
        match type(error).__name__:
            case "PendingRollbackError":
                raise failed() from error
            case "ResourceClosedError":
                raise closed("session or connection") from error
            case "UnboundExecutionError":
                raise invalid(
                    "The session has no engine for statements without a model of its own. Give the connection on the store's database, for "
                    "example transaction=session.connection(bind_arguments={...}), or the session a bind for it."
                ) from error
            case "InvalidRequestError" | "AsyncContextNotStarted" | "IllegalStateChangeError":
                raise invalid(
                    "SQLAlchemy does not let the session or connection be used now: its transaction has ended or is ending, or it was not "
                    "begun or awaited. Give one that can execute a statement."
                ) from error
            case _:
                raise
