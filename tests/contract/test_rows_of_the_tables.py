"""Each row of the state tables is named by a test of this folder; a new row needs a new case."""

from __future__ import annotations

import re
from pathlib import Path

from outlast.domain.states import JOB_TRANSITIONS, TASK_TRANSITIONS

TESTS = Path(__file__).parent


def named() -> set[str]:
    """The rows that the tests' names begin with, such as T9 and J3."""
    names = re.findall(r"^def test_((?:[tj]\d+_)+)", "\n".join(p.read_text("utf-8") for p in TESTS.glob("test_*.py")), re.MULTILINE)
    return {row.upper() for name in names for row in name.split("_") if row}


def test_every_row_of_the_tables_has_a_case() -> None:
    rows = {t.no.rstrip("abc") for t in TASK_TRANSITIONS} | {t.no for t in JOB_TRANSITIONS if t.no != "-"}
    assert rows - named() == set()
    assert {f"T{n}" for n in range(1, 21)} <= rows
