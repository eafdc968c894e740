"""The side of a session: which class speaks to it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from outlast.store.program import Rows
from outlast.store.sessions.drivers import AsyncPsycopg, Psycopg, Sqlite
from outlast.store.sessions.sides import AsyncSide, SyncSide, family, unknown
from outlast.store.sessions.sqlalchemy import Alchemy, AsyncAlchemy


class Blocking:
    """A blocking side used from the loop. It blocks it while it waits for another's lock, at most as long as its own time-out says."""

    def __init__(self, side: SyncSide) -> None:
        self._side = side

    async def begin(self) -> None:
        """See `AsyncSide`."""
        self._side.begin()

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncSide`."""
        return self._side.execute(sql, params)

    async def flush(self) -> None:
        """See `AsyncSide`."""
        self._side.flush()

    async def commit(self) -> None:
        """See `AsyncSide`."""
        self._side.commit()

    async def rollback(self) -> None:
        """See `AsyncSide`."""
        self._side.rollback()


def sync_side(session: object) -> SyncSide:
    """How to speak to a session of blocking code; Invalid for one of async code, and for what is no session."""
    match family(session):
        case "sqlalchemy" if not _is_async(session):
            return Alchemy(session)
        case "psycopg" if not _is_async(session):
            return Psycopg(session)
        case "sqlite3":
            return Sqlite(session)
        case _:
            raise unknown(session)


def async_side(session: object) -> AsyncSide:
    """How to speak to a session from the loop; a connection of sqlite3 may be one."""
    match family(session):
        case "sqlalchemy" if _is_async(session):
            return AsyncAlchemy(session)
        case "psycopg" if _is_async(session):
            return AsyncPsycopg(session)
        case "sqlite3":
            return Blocking(Sqlite(session))
        case _:
            raise unknown(session)


def _is_async(session: object) -> bool:
    return inspect.iscoroutinefunction(getattr(session, "commit", None))
