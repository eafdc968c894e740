"""A simulation holds the time, the chance and the loop of its process, and other tests' threads live in theirs: it has one of its own."""

from __future__ import annotations

import os

ALONE = "OUTLAST_TEST_SIMULATE_ALONE"
collect_ignore = [] if os.environ.get(ALONE) else ["test_mutants.py", "test_simulate.py"]
