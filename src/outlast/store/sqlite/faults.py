"""What sqlite3's errors mean, by SQLite's error code, never by message text."""

from __future__ import annotations

import sqlite3

from outlast.store.drive import Fault

BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26
_PERM, _ERROR, _TOOBIG, _CONSTRAINT, _MISMATCH, _PROTOCOL, _SCHEMA = 3, 1, 18, 19, 20, 15, 17

_BY_CODE = {
    _ERROR: Fault.SCHEMA,  # our statements are fixed: an SQL error means that a table or column is missing
    BUSY: Fault.CONFLICT,
    _LOCKED: Fault.CONFLICT,
    _PROTOCOL: Fault.CONFLICT,
    _SCHEMA: Fault.CONFLICT,
    _READONLY: Fault.READ_ONLY,
    _PERM: Fault.READ_ONLY,
    _FULL: Fault.FULL,
    _IOERR: Fault.LOST,
    _CANTOPEN: Fault.REFUSED,
    _NOTADB: Fault.REFUSED,
    _CORRUPT: Fault.REFUSED,
    _TOOBIG: Fault.DATA,
    _CONSTRAINT: Fault.DATA,
    _MISMATCH: Fault.DATA,
}


def code_of(error: BaseException) -> int | None:
    """The primary error code, or None for an error that has none."""
    code = getattr(error, "sqlite_errorcode", None)  # the standard library's
    if code is None:
        code = getattr(error, "result", None)  # apsw's
    return code & 0xFF if isinstance(code, int) else None


def fault_of(error: BaseException) -> Fault:
    """The meaning of an error that a connection raised."""
    code = code_of(error)
    if code is not None:
        return _BY_CODE.get(code, Fault.UNKNOWN)
    if isinstance(error, sqlite3.DataError | UnicodeEncodeError | OverflowError):
        return Fault.DATA
    if isinstance(error, OSError):
        return Fault.LOST
    return Fault.UNKNOWN


def is_busy(error: BaseException) -> bool:
    """Whether another connection's lock was met; SQLITEBUSY_SNAPSHOT too, which needs a new transaction."""
    return code_of(error) in (BUSY, _LOCKED)
