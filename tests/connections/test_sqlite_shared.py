"""A SQLite file that several programs share: nobody is told that it is locked, unless it is so for longer than anybody waits."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connections.shop import WHO, Order, shop
from invariants import check
from outlast import StoreUnavailable
from outlast.store.open import migrate
from outlast.store.sqlite import connection as connection_module

TESTS = Path(__file__).parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    migrate(f"sqlite:///{tmp_path / 'jobs.db'}")
    return tmp_path / "jobs.db"


class Lodger:
    """A process with a role."""

    def __init__(self, path: Path, role: str) -> None:
        self.role = role
        self._process = subprocess.Popen(
            [sys.executable, str(TESTS / "connections" / "lodger.py"), f"sqlite:///{path}", role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )

    def end(self) -> dict[str, Any]:
        out, err = self._process.communicate("", timeout=40)
        assert self._process.returncode == 0, err
        said: dict[str, Any] = json.loads(out.splitlines()[-1])
        return said

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def locked(path: Path, mode: str) -> Iterator[None]:
    other = sqlite3.connect(path, isolation_level=None, timeout=30)
    other.execute(f"begin {mode}")
    try:
        yield
    finally:
        other.execute("rollback")
        other.close()


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_load_of_several_processes_a_foreign_writer_and_a_copy(path: Path, tmp_path: Path) -> None:
    lodgers = [Lodger(path, role) for role in ("work", "work", "submit", "read")]
    try:
        time.sleep(3)
        with locked(path, "immediate"):
            time.sleep(3)
        time.sleep(1)
        with locked(path, "exclusive"):
            time.sleep(3)
        time.sleep(1)
        copy = tmp_path / "copy.db"
        source, target = sqlite3.connect(path, timeout=30), sqlite3.connect(copy)
        source.backup(target, pages=50, sleep=0.01)
        source.close()
        target.close()
        time.sleep(1)
        *workers, submit, read = lodgers
        said = {one.role: one.end() for one in (submit, read)}
        _wait_until_done(path)
        worked = [one.end() for one in workers]
    finally:
        for one in lodgers:
            one.kill()

    print(said)
    assert [one["wrong"] for one in (*said.values(), *worked)] == [[], [], [], []]
    assert said["submit"]["count"] > 20
    assert said["read"]["count"] > 20
    assert said["submit"]["longest"] < 9  # the foreign writer's three seconds, and some more
    check(f"sqlite:///{path}", settled=True)
    check(f"sqlite:///{copy}")


def _wait_until_done(path: Path) -> None:
    connection = sqlite3.connect(path, timeout=30)
    deadline = time.monotonic() + 30
    while connection.execute("select 1 from outlast_job where state = 'open' limit 1").fetchone():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    connection.close()


@pytest.mark.parametrize("call", ["submit", "list"])
def test_past_the_limit_it_is_said_what_is_wrong(path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    monkeypatch.setattr(connection_module, "BUSY_PATIENCE", 0.2)
    jobs, ship = shop(f"sqlite:///{path}")
    monkeypatch.setattr(jobs.store, "_patience", 0.5)
    jobs.sync.list(principal=WHO)
    run = {"submit": lambda: jobs.sync.submit(ship, Order(1), owner=WHO, key="k"), "list": lambda: jobs.sync.list(principal=WHO)}[call]
    began = time.monotonic()
    with locked(path, "exclusive"), pytest.raises(StoreUnavailable, match="busy") as said:
        run()
    assert time.monotonic() - began < 5
    assert said.value.retryable
    assert "locked" not in said.value.message

    assert jobs.sync.list(principal=WHO).items == ()
    handle = jobs.sync.submit(ship, Order(1), owner=WHO, key="k")
    assert not handle.replayed
    jobs.sync.close()
    check(f"sqlite:///{path}")


def test_a_wait_below_the_limit_is_only_slow(path: Path) -> None:
    jobs, ship = shop(f"sqlite:///{path}")
    free = threading.Event()

    def hold() -> None:
        with locked(path, "immediate"):
            free.set()
            time.sleep(1)

    other = threading.Thread(target=hold)
    other.start()
    free.wait()
    began = time.monotonic()
    handles = [jobs.sync.submit(ship, Order(n), owner=WHO) for n in range(3)]
    other.join()
    assert time.monotonic() - began >= 0.5
    assert len({handle.id for handle in handles}) == 3
    jobs.sync.close()
