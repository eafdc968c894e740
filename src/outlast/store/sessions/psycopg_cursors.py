"""Cursors on a caller's connection of psycopg's that speak as psycopg does by itself, whatever the connection has been taught.

Its row factory, its class of cursors and its adapters are the caller's own: a dumper that changes texts or numbers would change what our
statements write.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, postgres
from psycopg.adapt import AdaptersMap
from psycopg.rows import tuple_row

Row = tuple[Any, ...]


@cache
def _own() -> AdaptersMap:
    """The adapters that psycopg begins with."""
    adapters = AdaptersMap(types=postgres.types)
    postgres.register_default_adapters(adapters)
    return adapters


class PlainCursor(Cursor[Row]):
    """Of a blocking connection."""

    def __init__(self, connection: Connection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self._adapters = AdaptersMap(_own())


class AsyncPlainCursor(AsyncCursor[Row]):
    """Of an async connection."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self._adapters = AdaptersMap(_own())
