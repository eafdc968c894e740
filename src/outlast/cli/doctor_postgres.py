"""What doctor looks at on a PostgreSQL server, over one connection of its own."""

from __future__ import annotations

import time
from importlib.metadata import version

import psycopg
import psycopg_pool

from outlast.cli.checks import Check, clock_check
from outlast.store.postgres.session import behind_pooler

OLDEST = 150_000
_NAME = "outlast doctor"
_SETTINGS = """
select current_setting('server_version'), current_setting('server_version_num')::int, pg_backend_pid(), pg_is_in_recovery(),
  current_setting('default_transaction_read_only'), current_setting('synchronous_commit'), current_setting('fsync'),
  current_setting('max_connections')
"""


def checks_of(url: str) -> list[Check]:
    """Driver, server and connection."""
    found = [
        Check("psycopg", f"{psycopg.__version__} ({psycopg.pq.__impl__})"),
        Check("psycopg_pool", version(psycopg_pool.__name__.replace("_", "-"))),
    ]
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5, application_name=_NAME, prepare_threshold=None) as connection:
            return [*found, *_server(connection)]
    except psycopg.Error as error:
        state = f" ({error.sqlstate})" if error.sqlstate else ""
        advice = "Check that the server runs, its address, the account and its password, and its limit of connections."
        return [*found, Check("server", f"cannot be reached{state}", "action", advice)]


def _server(connection: psycopg.Connection[tuple[object, ...]]) -> list[Check]:
    row = connection.execute(_SETTINGS).fetchone()
    if row is None:
        return []
    said, number, pid, standby, read_only, commit, fsync, limit = row
    return [
        Check("PostgreSQL", str(said))
        if int(str(number)) >= OLDEST
        else Check("PostgreSQL", str(said), "action", f"Outlast is tested from version {OLDEST // 10_000} on; upgrade the server."),
        _writable(standby=bool(standby), read_only=str(read_only)),
        _pool(connection, pid=int(str(pid))),
        _commit(str(commit)),
        Check("fsync", "on")
        if fsync == "on"
        else Check("fsync", str(fsync), "note", "A power cut can lose and damage data; leave it so on test servers only."),
        Check("max_connections", int(str(limit))),
        _clock(connection),
    ]


def _writable(*, standby: bool, read_only: str) -> Check:
    if standby:
        return Check("writable", "no, a standby", "action", "Name the primary, or all hosts with target_session_attrs=read-write.")
    if read_only == "on":
        return Check("writable", "no", "action", "default_transaction_read_only is on; turn it off for this account or database.")
    return Check("writable", "yes")


def _pool(connection: psycopg.Connection[tuple[object, ...]], *, pid: int) -> Check:
    if behind_pooler(connection, pid):
        advice = "Nothing depends on a session. There are no notifications: work from other processes is found by polling, within 0.5 s."
        return Check("connection", "through a transaction pooler", "note", advice)
    return Check("connection", "direct, or a pooler that keeps sessions")


def _commit(setting: str) -> Check:
    if setting == "off":
        advice = "Outlast turns it on for its own connections; in your own transactions a crash may lose what was acknowledged."
        return Check("synchronous_commit", setting, "note", advice)
    return Check("synchronous_commit", setting)


def _clock(connection: psycopg.Connection[tuple[object, ...]]) -> Check:
    before = time.time()
    row = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::float8").fetchone()
    after = time.time()
    store_ms = float(str(row[0])) if row else before * 1000
    return clock_check(store_ms - (before + after) * 500, unsure_ms=(after - before) * 500)
