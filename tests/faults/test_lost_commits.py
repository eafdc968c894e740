"""The connection is lost at a commit, before it or after it: the caller gets the true verdict, or is told that it is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backends import Backend
from contract.harness import Harness
from faults.injection import Cut, Cutter
from faults.scenes import SCENES
from faults.test_every_statement import Stage
from outlast.domain.errors import OutcomeUnknown, StoreUnavailable
from outlast.domain.work import Admitted, Control
from outlast.store.program import Access
from outlast.store.programs import claims, status

ALWAYS = 1_000
IMPATIENT = 0.15
CLAIMS = {"claim": ["one", "three", "two"], "claim keyed": ["more", "two"]}


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> Cutter:
    return Cutter(monkeypatch, backend)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    """The store gives up soon."""
    monkeypatch.setattr(backend.store, "_patience", IMPATIENT)


def commits(sql: str) -> bool:
    return sql == "commit"


def writes(sql: str) -> bool:
    """One of the statements that commit by themselves on PostgreSQL: anything of ours that is no transaction's frame."""
    return not sql.startswith(("begin", "commit", "rollback", "select set_config", "select pg_backend_pid", "savepoint", "release"))


def cut_of(stage: Stage) -> Cut:
    """Where the operation's commit is."""
    alone = stage.operation().access is Access.STATEMENT and stage.backend.name != "sqlite"
    if alone and stage.scene is SCENES["claim keyed"]:
        return lambda sql: "held as" in sql  # it looks first
    return writes if alone else commits


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", [name for name in SCENES if name not in CLAIMS])
def test_i5_a_lost_commit_is_resolved_by_repeating(backend: Backend, cutter: Cutter, name: str, after: bool) -> None:
    stage = Stage(backend, SCENES[name])
    cut = cut_of(stage)
    stage.begin()
    with cutter.at(cut, after=after):
        value = stage.act()
    assert cutter.cut == 1
    assert stage.scene.good(value), value
    assert stage.h.snapshot() == stage.wanted
    stage.h.check()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_not_repeated_and_found_by_its_holder(backend: Backend, cutter: Cutter, name: str, after: bool) -> None:
    stage = Stage(backend, SCENES[name])
    cut = cut_of(stage)
    stage.begin()
    with cutter.at(cut, after=after), pytest.raises(OutcomeUnknown):
        stage.act()
    found = stage.h.run(claims.claimed_by("default", "w1:1"))
    assert sorted(c.label for c in found) == (CLAIMS[name] if after else [])
    assert stage.h.snapshot() == (stage.wanted if after else stage.before)
    for claimed in found:
        assert stage.h.finish(claimed).verdict.value == "accepted"
    if not after:
        stage.repeat()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ["admit", "admit all", "finish", "ask", "cancel"])
@pytest.mark.usefixtures("impatient")
def test_a_commit_that_is_lost_again_and_again_is_unknown(backend: Backend, cutter: Cutter, name: str, after: bool) -> None:
    stage = Stage(backend, SCENES[name])
    cut = cut_of(stage)
    stage.begin()
    with cutter.at(cut, after=after, times=ALWAYS), pytest.raises(OutcomeUnknown) as unknown:
        stage.act()
    assert unknown.value.retryable
    assert cutter.cut > 1
    assert stage.h.snapshot() == (stage.wanted if after else stage.before)
    stage.repeat()


@pytest.mark.parametrize("name", ["admit all", "cancel", "give up required"])
@pytest.mark.usefixtures("impatient")
def test_a_store_that_is_lost_before_any_commit_is_unavailable(backend: Backend, cutter: Cutter, name: str) -> None:
    stage = Stage(backend, SCENES[name])
    stage.begin()
    with cutter.at(lambda sql: sql.startswith("begin"), after=True, times=ALWAYS), pytest.raises(StoreUnavailable) as unavailable:
        stage.act()
    assert unavailable.value.retryable
    assert stage.h.snapshot() == stage.before
    stage.repeat()


@pytest.mark.usefixtures("impatient")
def test_a_read_that_is_lost_again_and_again_is_never_unknown(backend: Backend, cutter: Cutter) -> None:
    h = Harness(backend)
    job = h.admit()
    with cutter.at(writes, after=True, times=ALWAYS), pytest.raises(StoreUnavailable):
        h.view(job)
    assert h.view(job).state == "queued"


def test_a_read_survives_a_lost_connection(backend: Backend, cutter: Cutter) -> None:
    h = Harness(backend)
    job = h.admit()
    with cutter.at(writes, after=True):
        assert h.view(job).state == "queued"
    assert cutter.cut == 1
    assert h.run(status.clock()) == h.now


@pytest.mark.parametrize("key", ["k", None])
def test_a_submit_whose_answer_was_lost_makes_one_job(backend: Backend, cutter: Cutter, key: str | None) -> None:
    h = Harness(backend)
    job = h.admission(key=key)
    with cutter.at(commits if backend.name == "sqlite" else writes, after=True, times=3):
        assert h.submit(job) == [Admitted(job.job_id, replayed=False)]
    assert len(h.rows("job")) == 1
    h.check()


def test_a_fail_whose_answer_was_lost_counts_one_attempt(backend: Backend, cutter: Cutter) -> None:
    h = Harness(backend)
    job = h.admit()
    claimed = h.take()
    with cutter.at(commits if backend.name == "sqlite" else lambda sql: "update" in sql, after=True, times=2):
        settled: Any = h.fail(claimed)
    assert settled.verdict.value == "accepted"
    assert h.standing(job)["spent"] == 1
    assert len(h.rows("attempt", job)) == 1
    h.check()


def test_a_cancel_whose_answer_was_lost_says_that_it_won(backend: Backend, cutter: Cutter) -> None:
    h = Harness(backend)
    job = h.admit()
    with cutter.at(commits, after=True):
        assert h.cancel(job, version=1) is Control.REPEATED
    assert h.job_row(job)["version"] == 2
    h.check()
