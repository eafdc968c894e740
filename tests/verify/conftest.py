"""One store of each dialect with a row of every kind in it; a test changes what it likes, looks, and takes it back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from contract.backends import Backend, PostgresBackend, SqliteBackend
from contract.fixtures import files, sqlite_template
from outlast.store.drive import drive
from outlast.store.loader import expand
from outlast.store.postgres import dialect as postgres
from outlast.store.program import Rows, Statement
from outlast.store.programs.verify import Report, verify
from outlast.store.sqlite import dialect as sqlite
from outlast.store.sqlite.build import linked
from outlast.store.sqlite.raw import open_raw
from servers.postgres import PostgresServer
from verify.story import told

__all__ = ["files", "sqlite_template"]


@dataclass(frozen=True, slots=True)
class Store:
    """A store with the story in it."""

    dialect: str
    url: str
    execute: Callable[[str], Rows]
    read: Callable[[Statement], Rows]

    def text(self, sql: str) -> str:
        """`[asks]` is the id of the job of that label, `{outlast.task}` a table."""
        head, *rest = sql.split("[")
        for part in rest:
            label, _, tail = part.partition("]")
            head += f"(select id from {{outlast.job}} where label = '{label}'){tail}"
        head = head.replace("{dropped}", f"{'outlast.' * (self.dialect != 'sqlite')}outlast_job_active")
        if self.dialect == "sqlite":
            return expand(head, sqlite.tokens(), sqlite.table)
        return expand(head, postgres.tokens(), postgres.table_of(postgres.SCHEMA))

    @contextmanager
    def changed(self, statements: Sequence[str]) -> Iterator[None]:
        """The store after these statements, each of which changes something; then as it was."""
        self.execute("begin")
        try:
            for statement in statements:
                self.execute(self.text(statement))
            yield
        finally:
            self.execute("rollback")

    def verify(self, limit: int = 100) -> Report:
        """What is wrong in it, as this connection sees it."""
        return drive(verify(limit=limit), self.read)


def _on_sqlite(backend: SqliteBackend) -> Iterator[Store]:
    connection = open_raw(str(backend.path), linked())  # of the store's own driver: two builds would undo each other's locks
    texts = sqlite.statements()

    def execute(sql: str) -> Rows:
        rows = connection.execute(sql, ())
        assert connection.execute("select changes()", ()) != [(0,)] or sql in ("begin", "rollback"), f"nothing was changed by {sql}"
        return rows

    def read(statement: Statement) -> Rows:
        return connection.execute(texts[statement.name], statement.params)

    yield Store("sqlite", f"sqlite:///{backend.path}", execute, read)
    connection.close()


def _on_postgres(backend: PostgresBackend) -> Iterator[Store]:
    texts = postgres.statements(postgres.SCHEMA)
    with psycopg.connect(backend.dsn, autocommit=True) as connection:

        def execute(sql: str) -> Rows:
            cursor: psycopg.Cursor[Any] = connection.execute(sql.encode())
            assert cursor.rowcount != 0, f"nothing was changed by {sql}"
            return cursor.fetchall() if cursor.description else ()

        def read(statement: Statement) -> Rows:
            return connection.execute(texts[statement.name].encode(), statement.params).fetchall()

        yield Store("postgresql", backend.dsn, execute, read)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A store of its own, for this module, with the story in it."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("files") / f"verify_{secrets.token_hex(4)}.db"
        lite = SqliteBackend.copy_of(request.getfixturevalue("sqlite_template"), path)
        told(lite)
        yield lite
        lite.close()
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"verify_{secrets.token_hex(4)}"
    dsn = server.create_database(name)
    PostgresBackend.migrate(dsn)
    made = PostgresBackend(dsn, "sync")
    told(made)
    yield made
    made.close()
    server.drop_database(name)


@pytest.fixture(scope="module")
def store(backend: Backend) -> Iterator[Store]:
    """The same, as a test looks at it and changes it."""
    if isinstance(backend, SqliteBackend):
        yield from _on_sqlite(backend)
    else:
        assert isinstance(backend, PostgresBackend)
        yield from _on_postgres(backend)
