"""The three stores under one interface: run an operation, read and change rows by hand, move the clock."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader

from outlast.store.loader import expand
from outlast.store.postgres import dialect as postgres
from outlast.store.postgres import migrating as postgres_migrating
from outlast.store.postgres.session import Profile
from outlast.store.postgres.store import PostgresStore
from outlast.store.program import Operation, T
from outlast.store.sqlite import dialect as sqlite
from outlast.store.sqlite import migrating as sqlite_migrating
from outlast.store.sqlite.build import linked
from outlast.store.sqlite.store import SqliteStore

START_MS = 1_800_000_000_000
Row = dict[str, Any]

POSTGRES_CLOCK = "outlast_test.now()"
SQLITE_CLOCK = "(select ms from test_clock)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Backend(Protocol):
    """A store whose clock is a row."""

    name: str

    @property
    def store(self) -> SqliteStore | PostgresStore:
        """The store itself."""
        ...

    def run(self, operation: Operation[T]) -> T:
        """The operation's value."""
        ...

    def query(self, text: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Rows as the same plain values on every store: ids and JSON as text, times as milliseconds, flags as 0 and 1."""
        ...

    def set_clock(self, ms: int) -> None:
        """Moves the store's clock."""
        ...

    def tables(self) -> Sequence[str]:
        """The names of the tables that hold jobs."""
        ...

    def reset(self) -> None:
        """No rows, and the clock at its start."""
        ...

    def close(self) -> None:
        """Gives back what it holds."""
        ...


def _open(path: Path) -> Any:
    """A connection of the store's own driver: two builds of SQLite in one process would undo each other's locks."""
    if linked().driver == "apsw":
        import apsw  # noqa: PLC0415 - an extra

        connection: Any = apsw.Connection(str(path))
        connection.set_busy_timeout(5_000)
        connection.row_trace = lambda cursor, row: dict(zip((d[0] for d in cursor.get_description()), row, strict=True))
    else:
        connection = sqlite3.connect(path, isolation_level=None, timeout=5)
        connection.row_factory = lambda cursor, row: dict(zip((d[0] for d in cursor.description), row, strict=True))
    connection.execute("pragma synchronous = off")
    return connection


class SqliteBackend:
    """A file of its own for each test, copied from one that was migrated once."""

    name = "sqlite"

    def __init__(self, path: Path, *, patience: float = 5.0) -> None:
        self.path = path
        self.store = SqliteStore(str(path), now=SQLITE_CLOCK, patience=patience)
        self._admin = _open(path)

    @staticmethod
    def make_template(path: Path) -> Path:
        """A migrated file with a clock in it."""
        sqlite_migrating.apply(str(path))
        connection = _open(path)
        connection.execute("create table test_clock (ms integer not null)")
        connection.execute("insert into test_clock values (?)", (START_MS,))
        connection.close()
        return path

    @classmethod
    def copy_of(cls, template: Path, path: Path, *, patience: float = 5.0) -> SqliteBackend:
        """A store on a copy of the template."""
        shutil.copy(template, path)
        return cls(path, patience=patience)

    def run(self, operation: Operation[T]) -> T:
        return self.store.run_sync(operation)

    def query(self, text: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        rows = self._admin.execute(expand(text, sqlite.tokens(SQLITE_CLOCK), sqlite.table), params or {}).fetchall()
        return list(rows)

    def set_clock(self, ms: int) -> None:
        self._admin.execute("update test_clock set ms = ?", (ms,))

    def tables(self) -> Sequence[str]:
        rows = self.query("select name from sqlite_master where type = 'table' and name like 'outlast_%' order by name")
        return [row["name"].removeprefix("outlast_") for row in rows if row["name"] != "outlast_migration"]

    def reset(self) -> None:
        for name in self.tables():
            self.query(f"delete from {{outlast.{name}}}")
        self.set_clock(START_MS)

    def close(self) -> None:
        self._admin.close()
        self.store.close_sync()


class PostgresBackend:
    """A store on one database for the whole run; its rows are deleted between tests."""

    def __init__(self, dsn: str, colour: str, *, patience: float = 5.0) -> None:
        self.name = f"postgres-{colour}"
        self.dsn = dsn
        profile = Profile(worker=colour == "async")  # with and without the switches for the hot statements
        self.store = PostgresStore(dsn, profile=profile, now=POSTGRES_CLOCK, patience=patience)
        self._runner = asyncio.Runner() if colour == "async" else None
        self._admin = self._connect()
        self._tables = self._names()

    @staticmethod
    def migrate(dsn: str) -> None:
        """The schema, and a clock beside it."""
        postgres_migrating.apply(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create schema outlast_test")
            connection.execute("create table outlast_test.clock (ms bigint not null)")
            connection.execute("insert into outlast_test.clock values (%s)", (START_MS,))
            connection.execute(
                "create function outlast_test.now() returns timestamptz language sql volatile as "
                "$$ select timestamptz 'epoch' + ms * interval '1 ms' from outlast_test.clock $$"
            )

    def run(self, operation: Operation[T]) -> T:
        if self._runner is None:
            return self.store.run_sync(operation)
        return self._runner.run(self.store.run(operation))

    def query(self, text: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        wanted = expand(text, postgres.tokens(POSTGRES_CLOCK), postgres.table_of("outlast"))
        cursor = self._admin.execute(postgres._PARAMETER.sub(r"%(\1)s", wanted.replace("%", "%%")), params or {})
        if cursor.description is None:
            return []
        return [{name: _plain(value) for name, value in row.items()} for row in cursor.fetchall()]

    def set_clock(self, ms: int) -> None:
        self._admin.execute("update outlast_test.clock set ms = %s", (ms,))

    def tables(self) -> Sequence[str]:
        return self._tables

    def reset(self) -> None:
        """Deleting a few rows is ten times as fast as truncating a dozen tables."""
        try:
            self._admin.execute("select 1")
        except psycopg.OperationalError:  # a test of another kind restarted the server
            self._give_back()
            self._admin = self._connect()
        self._admin.execute(sql.SQL("; ").join(sql.SQL("delete from outlast.{}").format(sql.Identifier(t)) for t in self._tables))
        self.set_clock(START_MS)

    def close(self) -> None:
        self._admin.close()
        self._give_back()
        if self._runner is not None:
            self._runner.close()

    def _give_back(self) -> None:
        if self._runner is None:
            self.store.close_sync()
        else:
            self._runner.run(self.store.close())

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row)
        connection.adapters.register_loader("json", TextLoader)
        return connection

    def _names(self) -> list[str]:
        rows = self._admin.execute("select tablename from pg_tables where schemaname = 'outlast' order by tablename").fetchall()
        return [row["tablename"] for row in rows if row["tablename"] != "migration"]


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict | list):
        return json.dumps(value)
    return value
