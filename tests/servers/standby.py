"""A primary with a synchronous standby: what one acknowledges the other has on its disk, and can be promoted in its place.

with replicated() as (primary, standby):
    primary.kill()
    standby.promote()
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import psycopg

from servers.postgres import START_SECONDS, SUPERUSER, PostgresServer, ServerError, _run_as


class Standby(PostgresServer):
    """A server that follows another one, until it is promoted."""

    def __init__(self, primary: PostgresServer, *, fsync: bool | None = None) -> None:
        super().__init__(fsync=fsync)
        self._primary = primary

    def promote(self) -> None:
        """Makes it the primary; returns when it takes writes."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            row = connection.execute("select pg_promote(true, 30)").fetchone()
        if row is None or not row[0]:
            raise ServerError("the standby was not promoted")

    def _initdb(self) -> None:
        """The primary's files, as they are while it runs."""
        command = [str(self.bin_dir / "pg_basebackup"), "-h", "127.0.0.1", "-p", str(self._primary.port), "-U", SUPERUSER]
        command += ["-D", str(self._home() / "data"), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        done = subprocess.run(
            command,
            cwd=self._home(),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **_run_as(self._account),
        )
        if done.returncode != 0:
            raise ServerError(f"pg_basebackup failed:\n{done.stdout}{done.stderr}")


@contextmanager
def replicated(database: str, *, fsync: bool = False) -> Generator[tuple[PostgresServer, Standby]]:
    """Both, running and in step, with a database of that name."""
    with PostgresServer(fsync=fsync, settings={"wal_level": "replica"}) as primary:
        primary.create_database(database)
        with Standby(primary, fsync=fsync) as standby:
            with psycopg.connect(primary.dsn(), autocommit=True) as connection:
                # After the copy, which would have it too: once promoted it would wait for a standby of its own.
                connection.execute("alter system set synchronous_standby_names = '*'")
                connection.execute("select pg_reload_conf()")
            _in_step(primary)
            yield primary, standby


def address(database: str, *servers: PostgresServer, names: Mapping[str, str] | None = None) -> str:
    """The connection string that names all of them and wants the one that takes writes."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    parameters = "&".join(f"{name}={value}" for name, value in {"target_session_attrs": "read-write", **(names or {})}.items())
    return f"postgresql://outlast@{hosts}/{database}?{parameters}"


def _in_step(primary: PostgresServer) -> None:
    """Waits until the primary counts its standby as synchronous: from then on no commit is acknowledged without it."""
    end = time.monotonic() + START_SECONDS
    while True:
        # A commit would wait for the standby; a read does not.
        with psycopg.connect(primary.dsn(), autocommit=True) as connection:
            row = connection.execute(
                "select count(*) from pg_stat_replication where sync_state = 'sync' and state = 'streaming'"
            ).fetchone()
        if row is not None and row[0]:
            return
        if time.monotonic() > end:
            raise ServerError(f"the standby does not follow:\n{primary.log[-2000:]}")
        time.sleep(0.05)
