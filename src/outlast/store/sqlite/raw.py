"""The two drivers of SQLite as one: the standard library's, and apsw, which brings a newer build."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from outlast.store.program import Rows
from outlast.store.sqlite.build import Build, linked

Parameters = Mapping[str, Any] | tuple[Any, ...]


class Raw(Protocol):
    """A connection in autocommit mode."""

    def execute(self, sql: str, params: Parameters) -> Rows:
        """The statement's rows."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def close(self) -> None:
        """Closes the file."""
        ...


class _Standard:
    def __init__(self, path: str, *, reading: bool = False) -> None:
        name = f"file:{quote(str(Path(path).resolve()))}?mode=ro" if reading else path
        self._connection = sqlite3.connect(
            name, isolation_level=None, check_same_thread=False, timeout=0, cached_statements=256, uri=reading
        )

    def execute(self, sql: str, params: Parameters) -> Rows:
        return self._connection.execute(sql, params).fetchall()

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


class _Apsw:
    def __init__(self, path: str, *, reading: bool = False) -> None:
        import apsw  # noqa: PLC0415 - an extra

        flags = apsw.SQLITE_OPEN_READONLY if reading else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._connection: Any = apsw.Connection(path, flags=flags, statementcachesize=256)
        # Its build would plan joins anew at each execution, by the values; ours are planned for index probes once.
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)

    def execute(self, sql: str, params: Parameters) -> Rows:
        rows: Rows = self._connection.execute(sql, params).fetchall()
        return rows

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def close(self) -> None:
        self._connection.close(force=True)


def open_raw(path: str, build: Build) -> Raw:
    """A connection by the build's driver, which waits for no lock by itself."""
    return _Apsw(path) if build.driver == "apsw" else _Standard(path)


def open_reading(path: str, build: Build) -> Raw:
    """The same on a file that is there, for a connection that cannot write."""
    return _Apsw(path, reading=True) if build.driver == "apsw" else _Standard(path, reading=True)


def _errors() -> tuple[type[Exception], ...]:
    """What the drivers raise."""
    if linked().driver != "apsw":
        return (sqlite3.Error,)
    import apsw  # noqa: PLC0415 - an extra

    return (sqlite3.Error, apsw.Error)


ERRORS = _errors()
"""What the drivers raise for what SQLite refuses."""
