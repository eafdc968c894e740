"""What is asked of a session, in both colours, and which class does it: told by the session's own module, so that nothing is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from outlast.domain.errors import Invalid
from outlast.domain.refusal import article
from outlast.store.drive import Fault
from outlast.store.program import Rows

Host: TypeAlias = Any
"""A session, connection or cursor of the host's library, of whatever type."""


class AsyncSide(Protocol):
    """A session of async code, or one that blocks and is used from the loop."""

    async def begin(self) -> None:
        """Opens the transaction that our guards need: READ COMMITTED, or on SQLite as a writer from the start."""
        ...

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """The rows of one of our statements."""
        ...

    async def flush(self) -> None:
        """Sends what the session has only noted so far, so that nothing follows our last statement."""
        ...

    async def commit(self) -> None:
        """Commits."""
        ...

    async def rollback(self) -> None:
        """Rolls back; raises nothing."""
        ...


class SyncSide(Protocol):
    """A session of blocking code."""

    def begin(self) -> None:
        """As of `AsyncSide`."""
        ...

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """As of `AsyncSide`."""
        ...

    def flush(self) -> None:
        """As of `AsyncSide`."""
        ...

    def commit(self) -> None:
        """As of `AsyncSide`."""
        ...

    def rollback(self) -> None:
        """As of `AsyncSide`."""
        ...


def family(session: object) -> str:
    """The library that a session comes from."""
    for kind in type(session).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("sqlalchemy", "psycopg", "sqlite3"):
            return root
    return ""


def unknown(session: object) -> Invalid:
    """The refusal of a session that nobody knows."""
    return Invalid(
        f"A transaction runs on a SQLAlchemy session or connection, a psycopg connection, or one of sqlite3, not on {article(session)}."
    )


def fault_of(error: BaseException, driver_fault: Callable[[BaseException], Fault]) -> Fault:
    """What an error of a session means: SQLAlchemy keeps the driver's own in `orig`. An error of the host's code means nothing here."""
    original = getattr(error, "orig", None)
    found = original if isinstance(original, BaseException) else error
    return driver_fault(found) if family(found) in ("psycopg", "sqlite3") else Fault.UNKNOWN
