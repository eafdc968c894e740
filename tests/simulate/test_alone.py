"""The simulator's own tests, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulate.conftest import ALONE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HERE = Path(__file__).parent


@pytest.mark.skipif(bool(os.environ.get(ALONE)), reason="this is that process")
def test_the_simulator_in_a_process_of_its_own() -> None:
    files = [str(HERE / name) for name in ("test_mutants.py", "test_simulate.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=HERE.parent.parent, env={**os.environ, ALONE: "1"}, capture_output=True, text=True, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, done.stderr[-2000:]
    assert " passed" in done.stdout
