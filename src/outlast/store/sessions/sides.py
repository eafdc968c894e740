"""What is asked of a session, in both colours, and which class does it: told by the session's own module, so that nothing is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from outlast.domain.errors import TransactionMisused
from outlast.domain.refusal import article
from outlast.store.drive import Fault
from outlast.store.program import Rows

Host: TypeAlias = Any
"""A session, connection or cursor of the host's library, of whatever type."""


class AsyncSide(Protocol):
    """A session of async code, or one that blocks and is used from the loop."""

    async def begin(self) -> None:
        """Opens the transaction that our guards need: READ COMMITTED, or on SQLite as a writer from the start. Marks it."""
        ...

    async def intact(self) -> bool:
        """Whether the transaction that `begin` opened is still the one that is open: the host's code neither ended nor replaced it."""
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

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Rolls back; raises nothing. With a cause it is looked whether the host's code had committed before: True if it surely had."""
        ...


class SyncSide(Protocol):
    """A session of blocking code."""

    def begin(self) -> None:
        """As of `AsyncSide`."""
        ...

    def intact(self) -> bool:
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

    def rollback(self, cause: BaseException | None = None) -> bool:
        """As of `AsyncSide`."""
        ...


def family(session: object) -> str:
    """The library that a session comes from."""
    for kind in type(session).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("sqlalchemy", "psycopg", "sqlite3"):
            return root
    return ""


def unknown(session: object) -> TransactionMisused:
    """The refusal of a session that nobody knows."""
    return invalid(
        f"A transaction runs on a SQLAlchemy session or connection, a psycopg connection, or one of sqlite3, not on {article(session)}."
    )


def invalid(words: str) -> TransactionMisused:
    """The refusal of a session that cannot be used."""
    return TransactionMisused(words, code="session_invalid")


def closed(what: str) -> TransactionMisused:
    """The caller's object is closed, or its connection lost."""
    return invalid(f"The {what} of transaction= is closed, or its connection is lost. Give an open one. Nothing was written.")


def failed() -> TransactionMisused:
    """The caller's transaction has failed already, and the database takes nothing more in it."""
    return invalid(
        "The transaction has failed already, by an earlier statement or flush. Roll it back and begin anew. Nothing was written."
    )


def ended() -> TransactionMisused:
    """The host's code ended the transaction that it was lent."""
    return TransactionMisused(
        "The function ended its transaction by itself: by commit, rollback or close, by a `with` block on its session, or by "
        "executescript. Leave the commit to Outlast. What it committed stays; it was not run again.",
        code="transaction_ended",
    )


def elsewhere() -> TransactionMisused:
    """The session does not see what the store holds."""
    return TransactionMisused(
        "The session works on another database than the store's: it does not see this job. Check session= and sync_session= against the "
        "address of the store.",
        code="session_elsewhere",
    )


def misused(error: BaseException) -> TransactionMisused | None:
    """A session's refusal of what the host's function did with it, in words; None for any other error."""
    # Its subclasses, such as NoResultFound, say something about rows; the class itself only ever about how a session is used.
    if family(error) == "sqlalchemy" and type(error).__name__ == "InvalidRequestError":
        return TransactionMisused(
            "SQLAlchemy refused what the function did with its session, such as beginning a transaction of its own: one is open already, "
            "and Outlast commits it. The details say what it was."
        )
    return None


def fault_of(error: BaseException, driver_fault: Callable[[BaseException], Fault]) -> Fault:
    """What an error of a session means: SQLAlchemy keeps the driver's own in `orig`. An error of the host's code means nothing here."""
    if getattr(error, "connection_invalidated", False):  # SQLAlchemy's word for it
        return Fault.LOST
    found = original(error)
    told = isinstance(getattr(found, "sqlstate", None), str)  # asyncpg's errors come in SQLAlchemy's own classes
    return driver_fault(found) if told or family(found) in ("psycopg", "sqlite3") else Fault.UNKNOWN


def original(error: BaseException) -> BaseException:
    """The driver's own error, where SQLAlchemy wraps it."""
    inner = getattr(error, "orig", None)
    return inner if isinstance(inner, BaseException) else error
