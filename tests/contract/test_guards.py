"""The guards by themselves: each stands on the row that its statement writes, whatever the program has read before.

A program mostly knows already that its guard will hold; what counts is the instant of the write, when others may have come in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.harness import LEASE_MS, WINDOW_MS, Harness
from contract.plans import a
from outlast.domain.effects import Met
from outlast.domain.limits import Limit
from outlast.store.program import Access, Operation, Program, Rows, Statement

Change = Callable[[Harness, dict[str, Any]], None]


def written(h: Harness, name: str, params: dict[str, Any]) -> bool:
    """Whether the statement finds its row."""

    def program() -> Program[Rows]:
        return (yield Statement(name, params))

    return bool(h.run(Operation(name, Access.TRANSACTION, program)))


def other_tenant(h: Harness, params: dict[str, Any]) -> None:
    params["tenant"] = "elsewhere"


def other_job(h: Harness, params: dict[str, Any]) -> None:
    params["job_id"] = h.admit(a("other"), a("two"))


def other_task(h: Harness, params: dict[str, Any]) -> None:
    params["no"] = 1


def older_fence(h: Harness, params: dict[str, Any]) -> None:
    params["fence"] -= 1


def newer_fence(h: Harness, params: dict[str, Any]) -> None:
    params["fence"] += 1


def other_holder(h: Harness, params: dict[str, Any]) -> None:
    params["holder"] = "somebody:else"


def lease_over(h: Harness, params: dict[str, Any]) -> None:
    h.advance(LEASE_MS)


def lease_left(h: Harness, params: dict[str, Any]) -> None:
    h.advance(-1)


def revoked(h: Harness, params: dict[str, Any]) -> None:
    h.sql("update {outlast.queue_entry} set revoked = true")


def not_revoked(h: Harness, params: dict[str, Any]) -> None:
    h.sql("update {outlast.queue_entry} set revoked = false")


def not_held(h: Harness, params: dict[str, Any]) -> None:
    h.sql("update {outlast.queue_entry} set holder = null")


def other_key(h: Harness, params: dict[str, Any]) -> None:
    params["key"] = "j"


def freed(h: Harness, params: dict[str, Any]) -> None:
    h.sql("update {outlast.slot} set job_id = null, no = null, fence = null where key = 'k'")


def held(h: Harness) -> dict[str, Any]:
    """A task that its worker runs."""
    h.admit(a("one"), a("two"))
    ref = h.take_all(worker="w9")["one"].ref
    return {"tenant": ref.tenant, "job_id": ref.job_id, "no": ref.no, "fence": ref.fence, "holder": ref.holder}


def in_slot(h: Harness) -> dict[str, Any]:
    """A task that its worker runs, in a slot of its concurrency key; another runs beside it."""
    h.admit(a("one", limit=Limit("k", 2)), a("two", limit=Limit("j", 1)))
    ref = {claimed.label: claimed for claimed in h.claim_keyed()}["one"].ref
    return {"tenant": ref.tenant, "key": "k", "job_id": ref.job_id, "no": ref.no, "fence": ref.fence}


def lost(h: Harness) -> dict[str, Any]:
    """A task whose lease ends now."""
    params = held(h)
    h.advance(LEASE_MS)
    return params


def stopping(h: Harness) -> dict[str, Any]:
    """A cancelled task that is still held, to the end of its lease."""
    params = lost(h)
    h.cancel(params["job_id"])
    return params


PLACE = (other_tenant, other_job, other_task)
FENCE = (older_fence, newer_fence)
HOLDER: tuple[Change, ...] = (*PLACE, *FENCE, other_holder, lease_over, revoked, not_held)
SWEEP: tuple[Change, ...] = (*PLACE, *FENCE, lease_left, revoked, not_held)
MORE = {
    "release": {"delay_ms": 5},
    "retry": {"delay_ms": 5, "pause_ms": None, "code": "broken", "worker": "w9", "detail": None},
    "retry_lost": {"delay_ms": 5, "code": "worker_lost", "worker": "w9", "detail": None},
    "store_step": {"name": "page", "body": "1"},
    "effect_place": {},
    "free_slot": {"pause_ms": None},
}
GUARDS: dict[str, tuple[Callable[[Harness], dict[str, Any]], tuple[Change, ...]]] = {
    "end_entry": (held, HOLDER),
    "release": (held, HOLDER),
    "retry": (held, HOLDER),
    "store_step": (held, HOLDER),
    "effect_place": (held, HOLDER),
    "free_slot": (in_slot, (*PLACE, *FENCE, other_key, freed)),
    "end_lost_entry": (lost, SWEEP),
    "retry_lost": (lost, SWEEP),
    "stop_entry": (stopping, (*PLACE, *FENCE, other_holder, not_revoked, not_held)),
    "stop_lost_entry": (stopping, (*PLACE, *FENCE, lease_left, not_revoked)),
}
CASES = [(name, change) for name, (_, changes) in GUARDS.items() for change in changes]


@pytest.mark.parametrize("name", GUARDS)
def test_guard_that_holds_finds_its_row_once(h: Harness, name: str) -> None:
    h.exempt = "one statement of a program is not the whole of it"
    params = {**GUARDS[name][0](h), **MORE.get(name, {})}
    assert written(h, name, params)
    if name != "effect_place":  # it locks, and writes nothing
        assert not written(h, name, params)


@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{name}-{change.__name__}" for name, change in CASES])
def test_guard_that_does_not_hold_writes_nothing(h: Harness, name: str, change: Change) -> None:
    h.exempt = "the rows are changed by hand"
    params = {**GUARDS[name][0](h), **MORE.get(name, {})}
    if change is other_task:
        h.sql("update {outlast.queue_entry} set fence = 77, holder = 'somebody:else' where no = 1")
        h.sql("update {outlast.slot} set fence = 77 where no = 1")
    change(h, params)
    before = h.snapshot()
    assert not written(h, name, params)
    assert h.snapshot() == before


@pytest.mark.parametrize("state", ["completed", "cancelled"])
@pytest.mark.parametrize("name", ["update_job", "cancel_job"])
def test_guard_of_a_final_job_lets_nothing_through(h: Harness, name: str, state: str) -> None:
    job = h.admit()
    if state == "cancelled":
        h.cancel(job)
    else:
        h.finish(h.take())
    before = h.snapshot()
    params: dict[str, Any] = dict.fromkeys(("d_open", "d_required_open", "d_attention", "d_problems"), 0)
    params |= {"tenant": "acme", "job_id": job, "usable_no": None, "usable_ref": None}
    params |= {"retention_ms": 1, "actor": "x", "outcome": "user"}
    assert not written(h, name, params)
    assert h.snapshot() == before


def test_guard_of_a_question_lets_one_decision_through(h: Harness) -> None:
    h.exempt = "one statement of a program is not the whole of it"
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    params = {"tenant": "acme", "job_id": job, "id": "0.1", "no": 0, "action": "retry", "actor": "ann", "request_hash": "x"}
    assert not written(h, "window_of", params)
    h.advance(WINDOW_MS)
    assert written(h, "window_of", params)
    assert not written(h, "skip_task", params), "required work is not skipped"
    assert written(h, "resolve_attention", params)
    assert not written(h, "resolve_attention", params)
    assert not written(h, "window_of", params), "it is settled"
    assert written(h, "reopen_task", params)
    assert not written(h, "reopen_task", params)


def test_guard_of_an_edge_lets_each_end_through_where_it_belongs(h: Harness) -> None:
    """A hard edge is satisfied by a completion only, and nothing but optional work behind a hard edge is ever skipped."""
    h.exempt = "one statement of a program is not the whole of it"
    job = h.admit(a("one"), a("hard", after="one"), a("more", optional=True, after="one"), a("aside", optional=True))
    place = {"tenant": "acme", "job_id": job, "no": 0}
    before = h.snapshot()
    assert not written(h, "satisfy_children", {**place, "hard_too": False})
    assert not written(h, "satisfy_children", {**place, "no": 3, "hard_too": True})
    assert h.snapshot() == before
    h.sql("update {outlast.edge} set soft = true where child = 2")
    assert not written(h, "skip_children", place)
    h.sql("update {outlast.edge} set soft = false where child = 2")
    assert written(h, "skip_children", place)
    assert h.shows(job) == {"one": "queued", "hard": "blocked", "more": "skipped", "aside": "queued"}
    h.sql("update {outlast.edge} set soft = true where child = 1")
    assert written(h, "satisfy_children", {**place, "hard_too": False})
    assert [h.task_row(job, label)["deps_left"] for label in ("hard", "more")] == [0, 1]


def test_guard_of_a_cancel_leaves_what_is_held(h: Harness) -> None:
    h.exempt = "one statement of a program is not the whole of it"
    job = h.admit(a("one"), a("two"), a("three"))
    kept = h.take_all()
    h.hand_back(kept["two"])
    assert written(h, "delete_unheld", {"tenant": "acme", "job_id": job})
    assert sorted(e["no"] for e in h.rows("queue_entry", job)) == [0, 2]
    assert not written(h, "delete_unheld", {"tenant": "acme", "job_id": job})


def test_guard_of_an_effect_is_about_one_effect_and_one_intent(h: Harness) -> None:
    h.exempt = "one statement of a program is not the whole of it"
    h.admit(a("one"), a("two"))
    held = h.take_all()
    for claimed in held.values():
        for name in ("mail", "charge"):
            h.intend(claimed, name)
    met = h.begin(held["one"])
    assert isinstance(met, Met)
    key = {"tenant": "acme", "effect_root": met.ref.effect_root, "label": "one", "name": "mail", "input_hash": "x"}
    intent = {"job_id": met.intent.job_id, "no": 0, "fence": 1}
    h.admit()
    others = {
        "tenant": "elsewhere",
        "effect_root": h.take().ref.job_id,
        "label": "three",
        "name": "fax",
        "input_hash": "y",
    }
    report = {**key, **intent, "outcome": None}
    before = h.snapshot()
    for column, value in others.items():
        for name, params in {
            "settle_effect": {**report, "state": "confirmed"},
            "judge_effect": {**key, "state": "confirmed", "outcome": None},
            "intend_effect": {**key, **intent, "timeout_ms": 1},
            "doubt_effect": key,
            "effect_of": key,
            "effect_outcome": key,
        }.items():
            assert not written(h, name, {**params, column: value}), (name, column)
    for column, value in {"job_id": others["effect_root"], "no": 1, "fence": 2}.items():
        assert not written(h, "settle_effect", {**report, "state": "refused", column: value}), column
    assert not written(h, "judge_effect", {**key, "state": "refused", "outcome": None}), "an intent is under way"
    assert h.snapshot() == before
    assert written(h, "doubt_effect", key)
    assert not written(h, "doubt_effect", key)
    assert written(h, "settle_effect", {**report, "state": "confirmed", "outcome": "1"})
    before = h.snapshot()
    assert not written(h, "settle_effect", {**report, "state": "refused"})
    assert not written(h, "judge_effect", {**key, "state": "refused", "outcome": None})
    assert not written(h, "intend_effect", {**key, **intent, "timeout_ms": 1})
    assert not written(h, "doubt_effect", key)
    assert h.snapshot() == before
