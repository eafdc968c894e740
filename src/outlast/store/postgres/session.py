"""What every connection of ours is set to, and whether a pooler stands between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg

LOCK_TIMEOUT_MS = 2_000
CONNECT_LIMIT = 5  # seconds for a connection to come about; psycopg alone would wait for two minutes
CALL_LIMIT = 15.0  # seconds after which a silent connection is cut: no statement of ours takes that long

_ALWAYS: Mapping[str, str] = {
    # Plans must not depend on the statistics of a table that was empty a minute ago.
    "plan_cache_mode": "force_custom_plan",
    # An autocommit statement has no BEGIN that could name its isolation level.
    "default_transaction_isolation": "read committed",
    "lock_timeout": str(LOCK_TIMEOUT_MS),
    "idle_in_transaction_session_timeout": "60000",
}
_WORKER: Mapping[str, str] = {f"enable_{kind}": "off" for kind in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "material")}


# Of a reader of the whole store, who goes along keys, whatever the statistics say, and looks at a page while the transaction is idle.
_READER: Mapping[str, str] = {
    **_WORKER,
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # to start them costs more than a page
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


def _calls(settings: Mapping[str, str], local: str) -> list[str]:
    return [f"set_config('{name}', '{value}', {local})" for name, value in settings.items()]


def reading() -> bytes:
    """One statement that sets everything for one transaction that reads a whole store."""
    return f"select {', '.join(_calls(_READER, 'true'))}".encode()


@dataclass(frozen=True, slots=True)
class Profile:
    """What a store's connections are for. The hot statements of a worker want index probes whatever the statistics say."""

    worker: bool = False

    def settings(self, *, local: bool) -> bytes:
        """One statement that sets everything, for the session or, behind a transaction pooler, for one transaction."""
        flag = "true" if local else "false"
        calls = _calls({**_ALWAYS, **(_WORKER if self.worker else {})}, flag)
        # `off` reports commits that a crash may lose; remote_apply and the like are the operator's choice.
        calls.append(f"case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', {flag}) end")
        return f"select {', '.join(calls)}".encode()


PID: Final = "select pg_backend_pid()"

pooled: WeakKeyDictionary[psycopg.Connection[Any] | psycopg.AsyncConnection[Any], bool] = WeakKeyDictionary()
"""Connections that a transaction pooler may hand to another server process at each transaction."""


def behind_pooler(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], server_pid: int) -> bool:
    """Whether the process that answers is another than the one that the start of the session named."""
    return connection.info.backend_pid != server_pid
