"""The provider did it and the answer was lost: dropped, late, an error, a killed or frozen worker (B11). Counted at the provider."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crash.stage import OWNER, Process, Stage, until
from invariants import query
from outlast import Attention, EffectView
from outlast.rehearsal.outside import ADDRESS

COLOURS = (False, True)


class Provider:
    """The rehearsal's provider, as a process of its own."""

    def __init__(self, process: Process) -> None:
        def address() -> str:
            return process.said.partition("listening on ")[2].strip()

        self.address = until(address, "the provider listening")

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data)  # noqa: S310 - of the provider that the test started
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.load(answer)

    def fails(self, mode: str, **more: object) -> None:
        self.ask("/faults", {"mode": mode, **more})

    def effects(self, job: str) -> list[dict[str, Any]]:
        """What it did for a job."""
        return [item for item in self.ask("/effects")["items"] if item["body"]["job"] == job]


@pytest.fixture
def provider(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    command = [sys.executable, "-m", "outlast.rehearsal.provider", "--port", "0"]
    made = Provider(stage.start(command, env={}, wait=False))
    monkeypatch.setenv(ADDRESS, made.address)
    yield made
    monkeypatch.delenv(ADDRESS)


def charge(stage: Stage, mode: str, *, sync: bool = False, **more: object) -> str:
    return stage.submit({"label": "A", "sync": sync, "effect": {"name": "charge", "mode": mode}, **more}, retry_base=0)


def shown(stage: Stage, job: str) -> list[EffectView]:
    """What may have happened, as the owner sees it."""
    return list(stage.jobs.recovery(job, principal=OWNER).effects)


def question(stage: Stage, job: str) -> Attention:
    stage.reached([job], "needs_attention")
    found = stage.job(job).attention
    assert found is not None
    return found


def output(stage: Stage, job: str) -> dict[str, Any]:
    found = stage.jobs.result(job, principal=OWNER)
    assert isinstance(found, dict)
    return found


def codes(stage: Stage, job: str) -> list[str | None]:
    return [code for _, _, code in stage.past(job)]


def once(stage: Stage, provider: Provider, job: str, *, calls: int) -> None:
    """One record, under one key, and the task has its id."""
    (item,) = provider.effects(job)
    assert item["calls"] == calls
    (row,) = query(stage.url, "select * from {effect} where job_id = ?", [job])
    assert (row["provider_key"], row["state"]) == (item["key"], "confirmed")
    assert output(stage, job)["effect"] == item["id"]


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("fault", "more"), [("drop_after", {}), ("timeout_after", {"seconds": 3.5}), ("status_after", {"status": 500})])
def test_a_lost_answer_is_reconciled_or_repeated_with_the_same_key(
    stage: Stage, provider: Provider, fault: str, more: dict[str, object]
) -> None:
    stage.worker(lease=5)
    for mode in ("reconcile", "idempotent"):
        for sync in COLOURS:
            provider.fails(fault, **more)
            job = charge(stage, mode, sync=sync)
            stage.reached([job])
            assert codes(stage, job) == ["outcome_unknown", None], "not a plain failure"
            once(stage, provider, job, calls=1 if mode == "reconcile" else 2)
            assert len(stage.lines(job, event="effect")) == (1 if mode == "reconcile" else 2)


@pytest.mark.timeout(90)
def test_an_answer_that_is_too_slow_or_too_large_leaves_the_outcome_unknown(stage: Stage, provider: Provider) -> None:
    stage.worker(lease=5)
    for fault in ("drip_after", "huge_after"):
        provider.fails(fault)
        job = charge(stage, "reconcile", sync=fault == "huge_after")
        stage.reached([job])
        assert codes(stage, job) == ["outcome_unknown", None], fault
        once(stage, provider, job, calls=1)


def test_with_neither_the_owner_is_asked_and_the_answer_counts(stage: Stage, provider: Provider) -> None:
    stage.worker(lease=5)
    jobs = {}
    for action in ("answer", "retry", "dismiss"):
        provider.fails("drop_after")
        jobs[action] = charge(stage, "neither")
        assert (question(stage, jobs[action]).code, codes(stage, jobs[action])) == ("effect_unknown", ["outcome_unknown", "effect_unknown"])
        (effect,) = shown(stage, jobs[action])
        assert (effect.label, effect.name, effect.state) == ("A", "charge", "unknown")
    (item,) = provider.effects(jobs["answer"])
    given = {"happened": True, "outcome": item["id"]}
    stage.jobs.act(jobs["answer"], question(stage, jobs["answer"]).id, action="answer", input=given, principal=OWNER)
    stage.jobs.act(jobs["retry"], question(stage, jobs["retry"]).id, action="retry", principal=OWNER)
    stage.jobs.act(jobs["dismiss"], question(stage, jobs["dismiss"]).id, action="dismiss", principal=OWNER)
    stage.reached([jobs["answer"], jobs["retry"]])
    once(stage, provider, jobs["answer"], calls=1)
    once(stage, provider, jobs["retry"], calls=2)
    assert [e.state for e in shown(stage, jobs["dismiss"])] == ["unknown"], "it may have happened, and nobody asks any more"
    assert provider.effects(jobs["dismiss"])[0]["calls"] == 1


@pytest.mark.timeout(90)
@pytest.mark.parametrize("sync", COLOURS)
def test_killed_between_the_call_and_its_outcome(stage: Stage, provider: Provider, sync: bool) -> None:
    victim = stage.worker(hooks=[{"op": "settle", "at": "before", "do": "kill"}])
    job = charge(stage, "reconcile", sync=sync)
    assert victim.ended() == -9
    (effect,) = shown(stage, job)
    assert (effect.name, effect.state) == ("charge", "intended")
    again = stage.worker(hooks=[{"op": "settle", "at": "before", "do": "kill"}])
    assert again.ended() == -9
    assert [e.state for e in shown(stage, job)] == ["unknown"]
    stage.worker()
    stage.reached([job])
    assert codes(stage, job) == ["worker_lost", "worker_lost", None]
    once(stage, provider, job, calls=1)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("mode", ["idempotent", "reconcile", "neither"])
def test_killed_between_the_intent_and_the_call(stage: Stage, provider: Provider, mode: str) -> None:
    victim = stage.worker(hooks=[{"op": "begin", "at": "after", "do": "kill"}])
    job = charge(stage, mode)
    assert victim.ended() == -9
    assert provider.effects(job) == []
    (row,) = query(stage.url, "select state, fence from {effect}")
    assert (row["state"], row["fence"]) == ("intended", 1)
    stage.worker()
    if mode == "neither":
        asked = question(stage, job)
        stage.jobs.act(job, asked.id, action="answer", input={"happened": False}, principal=OWNER)
    stage.reached([job])
    once(stage, provider, job, calls=1)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("mode", ["idempotent", "reconcile"])
def test_frozen_beyond_the_lease_with_the_outcome_in_its_hands(stage: Stage, provider: Provider, mode: str) -> None:
    frozen = stage.worker(hooks=[{"op": "settle", "at": "before", "do": "stop"}])
    job = charge(stage, mode)
    until(frozen.frozen, "the first worker frozen")
    other = stage.worker()
    stage.reached([job])
    before = query(stage.url, "select * from {effect}")
    other.terminate()
    assert other.ended() == 0
    frozen.thaw()
    stage.works()
    assert query(stage.url, "select * from {effect}") == before
    once(stage, provider, job, calls=2 if mode == "idempotent" else 1)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("sync", COLOURS)
def test_frozen_beyond_the_lease_before_its_call_makes_none(stage: Stage, provider: Provider, sync: bool) -> None:
    frozen = stage.worker(hooks=[{"op": "begin", "at": "after", "do": "stop"}])
    job = charge(stage, "reconcile", sync=sync)
    until(frozen.frozen, "the first worker frozen")
    other = stage.worker()
    stage.reached([job])
    other.terminate()
    assert other.ended() == 0
    frozen.thaw()
    stage.works()
    once(stage, provider, job, calls=1)
    assert [line["fence"] for line in stage.lines(job, event="effect")] == [2]


@pytest.mark.timeout(90)
def test_what_happened_before_a_failure_is_not_done_again_by_any_retry(stage: Stage, provider: Provider) -> None:
    stage.worker(lease=5)
    job = charge(stage, "neither", fail={"times": 2, "kind": "permanent", "code": "no_paper"})
    for _ in range(2):
        asked = question(stage, job)
        assert asked.code == "no_paper"
        stage.jobs.act(job, asked.id, action="retry", principal=OWNER)
        until(lambda asked=asked: (q := stage.job(job).attention) is None or q.id != asked.id, "the next attempt")
    stage.reached([job])
    once(stage, provider, job, calls=1)


def test_nothing_is_reconciled_after_a_cancel_and_a_rerun_finds_out(stage: Stage, provider: Provider) -> None:
    victim = stage.worker(hooks=[{"op": "settle", "at": "before", "do": "kill"}])
    job = charge(stage, "reconcile")
    assert victim.ended() == -9
    stage.jobs.cancel(job, principal=OWNER)
    stage.worker()
    until(lambda: not stage.job(job).stopping, "the holder's lease over")
    stage.works()
    assert [e.state for e in shown(stage, job)] == ["intended"], "may have happened"
    again = stage.jobs.rerun(job, principal=OWNER).id
    stage.reached([again])
    (item,) = provider.effects(job)
    assert item["calls"] == 1
    assert output(stage, again)["effect"] == item["id"]
    assert shown(stage, job) == []


@pytest.mark.timeout(90)
@pytest.mark.parametrize("retry_after", [0.4, "0.4", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "-1", ""])
def test_a_busy_provider_is_asked_again_whatever_its_retry_after_says(stage: Stage, provider: Provider, retry_after: float | str) -> None:
    stage.worker(lease=5)
    provider.fails("status", status=429, retry_after=retry_after)
    job = charge(stage, "neither")
    stage.reached([job])
    assert codes(stage, job) == ["provider_busy", None]
    once(stage, provider, job, calls=1)


def test_a_busy_provider_that_asks_for_ages_is_left_alone_until_the_window_ends(stage: Stage, provider: Provider) -> None:
    stage.worker(lease=5)
    provider.fails("status", status=429, retry_after="99999999999")
    job = charge(stage, "neither")
    until(lambda: stage.task(job).state == "retrying", "it waits")
    due = stage.task(job).next_attempt_at
    assert due is not None
    assert timedelta(hours=23) < due - datetime.now(UTC) <= timedelta(hours=24)
    assert codes(stage, job) == ["provider_busy"]
    assert provider.effects(job) == []
    stage.jobs.cancel(job, principal=OWNER)
    stage.works()


def test_a_provider_that_refuses_did_not_do_it(stage: Stage, provider: Provider) -> None:
    stage.worker(lease=5)
    provider.fails("status", status=402)
    job = charge(stage, "neither")
    assert question(stage, job).code == "provider_refused"
    assert shown(stage, job) == []
    assert provider.effects(job) == []
    stage.jobs.act(job, question(stage, job).id, action="retry", principal=OWNER)
    stage.reached([job])
    once(stage, provider, job, calls=1)
