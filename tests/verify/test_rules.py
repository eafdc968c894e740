"""A sound store is passed, and each rule finds what breaks it: exactly that rule is named."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from contract.backends import Backend
from outlast.store.programs.verify import RULES
from verify.conftest import Store
from verify.spoils import SPOILS

OF_NO_JOB = {"C8 half", "I1 quota", "H3 record", "H3 pause"}
ELSEWHERE = {"I5 file"}  # needs a file that is broken below the tables: test_stores.py


def test_a_sound_store_is_passed(store: Store) -> None:
    report = store.verify()

    assert (report.findings, report.counts, report.total) == ((), (), 0)
    assert (report.jobs, report.tasks, report.effects) == (16, 31, 5)


@pytest.mark.parametrize(("name", "statements"), SPOILS, ids=[f"{n} {name}" for n, (name, _) in enumerate(SPOILS)])
def test_each_kind_of_damage_is_found_by_its_rule(store: Store, name: str, statements: tuple[str, ...]) -> None:
    with store.changed(statements):
        report = store.verify()

    assert {finding.rule.full for finding in report.findings} == {name}
    assert [rule.full for rule, _ in report.counts] == [name]
    assert report.total == len(report.findings)
    for finding in report.findings:
        assert bool(finding.job_id) == (name not in OF_NO_JOB)
        assert finding.tenant
        assert finding.found
        assert finding.expected
        assert "passwd" not in finding.found


def test_every_rule_is_broken_by_something_and_is_called_like_no_other() -> None:
    assert {rule.full for rule in RULES} == {name for name, _ in SPOILS} | ELSEWHERE
    assert len({rule.full for rule in RULES}) == len(RULES)


def test_every_rule_is_documented() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "verify.md").read_text("utf-8")
    assert [line for line in docs.splitlines() if line.startswith("| ") and "---" not in line][1:] == [
        f"| {rule.full} | {rule.sentence} |" for rule in RULES
    ]


def test_every_table_is_looked_at(backend: Backend) -> None:
    """A table that no rule reads would be nobody's: one that holds nothing of a job's is named here."""
    read = set(re.findall(r"\{outlast\.(\w+)\}", (files("outlast.store") / "sql" / "verify.sql").read_text("utf-8")))
    assert set(backend.tables()) - read == {"queue"}
