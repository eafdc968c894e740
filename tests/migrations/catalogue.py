"""What a store's schema is, read from its catalogue: columns, indexes and table options, in one form for both stores."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import psycopg

from outlast.store.open import parse


@dataclass(frozen=True)
class Column:
    """A column as the catalogue has it."""

    table: str
    name: str
    type: str
    nullable: bool
    collation: str | None = None


def columns(url: str) -> set[Column]:
    """Every column of Outlast's tables."""
    address = parse(url)
    if address.dialect == "sqlite":
        with sqlite3.connect(address.target) as connection:
            tables = [r[0] for r in connection.execute("select name from sqlite_master where type = 'table' and name like 'outlast_%'")]
            found = {
                Column(table.removeprefix("outlast_"), name, kind.lower(), not (required or key))
                for table in tables
                for _, name, kind, required, _, key in connection.execute(f"pragma table_info({table})")
            }
        connection.close()
        return found
    with psycopg.connect(address.target) as connection:
        rows = connection.execute(
            "select table_name, column_name, data_type, is_nullable = 'YES', collation_name from information_schema.columns "
            "where table_schema = 'outlast'"
        ).fetchall()
    return {Column(*row) for row in rows}


def indexes(url: str) -> dict[str, str]:
    """The definition of every index by name, in lower case; primary keys too on PostgreSQL."""
    address = parse(url)
    if address.dialect == "sqlite":
        connection = sqlite3.connect(address.target)
        rows = connection.execute("select name, sql from sqlite_master where type = 'index' and sql is not null").fetchall()
        connection.close()
    else:
        with psycopg.connect(address.target) as postgres:
            rows = postgres.execute("select indexname, indexdef from pg_indexes where schemaname = 'outlast'").fetchall()
    return {name: " ".join(text.lower().split()) for name, text in rows}


def definitions(url: str) -> list[str]:
    """All of a SQLite file's definitions, white space folded."""
    connection = sqlite3.connect(parse(url).target)
    rows = connection.execute("select sql from sqlite_master where sql is not null and name not like 'sqlite_%' order by name").fetchall()
    connection.close()
    return [" ".join(sql.split()) for (sql,) in rows]
