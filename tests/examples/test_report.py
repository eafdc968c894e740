"""The example runs as it is documented, on both stores; it checks all of its counts itself, against the provider's own list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from servers.postgres import PostgresServer

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(170)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_each_report_is_mailed_once_and_no_edit_is_lost(store: str, request: pytest.FixtureRequest) -> None:
    command = [sys.executable, "-m", "examples.report.run"]
    server: PostgresServer | None = None
    if store == "postgresql":
        server = request.getfixturevalue("postgres_server")
        command += ["--store", server.create_database("report_example")]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    if server is not None:
        server.drop_database("report_example")
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"The provider has (\d+) mails, one for each report", done.stdout)
    assert said is not None
    accepted = re.search(r"(\d+) reports about", done.stdout)
    assert accepted is not None
    assert said[1] == accepted[1]
