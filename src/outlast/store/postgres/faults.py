"""What psycopg's errors mean, by SQLSTATE and by the state of the connection, never by message text."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from outlast.store.drive import Fault

_BY_CLASS = {
    "08": Fault.LOST,
    "22": Fault.DATA,
    "23": Fault.DATA,
    "28": Fault.REFUSED,
    "40": Fault.CONFLICT,
    "53": Fault.REFUSED,
}
_BY_STATE = {
    "0A000": Fault.CONFLICT,  # cached plan must not change result type: a migration passed by
    "25006": Fault.READ_ONLY,
    "25P03": Fault.LOST,  # the server ends sessions that idle (in a transaction), or transactions that last: an operator's limits
    "25P04": Fault.LOST,
    "3D000": Fault.REFUSED,
    "3F000": Fault.SCHEMA,
    "42501": Fault.READ_ONLY,
    "42703": Fault.SCHEMA,
    "42P01": Fault.SCHEMA,
    "53100": Fault.FULL,
    "55P03": Fault.LOCKED,
    "57014": Fault.CONFLICT,
    "57P01": Fault.LOST,
    "57P02": Fault.LOST,
    "57P03": Fault.LOST,
    "57P05": Fault.LOST,
    "58030": Fault.FULL,
}


def fault_of(error: BaseException) -> Fault:
    """The meaning of an error that a connection or the pool raised."""
    if isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return Fault.REFUSED
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return Fault.DATA
    state: str | None = getattr(error, "sqlstate", None)  # another driver's errors may have one too
    if state is None and not isinstance(error, psycopg.Error):
        return Fault.LOST if isinstance(error, OSError) else Fault.UNKNOWN
    if state is None and isinstance(error, psycopg.DataError):
        return Fault.DATA  # refused before it was sent: a NUL in a text
    if state is None:
        return Fault.LOST if isinstance(error, psycopg.OperationalError | errors.InterfaceError) else Fault.UNKNOWN
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], Fault.UNKNOWN)
