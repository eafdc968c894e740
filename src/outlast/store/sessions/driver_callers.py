"""The drivers' own connections with a transaction of the caller's: psycopg's, in both colours, and sqlite3's."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from outlast.store.program import Rows
from outlast.store.sessions.callers import Standing
from outlast.store.sessions.marks import idle
from outlast.store.sessions.sides import Host, closed, failed, family, invalid

_FAILED: Final = 3
_UNKNOWN: Final = 4
_memories: WeakKeyDictionary[Host, MutableMapping[Any, Any]] = WeakKeyDictionary()


class PsycopgCaller:
    """A psycopg Connection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection

    def prepare(self) -> Standing:
        """See `Caller`."""
        return standing(self._connection)

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `Caller`."""
        from outlast.store.sessions.psycopg_cursors import PlainCursor  # noqa: PLC0415 - the caller's library, in its process already

        cursor = PlainCursor(self._connection)
        cursor.execute(sql.encode(), params)
        return cursor.fetchall() if cursor.description else ()


class AsyncPsycopgCaller:
    """A psycopg AsyncConnection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection

    async def prepare(self) -> Standing:
        """See `AsyncCaller`."""
        return standing(self._connection)

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncCaller`."""
        from outlast.store.sessions.psycopg_cursors import AsyncPlainCursor  # noqa: PLC0415 - as above

        cursor = AsyncPlainCursor(self._connection)
        await cursor.execute(sql.encode(), params)
        return await cursor.fetchall() if cursor.description else ()


class SqliteCaller:
    """A sqlite3 Connection."""

    def __init__(self, connection: Host) -> None:
        self._connection = connection

    def prepare(self) -> Standing:
        """See `Caller`."""
        try:
            inside = bool(self._connection.in_transaction)
        except Exception as error:
            if family(error) == "sqlite3":
                raise closed("connection") from error
            raise
        return Standing("sqlite", inside or not commits_by_itself(self._connection))

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `Caller`."""
        try:
            cursor = self._connection.cursor()
            cursor.row_factory = None
            made, self._connection.text_factory = self._connection.text_factory, str
            try:
                return list(cursor.execute(sql, dict(params)).fetchall())
            finally:
                self._connection.text_factory = made
        except Exception as error:
            if type(error).__name__ == "ProgrammingError" and "thread" in str(error):
                raise invalid(
                    "A connection of sqlite3 is used in the thread that made it, and this is another. Submit there, or make the connection "
                    "with check_same_thread=False."
                ) from error
            raise


def standing(connection: Host) -> Standing:
    """How a psycopg connection stands."""
    status = int(connection.pgconn.transaction_status)
    if connection.closed or status == _UNKNOWN:
        raise closed("connection")
    if int(connection.pgconn.pipeline_status):
        raise invalid(
            "The connection of transaction= is in pipeline mode, where no answer can be waited for. Submit outside of pipeline()."
        )
    if status == _FAILED:
        raise failed()
    memory = _memories.setdefault(connection, {})
    return Standing("postgresql", not (connection.autocommit and idle(connection)), memory)


def commits_by_itself(connection: Host) -> bool:
    """Whether a connection of sqlite3 that is in no transaction begins none before a statement that writes."""
    autocommit = getattr(connection, "autocommit", None)  # of Python 3.12 and later
    if isinstance(autocommit, bool):
        return autocommit
    return connection.isolation_level is None
