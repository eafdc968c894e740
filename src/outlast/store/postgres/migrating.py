"""Applies migrations to PostgreSQL: one advisory lock, so that any number of processes may start them at once."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import psycopg

from outlast.domain.errors import StoreUnavailable
from outlast.store import migrate
from outlast.store.drive import Fault
from outlast.store.migrate import Applied, Migration
from outlast.store.postgres.dialect import SCHEMA, schema_migrations
from outlast.store.postgres.faults import fault_of

_LOCK = 0x0071A57  # an arbitrary number, the same for all versions
_TABLE = """
create table if not exists "{schema}".migration (
  number bigint primary key, name text not null, breaking boolean not null, checksum text not null,
  applied_at timestamptz not null default clock_timestamp())
"""


def applied_sql(schema: str) -> bytes:
    """Reads what the store records."""
    return f'select number, name, breaking, checksum from "{schema}".migration order by number'.encode()


def to_applied(rows: Iterable[tuple[Any, ...]]) -> list[Applied]:
    """Rows of `applied_sql` as values."""
    return [Applied(int(n), str(name), bool(breaking), str(checksum)) for n, name, breaking, checksum in rows]


def _connect(conninfo: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        return psycopg.connect(conninfo, autocommit=True, application_name="outlast migrate", connect_timeout=5)
    except psycopg.OperationalError as error:
        raise StoreUnavailable("The store cannot be reached. Check its address and that it is running.") from error


def read_applied(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> list[Applied]:
    """What the store records; empty for a database without one."""
    there = connection.execute("select to_regclass(%s)", (f'"{schema}".migration',)).fetchone()
    if there is None or there[0] is None:
        return []
    return to_applied(connection.execute(applied_sql(schema)).fetchall())


def pending(conninfo: str, *, schema: str = SCHEMA) -> tuple[Migration, ...]:
    """What the store lacks; raises NotMigrated when it is newer than this code."""
    with _connect(conninfo) as connection, _in_words():
        return migrate.pending(schema_migrations(schema), read_applied(connection, schema))


def apply(conninfo: str, *, schema: str = SCHEMA) -> tuple[Migration, ...]:
    """Applies what the store lacks, each migration in one transaction; what was applied.

    The lock is the transaction's, so that a pooler may stand between. A store that lacks nothing is only read.
    """
    done: list[Migration] = []
    with _connect(conninfo) as connection, _in_words():
        while migrate.pending(schema_migrations(schema), read_applied(connection, schema)):
            with connection.transaction():
                step = _apply_next(connection, schema)
            if step is not None:
                done.append(step)
    return tuple(done)


def _apply_next(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> Migration | None:
    connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
    connection.execute(f'create schema if not exists "{schema}"'.encode())
    connection.execute(_TABLE.format(schema=schema).encode())
    missing = migrate.pending(schema_migrations(schema), read_applied(connection, schema))
    if not missing:
        return None  # another process was faster
    step = missing[0]
    for statement in step.statements:
        connection.execute(statement.encode())
    connection.execute(
        f'insert into "{schema}".migration (number, name, breaking, checksum) values (%s, %s, %s, %s)'.encode(),
        (step.number, step.name, step.breaking, step.checksum),
    )
    return step


@contextmanager
def _in_words() -> Generator[None, None, None]:
    """What the server refuses, as an error that says what to do."""
    try:
        yield
    except psycopg.Error as error:
        words = _REFUSED.get(fault_of(error), f"The server refused a statement ({error.sqlstate or 'connection lost'}).")
        raise StoreUnavailable(f"{words} Nothing of the migration under way was kept.") from error


_REFUSED = {
    Fault.READ_ONLY: "This role may not write there: the server is read-only, or the role lacks rights (CREATE on the database).",
    Fault.FULL: "The server's disk is full.",
    Fault.LOST: "The connection to the server was lost.",
    Fault.CONFLICT: "The server's locks were held for too long; run it again.",
    Fault.LOCKED: "The server's locks were held for too long; run it again.",
}


def script(*, schema: str = SCHEMA) -> str:
    """The same as SQL text, for those who apply it by other means."""
    parts = [f'create schema if not exists "{schema}";', _TABLE.format(schema=schema).strip() + ";"]
    for step in schema_migrations(schema):
        parts.append(f"-- {step.number:04d}_{step.name}")
        parts.extend(f"{statement};" for statement in step.statements)
        parts.append(
            f'insert into "{schema}".migration (number, name, breaking, checksum) '
            f"values ({step.number}, '{step.name}', {str(step.breaking).lower()}, '{step.checksum}');"
        )
    return "\n".join(parts) + "\n"
