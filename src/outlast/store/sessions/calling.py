"""Runs our programs in a transaction of the caller's: on which object, whether it is on the store's database, and what its errors mean."""

from __future__ import annotations

import inspect
import os.path
from collections.abc import Generator
from typing import Any, Final, TypeAlias, TypeVar

from outlast.domain.errors import Contended, NotMigrated, OutlastError, StoreUnavailable, TransactionMisused
from outlast.domain.refusal import article
from outlast.store.drive import BadData, Fault, adrive, drive, refusal_of, with_subprograms
from outlast.store.program import Operation, Repeat, Rows, Statement
from outlast.store.programs import status
from outlast.store.programs.status import Whereabouts
from outlast.store.protocol import Store
from outlast.store.sessions.callers import AsyncCaller, Caller, Standing
from outlast.store.sessions.django import DjangoCaller
from outlast.store.sessions.driver_callers import AsyncPsycopgCaller, PsycopgCaller, SqliteCaller
from outlast.store.sessions.sides import Host, failed, family, fault_of, invalid, original
from outlast.store.sessions.sqlalchemy_callers import AlchemyCaller, AsyncAlchemyCaller, current

T = TypeVar("T")

_KNOWN: Final = "outlast_whereabouts"
_CONTENDED: Final = (
    "Another transaction stands in the way of this one: it has just committed what this one cannot see, or holds what it needs. Roll this "
    "one back, and do all of it again in a new one."
)
_NOT_MIGRATED: Final = "The database of transaction= has not the tables that this version needs. Run `outlast migrate --store URL`."
_SQLALCHEMY: Final = frozenset({"Session", "scoped_session", "Connection", "AsyncSession", "async_scoped_session", "AsyncConnection"})
_ELSEWHERE: Final = (
    "What transaction= names works on another database than the store: a commit there says nothing about a job here. Give a session or "
    "connection on the store's own database, or write the request into an outbox there (docs/outbox.md). Nothing was written."
)

CALLERS: Final = (AlchemyCaller, AsyncAlchemyCaller, PsycopgCaller, AsyncPsycopgCaller, SqliteCaller)
"""Those of the libraries; an alias of Django's has its own."""

_Wish: TypeAlias = Operation[Any] | bool
"""An operation to run on the caller's object, or the store to be asked where it is: again (True), or as it was found before."""


class Joined:
    """A transaction of the caller's, in blocking code."""

    def __init__(self, caller: Caller, store: Store) -> None:
        self._caller = caller
        self._store = store

    def enter(self) -> bool:
        """Whether there is one: if not, each statement would commit by itself. Raises what the caller's object cannot be used for."""
        standing = self._caller.prepare()
        entering = _enter(standing, self._store.dialect)
        try:
            wish = next(entering)
            while True:
                found = self._store.whereabouts_sync(fresh=wish) if isinstance(wish, bool) else self.run_sync(wish)
                wish = entering.send(found)
        except StopIteration:
            return standing.open

    def run_sync(self, operation: Operation[T]) -> T:
        """The operation's value. What its program raises comes with what it has written until then still there."""
        try:
            return drive(with_subprograms(operation.start(), self._store.subprograms), self._execute)
        except Exception as error:
            _explain(error, self._store)
            raise

    def _execute(self, statement: Statement) -> Rows:
        return _as_texts(self._caller.execute(self._store.texts[statement.name], statement.params))


class AsyncJoined:
    """A transaction of the caller's, in async code."""

    def __init__(self, caller: AsyncCaller, store: Store) -> None:
        self._caller = caller
        self._store = store

    async def enter(self) -> bool:
        """As of `Joined`."""
        standing = await self._caller.prepare()
        entering = _enter(standing, self._store.dialect)
        try:
            wish = next(entering)
            while True:
                found = await self._store.whereabouts(fresh=wish) if isinstance(wish, bool) else await self.run(wish)
                wish = entering.send(found)
        except StopIteration:
            return standing.open

    async def run(self, operation: Operation[T]) -> T:
        """As of `Joined`."""
        try:
            return await adrive(with_subprograms(operation.start(), self._store.subprograms), self._execute)
        except Exception as error:
            _explain(error, self._store)
            raise

    async def _execute(self, statement: Statement) -> Rows:
        return _as_texts(await self._caller.execute(self._store.texts[statement.name], statement.params))


def caller_of(transaction: object) -> Caller:
    """How to speak to what blocking code gives as `transaction=`: an object of a known library, or the alias of a Django database."""
    if isinstance(transaction, str):
        return DjangoCaller(transaction)
    _check(transaction)
    if _is_async(transaction):
        raise invalid(f"{_the(transaction)} is one of async code: use `await jobs.submit(...)`, or give one of plain functions.")
    match family(transaction):
        case "sqlalchemy":
            return AlchemyCaller(transaction)
        case "psycopg":
            return PsycopgCaller(transaction)
        case _:
            return SqliteCaller(transaction)


def async_caller_of(transaction: object) -> AsyncCaller:
    """The same for async code, without aliases: Django's connections are those of blocking code."""
    _check(transaction)
    if not _is_async(transaction):
        raise invalid(f"{_the(transaction)} is one of blocking code: use `jobs.sync.submit(...)`, or give one of async code.")
    return AsyncAlchemyCaller(transaction) if family(transaction) == "sqlalchemy" else AsyncPsycopgCaller(transaction)


def _as_texts(rows: Rows) -> Rows:
    """The rows, where a connection gives its texts as bytes: by its text_factory, or a client_encoding that says nothing."""
    return [tuple(value.decode() if isinstance(value, bytes) else value for value in row) for row in rows]


def _check(transaction: Host) -> None:
    """Refuses what is neither session nor connection; what makes them, too."""
    ends = all(callable(getattr(transaction, name, None)) for name in ("commit", "rollback"))
    if family(transaction) == "sqlalchemy":
        ends = any(kind.__name__ in _SQLALCHEMY for kind in type(transaction).__mro__)  # its transactions can be committed too
    if inspect.isclass(transaction) or not family(transaction) or not ends:
        raise invalid(
            "transaction= takes a SQLAlchemy session or connection, a psycopg connection, one of sqlite3, or the alias of a Django "
            f"database, not {article(transaction)}. It takes no engine, sessionmaker, cursor or raw connection."
        )


def _the(transaction: object) -> str:
    return f"What transaction= names, {article(transaction)},"


def _is_async(transaction: object) -> bool:
    return inspect.iscoroutinefunction(getattr(current(transaction), "commit", None))


def _enter(standing: Standing, dialect: str) -> Generator[_Wish, Any, None]:
    """Refuses what is not on the store's own database. A connection that was found there once is there as long as it lives."""
    if standing.dialect != dialect:
        raise elsewhere()
    known: Whereabouts = yield False
    if standing.memory is not None and standing.memory.get(_KNOWN) == known.place:
        return
    here: Whereabouts = yield status.whereabouts()
    if not _same(here.place, known.place, dialect):
        known = yield True  # the server was started anew, or another took its place
        if not _same(here.place, known.place, dialect):
            raise elsewhere()
    if not here.migrated:
        raise NotMigrated(_NOT_MIGRATED)
    if standing.memory is not None:
        standing.memory[_KNOWN] = here.place


def _same(one: str, other: str, dialect: str) -> bool:
    """Whether two connections said the same place. A SQLite database without a file is nobody else's."""
    if dialect != "sqlite":
        return one == other
    return bool(one) and bool(other) and os.path.realpath(one) == os.path.realpath(other)


def elsewhere() -> TransactionMisused:
    """What transaction= names is not on the store's database."""
    return TransactionMisused(_ELSEWHERE, code="session_elsewhere")


def _explain(error: Exception, store: Store) -> None:
    """Raises what an error in the caller's transaction means; returns for what comes as it is."""
    if isinstance(error, OutlastError):
        return
    if isinstance(error, UnicodeEncodeError):
        raise invalid("The connection's client_encoding cannot write all of the texts. Set it to UTF8. Nothing was written.") from error
    meant = Contended(_CONTENDED) if isinstance(error, Repeat) else _by_state(error) or _by_fault(fault_of(error, store.fault_of))
    if meant is None and family(error):
        meant = StoreUnavailable("The store failed. Roll the transaction back.")
    if meant is not None:
        raise meant from error


def _by_state(error: Exception) -> OutlastError | None:
    match getattr(original(error), "sqlstate", None):
        case "25P02":
            return failed()
        case "25006":
            return StoreUnavailable(
                "The caller's transaction may only read: it was begun READ ONLY, default_transaction_read_only is on, or the server is a "
                "standby. Nothing was written."
            )
        case "57014":
            return StoreUnavailable(
                "The statement was cancelled: it took longer than the caller's statement_timeout allows, or somebody cancelled it. Roll "
                "the transaction back."
            )
        case "42501":
            return StoreUnavailable(
                "The role of the caller's connection lacks rights on Outlast's tables: grant it usage on the schema, and select, insert, "
                "update and delete on its tables. Roll the transaction back."
            )
        case _:
            return None


def _by_fault(found: Fault) -> OutlastError | None:
    match found:
        case Fault.CONFLICT | Fault.LOCKED:
            return Contended(_CONTENDED)
        case Fault.LOST:
            return StoreUnavailable("The connection was lost, and the caller's transaction with it. Begin a new one.")
        case Fault.SCHEMA:
            return NotMigrated(_NOT_MIGRATED)
        case Fault.DATA:
            return BadData("The store refused one of the values. Roll the transaction back.")
        case _:
            return refusal_of(found)
