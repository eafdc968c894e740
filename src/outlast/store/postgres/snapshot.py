"""Reads a PostgreSQL store in one transaction that sees one moment and cannot write, for those who look at a whole store."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg

from outlast.domain.errors import StoreUnavailable
from outlast.store import migrate
from outlast.store.drive import Fault, drive
from outlast.store.postgres.dialect import SCHEMA, schema_migrations, statements
from outlast.store.postgres.faults import fault_of
from outlast.store.postgres.migrating import read_applied
from outlast.store.postgres.session import CONNECT_LIMIT, reading
from outlast.store.program import Program, Rows, Statement, T

_BEGIN = "begin transaction isolation level repeatable read, read only"
_WORDS = {
    Fault.READ_ONLY: "This role may not read the store: it needs USAGE on the schema outlast, and SELECT on its tables.",
    Fault.CONFLICT: "The server ended the reading (a standby may, for what it has to replay). Run it again, or on the primary.",
    Fault.SCHEMA: "A table or column of the store is missing.",
}
_LOST = (
    "The store cannot be reached, or the connection was lost. Check that it is running, its address, the name of the database, and the "
    "account and its password."
)


class Snapshot:
    """One moment of a store."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> None:
        self._connection = connection
        self._sql = statements(schema)

    def run(self, program: Program[T]) -> T:
        """The program's value."""
        return drive(program, self._statement)

    def _statement(self, statement: Statement) -> Rows:
        return self._connection.execute(self._sql[statement.name].encode(), statement.params).fetchall()


@contextmanager
def snapshot(conninfo: str, *, schema: str = SCHEMA) -> Generator[Snapshot]:
    """A store to read as it is now; StoreUnavailable or NotMigrated, in words, where it cannot be. Nothing is written."""
    with _in_words(), _connect(conninfo) as connection:
        connection.execute(_BEGIN)
        connection.execute(reading())
        migrate.require_migrated(schema_migrations(schema), read_applied(connection, schema))
        yield Snapshot(connection, schema)
        connection.execute("rollback")


def _connect(conninfo: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(
        conninfo, autocommit=True, application_name="outlast verify", connect_timeout=CONNECT_LIMIT, prepare_threshold=None
    )


@contextmanager
def _in_words() -> Generator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StoreUnavailable(_WORDS.get(fault_of(error), _LOST)) from error
