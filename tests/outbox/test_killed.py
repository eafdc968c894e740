"""The relay is killed at each of its statements: each row is exactly one job, and none is lost."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from invariants import check, query
from outbox.outboxes import Table, inbound
from outlast import Outlast
from outlast.store.open import migrate
from servers.postgres import PostgresServer

SCRIPT = Path(__file__).with_name("killing.py")


def kill_everywhere(table: Table, store: str) -> list[bool]:
    """Kills a relay at one point after the other, with a row of its own each; whether its row stood there still."""
    stood = []
    table.ask(id="row-0")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), table.url, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while (line := process.stdout.readline()).startswith("killed"):
            at = int(line.split()[1])
            keys = [row["key"] for row in query(store, "select key from {submission}")]
            left = {str(row[0]) for row in table.run(f"select id from {table.table}")}
            assert {f"row-{n}" for n in range(at + 1)} <= left | set(keys), (at, left, keys)  # nowhere is a row lost
            assert len(keys) == len(set(keys)) == len(query(store, "select id from {job}"))
            stood.append(f"row-{at}" in left)
            table.ask(id=f"row-{at + 1}")
            process.stdin.write("\n")
            process.stdin.flush()
        assert line.split() == [str(len(stood)), "0"], line
        process.stdin.close()
    return stood


@pytest.mark.slow
def test_killed_at_each_statement_each_row_is_one_job(table: Table, jobs: Outlast) -> None:
    stood = kill_everywhere(table, jobs.url)
    assert len(stood) >= 12  # the probe, the read, the admission, and begin, delete and commit: before and after
    assert True in stood
    assert False in stood
    assert table.count() == 0
    assert len(query(jobs.url, "select id from {job}")) == len(stood) + 1
    assert inbound(table, jobs).run_once().read == 0
    check(jobs.url)


@pytest.mark.slow
def test_killed_at_each_statement_with_a_store_in_postgresql(lite: Table, postgres_server: PostgresServer) -> None:
    name = f"outbox_killed_{uuid.uuid4().hex[:8]}"
    url = postgres_server.create_database(name)
    migrate(url)
    stood = kill_everywhere(lite, url)
    assert lite.count() == 0
    assert len(query(url, "select id from {job}")) == len(stood) + 1
    check(url)
    postgres_server.drop_database(name)
