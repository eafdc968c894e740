"""What a driver's error means, told by its code and never by its text."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from outlast.store.drive import Fault
from outlast.store.postgres import faults as postgres
from outlast.store.sqlite import faults as sqlite

_SURROGATE = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (errors.SerializationFailure(), Fault.CONFLICT),
        (errors.DeadlockDetected(), Fault.CONFLICT),
        (errors.LockNotAvailable(), Fault.LOCKED),
        (errors.QueryCanceled(), Fault.CONFLICT),
        (errors.FeatureNotSupported(), Fault.CONFLICT),
        (errors.AdminShutdown(), Fault.LOST),
        (errors.CrashShutdown(), Fault.LOST),
        (errors.CannotConnectNow(), Fault.LOST),
        (errors.ConnectionFailure(), Fault.LOST),
        (psycopg.OperationalError("server closed the connection"), Fault.LOST),
        (psycopg.InterfaceError("the connection is closed"), Fault.LOST),
        (ConnectionResetError(), Fault.LOST),
        (errors.InvalidPassword(), Fault.REFUSED),
        (errors.InvalidCatalogName(), Fault.REFUSED),
        (errors.TooManyConnections(), Fault.REFUSED),
        (PoolTimeout(), Fault.REFUSED),
        (PoolClosed(), Fault.REFUSED),
        (TooManyRequests(), Fault.REFUSED),
        (errors.ReadOnlySqlTransaction(), Fault.READ_ONLY),
        (errors.InsufficientPrivilege(), Fault.READ_ONLY),
        (errors.DiskFull(), Fault.FULL),
        (errors.IoError(), Fault.FULL),
        (errors.UndefinedTable(), Fault.SCHEMA),
        (errors.UndefinedColumn(), Fault.SCHEMA),
        (errors.InvalidSchemaName(), Fault.SCHEMA),
        (errors.UniqueViolation(), Fault.DATA),
        (errors.NumericValueOutOfRange(), Fault.DATA),
        (errors.UntranslatableCharacter(), Fault.DATA),
        (errors.DatetimeFieldOverflow(), Fault.DATA),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL"), Fault.DATA),
        (_SURROGATE, Fault.DATA),
        (OverflowError("a number that no type holds"), Fault.DATA),
        (errors.SyntaxError(), Fault.UNKNOWN),
        (psycopg.ProgrammingError("a parameter is missing"), Fault.UNKNOWN),
        (KeyError("a statement"), Fault.UNKNOWN),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, Exception) else "",
)
def test_postgresql(error: Exception, fault: Fault) -> None:
    assert postgres.fault_of(error) is fault


def coded(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("whatever it says")
    error.sqlite_errorcode = code
    return error


class Apsw(Exception):
    """An error as apsw raises it."""

    def __init__(self, result: int) -> None:
        self.result = result


@pytest.mark.parametrize("kind", [coded, Apsw])
@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (sqlite3.SQLITE_BUSY, Fault.CONFLICT),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Fault.CONFLICT),
        (sqlite3.SQLITE_LOCKED, Fault.CONFLICT),
        (sqlite3.SQLITE_SCHEMA, Fault.CONFLICT),
        (sqlite3.SQLITE_IOERR, Fault.LOST),
        (sqlite3.SQLITE_IOERR_FSYNC, Fault.LOST),
        (sqlite3.SQLITE_CANTOPEN, Fault.REFUSED),
        (sqlite3.SQLITE_NOTADB, Fault.REFUSED),
        (sqlite3.SQLITE_CORRUPT, Fault.REFUSED),
        (sqlite3.SQLITE_READONLY, Fault.READ_ONLY),
        (sqlite3.SQLITE_READONLY_DBMOVED, Fault.READ_ONLY),
        (sqlite3.SQLITE_FULL, Fault.FULL),
        (sqlite3.SQLITE_ERROR, Fault.SCHEMA),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Fault.DATA),
        (sqlite3.SQLITE_MISMATCH, Fault.DATA),
        (sqlite3.SQLITE_TOOBIG, Fault.DATA),
        (sqlite3.SQLITE_INTERNAL, Fault.UNKNOWN),
    ],
)
def test_sqlite(kind: type[Exception], code: int, fault: Fault) -> None:
    error = kind(code)
    assert sqlite.fault_of(error) is fault
    assert sqlite.is_busy(error) == (code & 0xFF in (5, 6))


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (_SURROGATE, Fault.DATA),
        (OverflowError("Python int too large"), Fault.DATA),
        (sqlite3.DataError("no code"), Fault.DATA),
        (OSError(), Fault.LOST),
        (KeyError("a statement"), Fault.UNKNOWN),
        (sqlite3.ProgrammingError("a parameter is missing"), Fault.UNKNOWN),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, Exception) else "",
)
def test_sqlite_errors_without_a_code(error: Exception, fault: Fault) -> None:
    assert sqlite.fault_of(error) is fault
    assert not sqlite.is_busy(error)
