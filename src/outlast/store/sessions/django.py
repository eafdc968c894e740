"""A database of Django's, named by its alias, with a transaction of the caller's. Statements go through Django's own connection.

They are its thread's: what `transaction.atomic` opened in one thread is not seen from another.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from outlast.domain.errors import StoreUnavailable, TransactionMisused
from outlast.store.program import Rows
from outlast.store.sessions.callers import Standing
from outlast.store.sessions.driver_callers import standing
from outlast.store.sessions.sides import Host, closed, failed, family, invalid

P = ParamSpec("P")
R = TypeVar("R")


async def in_djangos_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls blocking code in the thread that Django uses for the database from this async code."""
    try:
        from asgiref.sync import sync_to_async  # noqa: PLC0415 - it comes with Django
    except ImportError as error:
        raise _not_installed() from error
    return await sync_to_async(call, thread_sensitive=True)(*args, **kwargs)


class DjangoCaller:
    """The connection that Django holds under an alias in this thread, or, in async code, in the thread of `sync_to_async`."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._connection: Host = None

    def prepare(self) -> Standing:
        """See `Caller`."""
        self._connection = connection = _connection(self._alias)
        if connection.in_atomic_block and connection.closed_in_transaction:
            raise closed("connection")
        # Outside of a block the mark may be left over from a connection that was closed in one: the next connection clears it.
        if connection.in_atomic_block and connection.needs_rollback:
            raise failed()
        try:
            with _driver_errors():
                by_itself = not connection.in_atomic_block and connection.get_autocommit()
        except Exception as error:
            if family(error) in ("psycopg", "sqlite3"):
                raise StoreUnavailable("Django could not connect to the database of transaction=. Nothing was written.") from error
            raise
        # A transaction that was begun by a statement, without Django, is open as well: the driver knows.
        if connection.vendor == "sqlite":
            return Standing("sqlite", open=not by_itself or connection.connection.in_transaction)
        stands = standing(connection.connection)
        return replace(stands, open=stands.open or not by_itself)

    def execute(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """See `Caller`.

        Django's debug log of queries is passed by, since it holds values: what people ask for belongs into no log.
        """
        connection = self._connection
        with _driver_errors(), connection.cursor() as opened:
            if connection.vendor == "sqlite":
                raw, text = opened.cursor, sql.replace("%", "%%")  # Django's cursor makes of %% what stood there
            else:
                raw, text = _plain_cursor(connection.connection), sql
            # Wrappers of connection.execute_wrapper are the host's, and are asked as for any of its statements.
            cursor = connection.make_cursor(raw)
            cursor.execute(text, dict(params))
            return [tuple(row) for row in cursor.fetchall()] if raw.description else ()


def _plain_cursor(driver: Host) -> Host:
    """A cursor of psycopg's own class: the settings of the alias may ask for one that binds values itself, or that makes other rows."""
    from outlast.store.sessions.psycopg_cursors import PlainCursor  # noqa: PLC0415 - the caller's library, in its process already

    return PlainCursor(driver)


def _connection(alias: str) -> Host:
    """Django's connection; TransactionMisused where there is none of that name, or none of a store's databases."""
    try:
        from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - an extra
        from django.db import connections  # noqa: PLC0415
        from django.utils.connection import ConnectionDoesNotExist  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed() from error
    try:
        connection: Host = connections[alias]
    except ConnectionDoesNotExist as error:
        known = ", ".join(repr(name) for name in connections)
        raise invalid(f"Django's DATABASES has no alias {alias!r}, which transaction= names; it has {known}.") from error
    except ImproperlyConfigured as error:
        raise invalid(
            "A text as transaction= is the alias of a Django database, and Django is not set up in this process, or not for that alias: "
            "set DJANGO_SETTINGS_MODULE, call django.setup(), and check the ENGINE of the alias."
        ) from error
    if connection.vendor not in ("postgresql", "sqlite") or not _speaks(connection):
        raise _engine(alias, connection)
    return connection


def _not_installed() -> TransactionMisused:
    return invalid("A text as transaction= is the alias of a Django database, and Django is not installed here.")


def _speaks(connection: Host) -> bool:
    if connection.vendor == "sqlite":
        return True
    from django.db.backends.postgresql.psycopg_any import is_psycopg3  # noqa: PLC0415 - an extra

    return bool(is_psycopg3)


def _engine(alias: str, connection: Host) -> TransactionMisused:
    engine = str(connection.settings_dict.get("ENGINE", ""))
    if connection.vendor == "postgresql":
        return invalid(f"The database {alias!r} of transaction= is used through psycopg2. Install psycopg 3, which Django then takes.")
    return invalid(
        f"The database {alias!r} of transaction= has the engine {engine!r}, which no store can be in: it has to be PostgreSQL or SQLite. "
        "Write the request into an outbox there (docs/outbox.md)."
    )


@contextmanager
def _driver_errors() -> Generator[None, None, None]:
    """Errors of the driver come as they are: Django wraps them in its own."""
    try:
        yield
    except Exception as error:
        cause = error.__cause__
        if type(error).__module__ == "django.db.utils" and cause is not None and family(cause) in ("psycopg", "sqlite3"):
            raise cause  # noqa: B904 - it is the cause
        raise
