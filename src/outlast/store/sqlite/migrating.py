"""Applies migrations to SQLite: one immediate transaction each, so that any number of processes may start them at once."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from outlast.domain.errors import StoreUnavailable
from outlast.store import migrate
from outlast.store.migrate import Applied, Migration
from outlast.store.program import Rows
from outlast.store.sqlite.connection import Connection
from outlast.store.sqlite.dialect import CLOCK, schema_migrations
from outlast.store.sqlite.raw import ERRORS

_TABLE = """
create table if not exists outlast_migration (
  number integer primary key, name text not null, breaking integer not null, checksum text not null, applied_at integer not null) strict
"""
_RECORD = f"""
insert into outlast_migration (number, name, breaking, checksum, applied_at)
values (:number, :name, :breaking, :checksum, {CLOCK})
"""


class Executing(Protocol):
    """A connection, of whatever kind."""

    def execute(self, sql: str) -> Rows:
        """The statement's rows."""
        ...


def read_applied(connection: Executing) -> list[Applied]:
    """What the store records; empty for a new file."""
    if not connection.execute("select 1 from sqlite_master where type = 'table' and name = 'outlast_migration'"):
        return []
    rows = connection.execute("select number, name, breaking, checksum from outlast_migration order by number")
    return [Applied(int(n), str(name), bool(breaking), str(checksum)) for n, name, breaking, checksum in rows]


def _connect(path: str) -> Connection:
    if not Path(path).resolve().parent.is_dir():
        raise StoreUnavailable("The folder of the store's file does not exist. Create it, or name another path.")
    try:
        return Connection(path)
    except ERRORS as error:
        raise StoreUnavailable("The store's file cannot be opened. Check that it is a SQLite file and its permissions.") from error


def pending(path: str) -> tuple[Migration, ...]:
    """What the store lacks; raises NotMigrated when it is newer than this code. A file that does not exist is not made."""
    if not Path(path).exists():
        return schema_migrations()
    connection = _connect(path)
    try:
        return migrate.pending(schema_migrations(), read_applied(connection))
    except ERRORS as error:
        raise StoreUnavailable("The store's file cannot be read. Check that it is a SQLite file and its permissions.") from error
    finally:
        connection.close()


def apply(path: str) -> tuple[Migration, ...]:
    """Applies what the store lacks; what was applied."""
    connection = _connect(path)
    try:
        return apply_on(connection)
    except ERRORS as error:
        raise StoreUnavailable(
            "The store's file cannot be written. Check that it is a SQLite file, its permissions and its disk."
        ) from error
    finally:
        connection.close()


def apply_on(connection: Connection) -> tuple[Migration, ...]:
    """As `apply`, on an open connection."""
    done: list[Migration] = []
    while True:
        connection.execute("begin immediate")
        try:
            connection.execute(_TABLE)
            missing = migrate.pending(schema_migrations(), read_applied(connection))
            if not missing:
                connection.execute("commit")
                return tuple(done)
            step = missing[0]
            for statement in step.statements:
                connection.execute(statement)
            record = {
                "number": step.number,
                "name": step.name,
                "breaking": int(step.breaking),
                "checksum": step.checksum,
            }
            connection.execute(_RECORD, record)
            connection.execute("commit")
            done.append(step)
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise


def script() -> str:
    """The same as SQL text, for those who apply it by other means."""
    parts = [_TABLE.strip() + ";"]
    for step in schema_migrations():
        parts.append(f"-- {step.number:04d}_{step.name}")
        parts.extend(f"{statement};" for statement in step.statements)
        values = f"{step.number}, '{step.name}', {int(step.breaking)}, '{step.checksum}', {CLOCK}"
        parts.append(f"insert into outlast_migration (number, name, breaking, checksum, applied_at) values ({values});")
    return "\n".join(parts) + "\n"
