"""Reads and writes the record of migrations behind the code's back."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg

from outlast.store.open import parse


def _rows(url: str, on_sqlite: str, on_postgresql: str) -> list[tuple[Any, ...]]:
    address = parse(url)
    if address.dialect == "sqlite":
        if not Path(address.target).exists():
            return []
        connection = sqlite3.connect(address.target)
        try:
            return connection.execute(on_sqlite).fetchall()
        finally:
            connection.close()
    with psycopg.connect(address.target) as server:
        return server.execute(on_postgresql.encode()).fetchall()


def tables(url: str) -> set[str]:
    """The names of Outlast's tables."""
    names = _rows(
        url,
        "select substr(name, 9) from sqlite_master where type = 'table' and name like 'outlast~_%' escape '~'",
        "select table_name from information_schema.tables where table_schema = 'outlast'",
    )
    return {str(row[0]) for row in names}


def applied(url: str) -> list[tuple[int, str]]:
    """Number and name of each migration on record."""
    if "migration" not in tables(url):
        return []
    return _rows(url, "select number, name from outlast_migration order by 1", "select number, name from outlast.migration order by 1")


def record(url: str, number: int, name: str, *, breaking: bool) -> None:
    """As a later version would leave it."""
    address = parse(url)
    if address.dialect == "sqlite":
        connection = sqlite3.connect(address.target)
        with connection:
            connection.execute("insert into outlast_migration values (?, ?, ?, 'later', 0)", (number, name, breaking))
        connection.close()
        return
    with psycopg.connect(address.target) as server:
        server.execute(
            "insert into outlast.migration (number, name, breaking, checksum) values (%s, %s, %s, 'later')", (number, name, breaking)
        )
