"""Which journal a SQLite build gets, and that a whole job runs on each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from outlast.domain.errors import Invalid, StoreUnavailable
from outlast.store.sqlite import build as builds
from outlast.store.sqlite.build import Build
from outlast.store.sqlite.connection import Connection, refuse_network
from outlast.store.sqlite.store import SqliteStore

FLOW = Path(__file__).with_name("flow.py")


@pytest.mark.parametrize(
    ("version", "journal"),
    [
        ((3, 37, 0), "delete"),
        ((3, 40, 1), "delete"),
        ((3, 44, 5), "delete"),
        ((3, 44, 6), "wal"),
        ((3, 45, 0), "delete"),
        ((3, 50, 6), "delete"),
        ((3, 50, 7), "wal"),
        ((3, 51, 2), "delete"),
        ((3, 51, 3), "wal"),
        ((3, 54, 1), "wal"),
    ],
)
def test_wal_only_where_its_defect_is_fixed(version: tuple[int, int, int], journal: str) -> None:
    assert Build(version).journal_mode == journal


def test_builds_without_strict_tables_are_refused() -> None:
    assert not Build((3, 36, 9)).usable
    assert Build((3, 37, 0)).usable


def test_an_unknown_driver_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(builds.DRIVER_VARIABLE, "mysql")
    with pytest.raises(Invalid, match="is sqlite3 or apsw"):
        builds.linked.__wrapped__()


def test_a_newer_build_is_never_chosen_by_being_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two SQLite libraries in one process cancel each other's locks: who asks for the second one has read of it."""
    monkeypatch.delenv(builds.DRIVER_VARIABLE, raising=False)
    assert builds.linked.__wrapped__().driver == "sqlite3"
    monkeypatch.setenv(builds.DRIVER_VARIABLE, "apsw")
    assert builds.linked.__wrapped__().driver == "apsw"


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "journal"), [("sqlite3", "delete"), ("apsw", "wal")])
def test_a_whole_job_on_each_driver(tmp_path: Path, driver: str, journal: str) -> None:
    environment = {**os.environ, "OUTLAST_SQLITE_DRIVER": driver}
    command = [sys.executable, str(FLOW), str(tmp_path / "jobs.db")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["states"] == ["completed"]
    assert seen["total"] == sum(2 * n for n in range(20))
    assert seen["driver"] == driver
    assert ("jobs.db-wal" in seen["files"]) is (journal == "wal")
    said = "corrupt a database in WAL mode" in ran.stderr
    assert said is (journal == "delete" and tuple(map(int, seen["python"].split("."))) < (3, 51, 3))


def test_a_commit_waits_until_it_is_on_the_disk(tmp_path: Path) -> None:
    """EXTRA: with the rollback journal FULL does not wait for the removal of the journal, which is the commit."""
    path = tmp_path / "jobs.db"
    connection = Connection(str(path))
    assert connection.execute("pragma synchronous") == [(3,)]
    connection.close()
    with SqliteStore(str(path)).lend_sync() as lent:
        assert lent.execute("pragma synchronous").fetchall() == [(3,)]


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv/share rw,relatime shared:9 - nfs4 server:/share rw
31 22 0:41 / /srv/share/local\\040disk rw,relatime - ext4 /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("path", "refused"),
    [("/var/lib/jobs.db", False), ("/srv/share/jobs.db", True), ("/srv/sharejobs.db", False), ("/srv/share/local disk/jobs.db", False)],
)
def test_network_file_systems_are_refused(tmp_path: Path, path: str, *, refused: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    if refused:
        with pytest.raises(StoreUnavailable, match="network file system"):
            refuse_network(path, mounts)
    else:
        refuse_network(path, mounts)
