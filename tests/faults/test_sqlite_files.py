"""SQLite files that cannot be written, are full, locked or replaced: a named error, nothing half-written, and it goes on afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.backends import SqliteBackend
from contract.harness import Harness
from contract.plans import a
from outlast.domain.errors import NotMigrated, StoreUnavailable
from outlast.store.programs import admission
from outlast.store.sqlite import connection as connections
from outlast.store.sqlite.build import linked
from outlast.store.sqlite.connection import Connection
from outlast.store.sqlite.store import SqliteStore

LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin exclusive" if sys.argv[2] == "exclusive" else "begin immediate")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("rollback")
print("free", flush=True)
sys.stdin.readline()
"""

# With a WAL the file's companions have to go with it when it is replaced, and its folder has to be writable for who reads it.
in_rollback_mode = pytest.mark.skipif(linked().journal_mode == "wal", reason="this is about the rollback journal")


@pytest.fixture
def backend(sqlite_template: Path, files: Path) -> Iterator[SqliteBackend]:
    path = Path(tempfile.mkdtemp(dir=files)) / "jobs.db"
    found = SqliteBackend.copy_of(sqlite_template, path, patience=0.3)
    yield found
    found.close()


@pytest.fixture
def h(backend: SqliteBackend) -> Harness:
    return Harness(backend)


class Locker:
    """Another process that has the file locked."""

    def __init__(self, path: Path, how: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LOCKER, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "locked"

    def free(self) -> None:
        self._say()
        assert self._read() == "free"

    def close(self) -> None:
        self._process.communicate("\n\n")

    def _say(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture
def locker(backend: SqliteBackend, request: pytest.FixtureRequest) -> Iterator[Locker]:
    found = Locker(backend.path, getattr(request, "param", "immediate"))
    yield found
    found.close()


@pytest.mark.parametrize("locker", ["immediate", "exclusive"], indirect=True)
def test_b32_a_file_locked_beyond_all_patience_is_unavailable(h: Harness, monkeypatch: pytest.MonkeyPatch, locker: Locker) -> None:
    monkeypatch.setattr(connections, "BUSY_PATIENCE", 0.1)
    with pytest.raises(StoreUnavailable, match="busy") as refused:
        h.admit()
    assert refused.value.retryable
    locker.free()
    assert h.rows("job") == []
    assert h.view(h.admit()).state == "queued"


def test_b32_a_file_that_is_free_again_in_time_is_written(h: Harness, locker: Locker, backend: SqliteBackend) -> None:
    future = backend.store._submit(admission.admit([h.admission()]))
    locker.free()
    assert future.result(timeout=5)
    assert len(h.rows("job")) == 1


def test_b32_a_file_locked_by_a_writer_can_be_read(h: Harness, backend: SqliteBackend) -> None:
    job = h.admit()
    locker = Locker(backend.path, "immediate")
    try:
        assert h.view(job).state == "queued"
    finally:
        locker.close()


def test_b32_a_full_disk_is_named_and_nothing_is_half_written(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Connection._prepare

    def small(self: Connection, build: object) -> None:
        prepare(self, build)  # type: ignore[arg-type]
        pages = self.execute("pragma page_count")[0][0]
        self.execute(f"pragma max_page_count = {pages + 4}")

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_prepare", small)
        kept = h.admit()
        before = h.snapshot()
        with pytest.raises(StoreUnavailable, match="disk is full"):
            h.admit(a("one"), a("two", after="one"), body='"' + "x" * 200_000 + '"')
        assert h.snapshot() == before
        claimed = h.take()
        with pytest.raises(StoreUnavailable, match="disk is full"):
            h.finish(claimed, '"' + "x" * 200_000 + '"')
        assert h.rows("output") == []
        assert h.finish(claimed, "1").verdict.value == "accepted"
        assert h.view(kept).state == "completed"
    h.check()


@in_rollback_mode
def test_b32_a_file_that_was_replaced_is_opened_anew(h: Harness, backend: SqliteBackend, sqlite_template: Path, files: Path) -> None:
    old = h.admit()
    assert h.view(old).state == "queued"
    copy = files / "restored.db"
    shutil.copy(sqlite_template, copy)
    copy.replace(backend.path)
    new = Harness(SqliteBackend(backend.path))
    job = h.admission()
    h.submit(job)
    assert [row["id"] for row in new.rows("job")] == [job.job_id]
    assert h.view(job.job_id).state == "queued"
    new.backend.close()


def test_b32_a_file_that_was_replaced_by_an_empty_one_is_not_migrated(h: Harness, backend: SqliteBackend) -> None:
    h.admit()
    backend.path.unlink()
    with pytest.raises(NotMigrated):
        h.admit()
    assert not backend.path.exists()
    backend.path.touch()
    with pytest.raises(NotMigrated):
        h.admit()


def test_b32_a_file_that_is_no_database_is_refused(files: Path) -> None:
    path = files / "text.db"
    path.write_text("no database, but a text that is long enough to have a header" * 20)
    store = SqliteStore(str(path), patience=0.1)
    try:
        with pytest.raises(StoreUnavailable):
            Harness(OnStore(store)).admit()
    finally:
        store.close_sync()
        path.unlink()


class OnStore:
    """Just enough of a backend."""

    def __init__(self, store: SqliteStore) -> None:
        self.name = "sqlite"
        self.store = store
        self.run = store.run_sync


@in_rollback_mode
def test_b32_a_read_only_file_is_named_and_can_be_read(sqlite_template: Path) -> None:
    """In a process of its own, which gives up the right to write everything before it begins."""
    folder = Path(tempfile.mkdtemp(prefix="outlast-"))
    path = folder / "jobs.db"
    try:
        backend = SqliteBackend.copy_of(sqlite_template, path)
        job = Harness(backend).admit()
        backend.close()
        path.chmod(0o444)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(path), job], env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.stdout, done.returncode) == (
            "queued\nThe store cannot be written: it is read-only (a standby?), or the role or account lacks rights.\nqueued\n",
            0,
        ), done.stderr
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


READ_ONLY = """
import os, sys
from contract.harness import Harness
from faults.test_sqlite_files import OnStore
from outlast.domain.errors import StoreUnavailable
from outlast.store.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1], now="(select ms from test_clock)", patience=0.2)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
h = Harness(OnStore(store))
print(h.view(sys.argv[2]).state)
try:
    h.admit()
except StoreUnavailable as error:
    print(error.message.split(".")[0] + ".")
print(h.view(sys.argv[2]).state)
store.close_sync()
"""
