"""What is asked of an object whose transaction is the caller's: our statements run in it, and nobody but the caller ends it.

Nothing is begun, committed or rolled back on it, no isolation level set and no savepoint made.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from outlast.store.program import Rows


class AsyncTransaction(Protocol):
    """What `transaction=` takes in async code: SQLAlchemy's AsyncSession and AsyncConnection, psycopg's AsyncConnection."""

    def commit(self) -> Coroutine[Any, Any, None]:
        """Ends it; only the caller calls this."""
        ...


class SyncTransaction(Protocol):
    """What it takes in blocking code: SQLAlchemy's Session and Connection, psycopg's Connection, that of sqlite3."""

    def commit(self) -> None:
        """Ends it; only the caller calls this."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How the caller's object stands, before anything of ours is executed on it."""

    dialect: Literal["postgresql", "sqlite"]
    open: bool
    """Whether what is executed belongs to a transaction that the caller ends. False: each statement would commit by itself."""
    memory: MutableMapping[Any, Any] | None = None
    """What lives as long as the connection below, for what was found out about it once; None: it is found out each time."""


class Caller(Protocol):
    """A caller's object of blocking code."""

    def prepare(self) -> Standing:
        """Looks whether it can be used, and sends what it holds back; TransactionMisused if it is closed, failed or of no use."""
        ...

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """The rows, as tuples, of a statement as the dialect's own driver takes it: %(name)s with psycopg, :name with sqlite3."""
        ...


class AsyncCaller(Protocol):
    """A caller's object of async code."""

    async def prepare(self) -> Standing:
        """As of `Caller`."""
        ...

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """As of `Caller`."""
        ...
