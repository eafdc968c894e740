"""How a transaction is told from the next one on the same session: the host's code may have ended it and gone on in another.

PostgreSQL gives each transaction that writes a number, and says later what became of it. On SQLite a savepoint ends with its
transaction, and the version of the temporary schema keeps a number if, and only if, the transaction that wrote it was committed.
"""

from __future__ import annotations

import secrets
from typing import Final

from outlast.store.sessions.sides import Host, family, invalid, original

NUMBER: Final = "select pg_current_xact_id()::text"
PRESENT: Final = "select pg_current_xact_id_if_assigned()::text"
FATE: Final = "select pg_xact_status(%(mark)s::text::xid8)"
COMMITTED: Final = "committed"

WRITER: Final = "begin immediate"
# A transaction that the host's own hooks began (SQLAlchemy's recipe for savepoints) becomes a writer by a write, of nothing.
BECOME_WRITER: Final = "delete from outlast_queue_entry where 0"
SAVEPOINT: Final = "savepoint outlast"
RELEASE: Final = "release savepoint outlast"
VERSION: Final = "pragma temp.user_version"

_IDLE: Final = 0
_ERROR, _BUSY, _LOCKED = 1, 5, 6


def number() -> int:
    """A number that no transaction of this connection is likely to have had before."""
    return secrets.randbelow(2**31 - 1) + 1


def write_version(mark: int) -> str:
    """Notes the number in the transaction."""
    return f"{VERSION} = {mark}"


def shut(connection: Host) -> bool:
    """Whether a psycopg connection was closed by code, not lost."""
    return bool(connection.closed) and not connection.broken


def idle(connection: Host) -> bool:
    """Whether a psycopg connection is surely in no transaction."""
    return int(connection.pgconn.transaction_status) == _IDLE


def met_shut(cause: BaseException) -> bool:
    """Whether an error of psycopg's came from its own side, as that about a closed connection does."""
    return family(cause) == "psycopg" and getattr(cause, "sqlstate", None) is None


def no_such_savepoint(error: BaseException) -> bool:
    """Whether SQLite says of RELEASE that the transaction that had the savepoint is over."""
    return _sqlite_code(error) == _ERROR


def met_lock(error: BaseException) -> bool:
    """Whether another connection's lock on a SQLite file was met."""
    return _sqlite_code(error) in (_BUSY, _LOCKED)


def _sqlite_code(error: BaseException) -> int | None:
    code = getattr(original(error), "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def refuse_pipeline(connection: Host) -> None:
    """In pipeline mode a statement's answer comes after the next ones were sent: no guard could be judged."""
    if int(connection.pgconn.pipeline_status):
        raise invalid("The session is a psycopg connection in pipeline mode. Give it without: pipeline() may be used inside the function.")


def refuse_autocommit(connection: Host) -> None:
    """SQLAlchemy's AUTOCOMMIT leaves each statement a transaction of its own."""
    if getattr(connection, "autocommit", False):
        raise invalid(
            'The engine has isolation_level="AUTOCOMMIT": each of its statements would commit by itself. '
            'Give session= one without, for example engine.execution_options(isolation_level="READ COMMITTED").'
        )


def refuse_open(connection: Host) -> None:
    """A connection of sqlite3 that is in a transaction cannot begin the one that is needed."""
    if connection.in_transaction:
        raise invalid(
            "The session, a connection of sqlite3, has a transaction open already. Give it outside of one, and without autocommit=False."
        )
