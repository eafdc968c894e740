"""What is asked of an object whose transaction is the caller's: our statements run in it, and nobody but the caller ends it.

Here nothing is begun, committed or rolled back, no isolation level set and no savepoint made, except where each statement would
commit by itself: then a transaction of our own stands around them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from outlast.store.program import Rows


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
        """Looks whether it can be used, and sends what it holds back; TransactionMisused if it is closed, failed, or what cannot be used."""
        ...

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """The rows, as tuples, of a statement in the form that the dialect's own driver takes: %(name)s with psycopg, :name with sqlite3."""
        ...

    def begin(self) -> None:
        """Opens a transaction, READ COMMITTED or on SQLite as a writer; only where none is open."""
        ...

    def commit(self) -> None:
        """Commits what `begin` opened."""
        ...

    def rollback(self) -> None:
        """Rolls back what `begin` opened; raises nothing."""
        ...


class AsyncCaller(Protocol):
    """A caller's object of async code."""

    async def prepare(self) -> Standing:
        """As of `Caller`."""
        ...

    async def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """As of `Caller`."""
        ...

    async def begin(self) -> None:
        """As of `Caller`."""
        ...

    async def commit(self) -> None:
        """As of `Caller`."""
        ...

    async def rollback(self) -> None:
        """As of `Caller`."""
        ...
