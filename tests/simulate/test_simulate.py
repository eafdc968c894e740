"""A share of the simulator's seeds, its permanent ones, and that the same seed is the same history."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from simulate import run, runs, seeds
from simulate.faults import KINDS, Plan
from simulate.mutants import MUTANTS
from simulate.runs import bench
from simulate.shrinking import shortened
from simulate.world import ACTORS, Outcome

SHARE = 40
TESTS = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    with bench() as one:
        return [one.run(seed) for seed in range(SHARE)]


def test_nothing_is_violated(outcomes: list[Outcome]) -> None:
    assert {outcome.seed: outcome.violations for outcome in outcomes if outcome.violations} == {}


def test_everything_that_can_go_wrong_did(outcomes: list[Outcome]) -> None:
    fired = Counter(fault.kind for outcome in outcomes for fault in outcome.faults)
    assert set(fired) == {kind for kinds in KINDS.values() for kind, _ in kinds}, fired
    total = runs.Sum()
    for outcome in outcomes:
        total.add(outcome)
    counts = total.counts
    assert min(counts.crashes, counts.unknown, counts.pauses, counts.errors) > SHARE
    assert min(counts.refused, counts.swept, counts.calls, counts.checks, counts.completed) > 0
    assert counts.jobs > 5 * SHARE
    assert total.seconds > 300 * SHARE


def test_permanent_seeds() -> None:
    with bench() as one:
        failed = {seed: found for seed in seeds.kept() if (found := one.run(seed).violations)}
    assert failed == {}


def test_the_same_seed_is_the_same_history(outcomes: list[Outcome]) -> None:
    with bench() as one:
        again = [one.run(seed) for seed in (3, 5)]
    assert [outcome.hash for outcome in again] == [outcomes[3].hash, outcomes[5].hash]
    assert len({outcome.hash for outcome in outcomes}) == SHARE


def test_it_is_the_same_in_another_process(outcomes: list[Outcome]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "77"}
    code = "from simulate.runs import bench\nwith bench() as one: print(one.run(3).hash)"
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(made.stdout) == outcomes[3].hash


def test_faults_and_actors_can_be_left_out(outcomes: list[Outcome]) -> None:
    seed = 3
    with bench() as one:
        calm = one.run(seed, Plan(faults=frozenset()))
        few = one.run(seed, Plan(faults=frozenset(fault.place for fault in outcomes[seed].faults[:2])))
        empty = one.run(seed, Plan(without=frozenset(ACTORS)))
    assert calm.violations == few.violations == empty.violations == ()
    assert calm.faults == ()
    assert few.faults == outcomes[seed].faults[:2]
    assert empty.counts.jobs == 0


def test_a_failure_is_shortened() -> None:
    (mutant,) = [m for m in MUTANTS if m.name == "a finish in two transactions"]
    with bench(mutant) as one:
        failed = one.run(0)
        assert failed.violations
        plan, found = shortened(lambda plan: one.run(0, plan), failed, most=12)
        traced = one.run(0, plan, tracing=True)
    assert found.violations
    assert len(found.faults) < len(failed.faults) or plan.without
    assert traced.violations == found.violations
    assert any("**" in line for line in traced.trace)


def test_what_a_run_came_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--seeds", "2"]) == 0
    said = {line[:22].strip(): line[22:].split()[0] for line in capsys.readouterr().out.splitlines()}
    assert said["seeds"] == "2"
    assert said["violations"] == "0"
    assert {"simulated hours", "statements", "crashes", "unknown commits", "acceleration"} <= set(said)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--seed", "x"], "'x' is no seed"),
        (["--seed", "-1"], "'-1' is no seed"),
        (["--seed", ""], "'' is no seed"),
        (["--seed", "1.5"], "'1.5' is no seed"),
        (["--seed", "9" * 30], "is no seed"),
        (["--from", "\u0663"], "is no seed"),
        (["--seeds", "0"], "SEEDS is a whole number, 1 or more"),
        (["--seeds", "many"], "SEEDS is a whole number, 1 or more"),
        (["--processes", "0"], "PROCESSES is a whole number, 1 or more"),
    ],
)
def test_what_is_no_seed_is_refused(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        run.main(argv)
    assert refused.value.code == 2
    assert words in capsys.readouterr().err


def test_a_seed_that_failed_is_kept_once(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("# why\n7 # before\n")
    seeds.keep(12, "D1: twice\nand more", file)
    seeds.keep(12, "again", file)
    seeds.keep(7, "again", file)
    assert seeds.kept(file) == [7, 12]
    assert "12  # D1: twice and more" in file.read_text()
    file.write_text("seven\n")
    with pytest.raises(ValueError, match="'seven' is no seed"):
        seeds.kept(file)


def test_a_failure_is_shown_and_the_status_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (mutant,) = [m for m in MUTANTS if m.name == "a finish in two transactions"]
    file = tmp_path / "seeds.txt"
    file.touch()
    monkeypatch.setattr(run, "bench", lambda: bench(mutant))
    monkeypatch.setattr(run, "keep", lambda seed, found: seeds.keep(seed, found, file))
    with bench(mutant) as one:
        failed = one.run(0)
    total = runs.Sum()
    total.add(failed)
    monkeypatch.setattr(run, "run_all", lambda _seeds: total)
    monkeypatch.setattr(run, "MOST_RUNS", 6)
    assert run.main(["--seeds", "1"]) == 1
    said = capsys.readouterr().out
    assert "SEED 0" in said
    assert "make simulate SEED=0" in said
    assert seeds.kept(file) == [0]
