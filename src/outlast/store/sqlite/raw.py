"""The two drivers of SQLite as one: the standard library's, and apsw, which brings a newer build."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Protocol

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
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0, cached_statements=256)

    def execute(self, sql: str, params: Parameters) -> Rows:
        return self._connection.execute(sql, params).fetchall()

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


class _Apsw:
    def __init__(self, path: str) -> None:
        import apsw  # noqa: PLC0415 - an extra

        self._connection: Any = apsw.Connection(path, statementcachesize=256)
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


def _errors() -> tuple[type[Exception], ...]:
    """What the drivers raise."""
    if linked().driver != "apsw":
        return (sqlite3.Error,)
    import apsw  # noqa: PLC0415 - an extra

    return (sqlite3.Error, apsw.Error)


ERRORS = _errors()
"""What the drivers raise for what SQLite refuses."""
