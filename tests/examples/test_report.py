"""The example runs as it is documented, on both stores; it checks all of its counts itself, against the provider's own list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from servers.postgres import PostgresServer

ROOT = Path(__file__).resolve().parents[2]


FAILURES = (
    "sent and did not answer in time",
    "sent and dropped the connection",
    "sent and answered with an error",
    "refused, so that the owner had to say: try again",
    "was busy",
)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.report.run", *options]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(170)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_each_report_is_mailed_once_and_no_edit_is_lost(store: str, request: pytest.FixtureRequest) -> None:
    options: tuple[str, ...] = ()
    server: PostgresServer | None = None
    if store == "postgresql":
        server = request.getfixturevalue("postgres_server")
        options = ("--store", server.create_database("report_example"))
        leave_a_document(options[1])
    done = run(*options)
    if server is not None:
        server.drop_database("report_example")
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"The provider has (\d+) mails, one for each report", done.stdout)
    assert said is not None
    accepted = re.search(r"(\d+) reports about", done.stdout)
    assert accepted is not None
    assert said[1] == accepted[1]
    for words in FAILURES:
        assert re.search(rf" [1-9]\d* times the provider {re.escape(words)}\.", done.stdout), done.stdout
    assert re.search(r"All reports are completed; [1-9]\d* waited", done.stdout)


def leave_a_document(url: str) -> None:
    """As an earlier run on the same store does."""
    with psycopg.connect(url) as pg:
        pg.execute("create table document (ref varchar(100) primary key, text text not null, version integer not null)")
        pg.execute("insert into document select 'Africa-0', 'of an earlier run', 2")


@pytest.mark.parametrize(
    ("store", "code"), [("nonsense", "invalid"), ("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2", "store_unavailable")]
)
def test_a_store_that_is_none_is_refused_in_a_sentence(store: str, code: str) -> None:
    done = run("--store", store)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith(f"({code})\n")
