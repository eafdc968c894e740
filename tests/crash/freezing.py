"""Stops a process at a moment at which none of its threads holds a lock of the store.

A process that is stopped inside a write transaction of an SQLite file keeps all others from writing until it goes on: that is so, and
docs/sqlite.md says it. A test of what becomes of the frozen one's work must not meet it by chance, once in some thousand runs. So the
file is held exclusively for the moment of the stop, by another process than the one that is stopped.

    python tests/crash/freezing.py PID URL
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

SCHEME = "sqlite:///"
LIMIT = 20.0


def stopped(pid: int) -> bool:
    """Whether the process is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def stop(pid: int, url: str) -> None:
    """Stops it, and returns when it is."""
    with _quiet(url):
        os.kill(pid, signal.SIGSTOP)
        end = time.monotonic() + LIMIT
        while not stopped(pid):
            assert time.monotonic() < end, f"{pid} was not stopped"
            time.sleep(0.005)


@contextmanager
def _quiet(url: str) -> Iterator[None]:
    """Nobody else holds a lock of the store's file meanwhile; nothing where the store is a server."""
    if not url.startswith(SCHEME):
        yield
        return
    with closing(sqlite3.connect(url.removeprefix(SCHEME), isolation_level=None, timeout=0)) as connection:
        end = time.monotonic() + LIMIT
        while True:
            try:
                connection.execute("begin exclusive")
                break
            except sqlite3.OperationalError:
                assert time.monotonic() < end, f"{url} was never free"
                time.sleep(0.001)
        yield
        connection.execute("rollback")


if __name__ == "__main__":
    stop(int(sys.argv[1]), sys.argv[2])
