"""What a connection of the store's own would pass by: what keeps tests off the database, and this thread's open transaction."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from outlast.domain.errors import TransactionMisused


def ask(alias: str) -> None:
    """Raises what a test that may not touch the database raises for a query on this alias.

    `SimpleTestCase` and pytest-django stand guard in Django's connections. Elsewhere nothing is asked, and no connection made.
    """
    if BaseDatabaseWrapper.ensure_connection.__module__ == BaseDatabaseWrapper.__module__:
        return
    connection: Any = connections[alias]
    try:
        connection.ensure_connection()
        if "cursor" in vars(connection):  # SimpleTestCase's, for a connection that was open before
            connection.cursor().close()
    except SynchronousOnlyOperation:
        return  # the guard, which comes first, has let it pass; code on a loop has no connection of Django's to open


def refuse_inside(alias: str) -> None:
    """TransactionMisused where this thread's transaction on the alias, of SQLite, has the lock that a write would wait for in vain.

    One that began as a reader may have no lock yet, which nobody can tell; there the write is tried.
    """
    connection: Any = connections[alias]
    if connection.vendor != "sqlite" or not connection.in_atomic_block:
        return
    if str(connection.settings_dict["OPTIONS"].get("transaction_mode") or "").upper() in ("IMMEDIATE", "EXCLUSIVE"):
        raise TransactionMisused(
            f"This thread's transaction on {alias!r} (atomic, ATOMIC_REQUESTS or TestCase) holds the lock of the SQLite file, for which "
            f"this call would wait in vain. Submit with transaction={alias!r}; make any other call before or after the transaction, with "
            "transaction.non_atomic_requests on the view, or in a TransactionTestCase.",
            code="inside_transaction",
        )
