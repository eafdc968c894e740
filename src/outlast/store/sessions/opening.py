"""The side of a session: which class speaks to it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from typing import Any, Final, cast

from outlast.domain.errors import Invalid
from outlast.domain.refusal import article
from outlast.domain.values import takes
from outlast.store.program import Rows
from outlast.store.sessions.drivers import AsyncPsycopg, Psycopg, Sqlite
from outlast.store.sessions.marks import met_lock
from outlast.store.sessions.sides import AsyncSide, Host, SyncSide, family, invalid, unknown
from outlast.store.sessions.sqlalchemy import Alchemy, AsyncAlchemy

_PAUSE: Final = 0.002
_TAKES: Final = "session= and sync_session= take what makes a session, for example a sessionmaker, not a session."


class Blocking:
    """A connection of sqlite3 used from the loop. It waits for other writers without blocking it, as long as its own time-out says."""

    def __init__(self, side: Sqlite) -> None:
        self._side = side

    async def begin(self) -> None:
        """See `AsyncSide`."""
        from asyncio import sleep  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        connection = self._side.connection
        limit = int(connection.execute("pragma busy_timeout").fetchone()[0])
        until = time.monotonic() + limit / 1000
        connection.execute("pragma busy_timeout = 0")
        try:
            while True:
                try:
                    return self._side.begin()
                except Exception as error:
                    if not met_lock(error) or time.monotonic() >= until:
                        raise
                await sleep(_PAUSE)
        finally:
            connection.execute(f"pragma busy_timeout = {limit}")

    async def intact(self) -> bool:
        """See `AsyncSide`."""
        return self._side.intact()

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `AsyncSide`."""
        return self._side.execute(sql, params)

    async def flush(self) -> None:
        """See `AsyncSide`."""
        self._side.flush()

    async def commit(self) -> None:
        """See `AsyncSide`."""
        self._side.commit()

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """See `AsyncSide`."""
        return self._side.rollback(cause)


def check_factory(factory: object, *, asynchronous: bool) -> None:
    """Invalid for what can be seen to make no session of that colour, before it is ever called."""
    if factory is None:
        return
    name = "session=" if asynchronous else "sync_session="
    if not callable(factory) or not takes(factory, 0) or family(factory) in ("psycopg", "sqlite3"):
        raise Invalid(_TAKES)
    if inspect.iscoroutinefunction(factory):
        raise Invalid(f"{name} is an async def that returns a session. Let it yield the session, under @asynccontextmanager.")
    if inspect.isgeneratorfunction(factory) or inspect.isasyncgenfunction(factory):
        decorator = "@asynccontextmanager" if asynchronous else "@contextmanager"
        raise Invalid(f"{name} is a generator function without its decorator: write {decorator} above it.")
    made: object = getattr(factory, "class_", None)  # of SQLAlchemy's sessionmakers
    plain = inspect.isgeneratorfunction(inspect.unwrap(factory)) or _enters_only(made, "__enter__", "__aenter__")
    coloured = inspect.isasyncgenfunction(inspect.unwrap(factory)) or _enters_only(made, "__aenter__", "__enter__")
    if asynchronous and plain:
        raise Invalid("session= makes sessions of async code, and this one makes those of plain functions: it is for sync_session=.")
    if not asynchronous and coloured:
        raise Invalid("sync_session= makes sessions of plain functions, and this one makes those of async code: it is for session=.")


def _enters_only(made: object, one: str, other: str) -> bool:
    return inspect.isclass(made) and hasattr(made, one) and not hasattr(made, other)


def check_made(made: Any, *, asynchronous: bool) -> None:  # noqa: ANN401 - whatever the host's factory returned
    """TransactionMisused for what a factory made that is no context manager of that colour."""
    name, method, colour = ("session=", "__aenter__", "an async") if asynchronous else ("sync_session=", "__enter__", "a")
    if hasattr(cast("type[object]", type(made)), method):
        return
    said = f"{name} returned {article(made)}"
    if inspect.iscoroutine(made):
        made.close()
        said = f"{name} returned a coroutine"
    raise invalid(f"{said}. It has to return {colour} context manager that gives a session: a sessionmaker, engine.connect, or a function.")


def sync_side(session: object) -> SyncSide:
    """How to speak to a session of blocking code; TransactionMisused for one of async code, and for what is no session."""
    match family(session):
        case "sqlalchemy" if not _is_async(session) and _ends(session):
            return Alchemy(session)
        case "psycopg" if not _is_async(session) and _ends(session):
            return Psycopg(session)
        case "sqlite3" if _ends(session):
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
        case "sqlite3" if _ends(session):
            return Blocking(Sqlite(session))
        case _:
            raise unknown(session)


def _ends(session: Host) -> bool:
    """A cursor does not."""
    return callable(getattr(session, "commit", None)) and callable(getattr(session, "rollback", None))


def _is_async(session: object) -> bool:
    return inspect.iscoroutinefunction(getattr(session, "commit", None))


def is_async(fn: object) -> bool:
    """Whether a function of the host's is to be awaited, an object with an async __call__ included."""
    inner: object = getattr(fn, "func", fn)  # of a partial
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004 - its colour is asked
