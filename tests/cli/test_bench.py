"""`outlast bench`: one object with the four measurements, on jobs of its own."""

from __future__ import annotations

import json

import pytest

from cli.conftest import Shell


@pytest.mark.slow
def test_it_measures_four_things(either: Shell) -> None:
    found = json.loads(either.run("bench", "--jobs", "20", "--json").stdout)
    assert list(found) == ["enqueue_single", "enqueue_bulk", "drain", "pickup"]
    assert [found[name]["jobs"] for name in found] == [20, 20, 40, 20]
    assert all(found[name]["seconds"] > 0 for name in ("enqueue_single", "enqueue_bulk", "drain"))
    assert 0 <= found["pickup"]["p50_ms"] <= found["pickup"]["p99_ms"]
    jobs = json.loads(either.run("jobs", "list", "--json", "--limit", "200").stdout)["items"]
    assert len(jobs) == 60
    assert {(job["tenant"], job["state"]) for job in jobs} == {("outlast-bench", "completed")}


@pytest.mark.slow
def test_without_a_store_it_makes_one_and_prints_a_table(bare: Shell) -> None:
    said = bare.run("bench", "--jobs", "1", store=False).stdout
    assert said.splitlines()[0].split() == ["JOBS", "SECONDS", "JOBS/S"]
    assert "p99" in said
    assert not (bare.folder / "shop.db").exists()


def test_it_leaves_a_store_alone_that_others_need(shell: Shell) -> None:
    shell.submit()
    said = shell.run("bench", "--jobs", "5", code=2).stderr
    assert "The store has 2 unfinished tasks of others" in said
    assert "Measure on a store of its own" in said
