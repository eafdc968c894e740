"""Concurrency keys: slots that are taken with the lease and freed with it, once; whose turn it is; keys that rest (T5, C8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.harness import ACCEPTED, CANCELLED, STALE, Harness
from contract.plans import HANDLER, a
from outlast.domain.limits import START, Limit
from outlast.domain.model import TargetRef
from outlast.domain.work import Claimed, Settled
from outlast.store.program import Access, Operation, Program, Rows, Statement
from outlast.store.programs import claims, completion, control, slots, status, sweep

ONE, TWO = Limit("k", 1), Limit("k", 2)
OTHER = Limit("j", 1)


# -- taking a slot --------------------------------------------------------------------------------------------


def test_a_task_with_a_key_is_claimed_with_a_slot_of_it(h: Harness) -> None:
    job = h.admit(a("one", limit=TWO), a("free"))
    assert h.slots() == [], "slots are made by the first claim, never by an admission"
    assert [c.label for c in h.claim()] == ["free"]
    claimed = h.take_keyed()
    assert (claimed.slot_key, claimed.ref.fence, claimed.ref.job_id) == ("k", 1, job)
    assert [(s["n"], s["job_id"], s["no"], s["fence"]) for s in h.slots("k")] == [(1, None, None, None), (2, job, 0, 1)]
    assert h.shows(job) == {"one": "running", "free": "running"}


def test_a_task_that_waits_for_a_slot_is_queued(h: Harness) -> None:
    first = h.admit(a("one", limit=ONE))
    second = h.admit(a("one", limit=ONE))
    h.take_keyed()
    assert h.claim_keyed() == h.claim() == []
    assert (h.view(first).state, h.view(second).state) == ("running", "queued")
    assert h.shows(second) == {"one": "queued"}


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_c8_no_more_than_its_slots_however_it_is_claimed(h: Harness, limit: int) -> None:
    for _ in range(10):
        h.admit(a("one", limit=Limit("k", limit)))
        h.advance(1)
    held: list[Claimed] = []
    for wanted in (1, 3, 100, 1):
        held += h.claim_keyed(wanted, worker=f"w{wanted}")
    assert len(held) == limit == len(h.held())
    h.finish(held[0])
    assert len(h.claim_keyed()) == 1


def test_a_key_is_its_tenants_own(h: Harness) -> None:
    for tenant in ("acme", "elsewhere"):
        for _ in range(2):
            h.admit(a("one", limit=ONE), tenant=tenant)
    assert sorted(c.ref.tenant for c in h.claim_keyed()) == ["acme", "elsewhere"]
    assert h.claim_keyed() == []


def test_a_key_is_the_same_in_every_queue_and_kind(h: Harness) -> None:
    h.admit(a("one", limit=ONE))
    h.admit(a("two", limit=ONE, queue="print"), kind="kind", owner="bob")
    held = h.take_keyed()
    assert h.claim_keyed(queue="print") == []
    h.finish(held)
    assert [c.label for c in h.claim_keyed(queue="print")] == ["two"]


def test_only_known_handlers_ready_tasks_and_queues_that_are_not_paused(h: Harness) -> None:
    h.admit(a("new", handler="kind@2:work", limit=ONE))
    h.admit(a("later", limit=OTHER), due_in=5_000)
    h.admit(a("one", limit=ONE))
    assert [c.label for c in h.claim_keyed(handlers=(HANDLER,))] == ["one"]
    h.sql("insert into {outlast.queue} (name, paused_at, paused_by, reason) values ('default', {now}, 'op', 'repairs')")
    h.advance(5_000)
    h.wake()
    assert h.claim_keyed() == []
    h.sql("update {outlast.queue} set paused_at = null")
    assert [c.label for c in h.claim_keyed()] == ["later"]


def test_within_a_key_lower_priority_first_then_who_waited_longest(h: Harness) -> None:
    for label, priority in (("late", 5), ("first", 0), ("second", 0), ("urgent", -1)):
        h.admit(a(label, priority=priority, limit=ONE))
        h.advance(1)
    order = []
    for _ in range(4):
        (claimed,) = h.claim_keyed()
        order.append(claimed.label)
        h.finish(claimed)
    assert order == ["urgent", "first", "second", "late"]


def test_a_full_key_is_in_nobodys_way(h: Harness) -> None:
    for _ in range(30):
        h.admit(a("k", limit=ONE))
    h.take_keyed("k")
    h.admit(a("j", limit=OTHER))
    h.admit(a("free"))
    assert [c.label for c in h.claim_keyed(1)] == ["j"]
    assert [c.label for c in h.claim(1)] == ["free"]


def test_an_unknown_claim_is_found_by_its_holder(h: Harness) -> None:
    h.admit(a("one", limit=TWO), a("two", limit=TWO))
    (mine,), (other,) = h.claim_keyed(1), h.claim_keyed(1)
    assert h.run(claims.claimed_by("default", mine.ref.holder)) == [mine]
    assert h.run(claims.claimed_by("default", other.ref.holder)) == [other]


def test_a_queue_in_which_only_keyed_tasks_wait_is_found(h: Harness) -> None:
    h.admit(a("one", limit=ONE, queue="keyed"), a("two", queue="plain"), a("three", limit=ONE, queue="both"), a("four", queue="both"))
    assert h.run(claims.ready_queues()) == {"keyed", "plain", "both"}


def test_depths_count_what_waits_for_a_slot(h: Harness) -> None:
    for _ in range(3):
        h.admit(a("one", limit=ONE))
    h.take_keyed()
    h.advance(9)
    (row,) = h.run(status.queues())
    assert (row.ready, row.held, row.oldest_ms) == (2, 1, 9)


def test_a_child_keeps_its_key(h: Harness) -> None:
    h.admit(a("one"), a("child", after="one", limit=ONE), a("last", after="child", limit=ONE))
    h.finish(h.take())
    assert h.claim() == []
    h.finish(h.take_keyed("child"))
    h.take_keyed("last")


def test_what_an_owner_retries_keeps_its_key(h: Harness) -> None:
    job = h.admit(a("one", attempts=1, limit=ONE))
    h.fail(h.take_keyed())
    h.act(job, "retry")
    assert h.claim() == []
    assert h.take_keyed().ref.fence == 2


# -- freeing it -----------------------------------------------------------------------------------------------


def _lost(h: Harness, claimed: Claimed) -> Any:
    h.lose(claimed)
    return h.ended_leases()[0]


def _sweeps(h: Harness, claimed: Claimed) -> object:
    return h.run(sweep.retry_lost(_lost(h, claimed), 500))


def _gives_up_lost(h: Harness, claimed: Claimed) -> object:
    return h.run(sweep.give_up_lost(_lost(h, claimed), window_ms=1_000, retention_ms=1_000))


def _stops(h: Harness, claimed: Claimed) -> object:
    h.cancel(claimed.ref.job_id)
    assert h.held() == [1], "a cancelled task that is held keeps its slot until it stops"
    return h.stop(claimed)


def _stops_lost(h: Harness, claimed: Claimed) -> object:
    h.cancel(claimed.ref.job_id)
    return h.run(sweep.stop_lost(_lost(h, claimed)))


PATHS: dict[str, Callable[[Harness, Claimed], object]] = {
    "finish": lambda h, c: h.finish(c),
    "retry": lambda h, c: h.run(completion.retry(h.failure(c), 500)),
    "give up": lambda h, c: h.give_up(h.failure(c)),
    "ask": lambda h, c: h.ask(c),
    "snooze": lambda h, c: h.snooze(c),
    "hand back": lambda h, c: h.hand_back(c),
    "park": lambda h, c: h.park(c),
    "sweep retries": _sweeps,
    "sweep gives up": _gives_up_lost,
    "stop": _stops,
    "sweep stops": _stops_lost,
}


@pytest.mark.parametrize("path", PATHS)
def test_a_slot_ends_with_its_lease_once(h: Harness, path: str) -> None:
    """A late repeat of what freed it takes nothing from the next one."""
    h.admit(a("one", limit=ONE), target=TargetRef("d", "1"))
    claimed = h.take_keyed()
    assert h.held() == [1]
    PATHS[path](h, claimed)
    assert h.held() == [], path
    waiting = h.admit(a("next", limit=ONE, priority=-1))
    h.take_keyed("next")
    if not path.startswith("sweep"):
        h.finish(claimed)
        h.stop(claimed)
        h.snooze(claimed)
        h.hand_back(claimed)
    (slot,) = h.slots()
    assert slot["job_id"] == waiting
    assert h.claim_keyed() == []


@pytest.mark.parametrize("optional", [False, True])
def test_an_attempt_without_budget_frees_it(h: Harness, optional: bool) -> None:
    h.admit(a("one", limit=ONE, attempts=1, optional=optional), a("other"))
    h.fail(h.take_keyed())
    assert h.held() == []


def test_a_batch_frees_each_its_own(h: Harness) -> None:
    for n in range(6):
        h.admit(a("one", limit=Limit(f"k{n % 2}", 3)))
    first = h.claim_keyed()
    assert len(first) == 6
    h.hand_back_all(*first[:3])
    assert len([s for s in h.slots() if s["job_id"] is not None]) == 3
    assert [s.verdict for s in h.finish_all(*((c, "1", None) for c in first))] == [STALE] * 3 + [ACCEPTED] * 3
    assert [s for s in h.slots() if s["job_id"] is not None] == []


def test_a_stale_claim_frees_nothing(h: Harness) -> None:
    h.admit(a("one", limit=ONE))
    old = h.take_keyed()
    h.run(sweep.retry_lost(_lost(h, old), 0))
    h.wake()
    new = h.take_keyed()
    for verdict in (h.finish(old), h.snooze(old), h.hand_back(old), h.ask(old), h.give_up(h.failure(old)), h.stop(old)):
        assert verdict.verdict is STALE
    assert h.held() == [1]
    assert h.finish(new) == Settled(ACCEPTED)


def test_a_cancel_leaves_the_slot_of_what_runs_and_has_none_of_what_waits(h: Harness) -> None:
    job = h.admit(a("one", limit=TWO), a("two", limit=TWO), a("three", limit=TWO))
    claimed = h.claim_keyed(2)
    h.cancel(job)
    assert h.held() == [1, 2]
    assert [s.verdict for s in h.finish_all(*((c, "1", None) for c in claimed))] == [CANCELLED] * 2
    for one in claimed:
        h.run(control.stop(one.ref))
    assert h.held() == []


def test_a_renewal_keeps_the_slot(h: Harness) -> None:
    h.admit(a("one", limit=ONE))
    claimed = h.take_keyed()
    assert h.renew(claimed) == [ACCEPTED]
    assert h.held() == [1]


# -- limits that differ ---------------------------------------------------------------------------------------


def test_a_larger_limit_makes_more_slots(h: Harness) -> None:
    h.admit(a("one", limit=ONE))
    h.take_keyed()
    h.admit(a("wide", limit=Limit("k", 3)))
    h.admit(a("wide", limit=Limit("k", 3)))
    assert [c.label for c in h.claim_keyed()] == ["wide", "wide"]
    assert h.held() == [1, 2, 3]


def test_a_smaller_limit_waits_until_its_own_slots_are_free(h: Harness) -> None:
    """What runs under the larger one ends first; no task ever runs in a slot above its own limit."""
    for _ in range(3):
        h.admit(a("wide", limit=Limit("k", 3)))
    wide = h.claim_keyed()
    h.admit(a("one", limit=ONE))
    slots_of = {s["job_id"]: s["n"] for s in h.slots()}
    for claimed in sorted(wide, key=lambda c: -slots_of[c.ref.job_id]):
        assert h.claim_keyed() == []
        h.finish(claimed)
    h.take_keyed("one")
    assert h.held() == [1]


def test_what_waits_keeps_the_limit_that_it_was_submitted_with(h: Harness) -> None:
    """Three of limit 1 wait, one runs; those of limit 2 that came later do not wait for them all."""
    for _ in range(4):
        h.admit(a("narrow", limit=ONE))
        h.advance(1)
    h.take_keyed("narrow")
    h.admit(a("wide", limit=TWO))
    assert [c.label for c in h.claim_keyed()] == ["wide"]
    assert h.claim_keyed() == []


def test_wide_ones_leave_the_low_slots_to_the_narrow(h: Harness) -> None:
    h.admit(a("wide", limit=Limit("k", 3)))
    h.advance(1)
    h.admit(a("narrow", limit=ONE))
    h.take_keyed("wide")
    h.take_keyed("narrow")
    assert h.held() == [1, 3]


# -- whose turn it is -----------------------------------------------------------------------------------------


def test_b50_a_tenant_with_many_waiting_holds_up_no_other(h: Harness) -> None:
    """One slot of a worker at a time, and room in every key: the single task of the other tenant is the second to start."""
    for _ in range(50):
        h.admit(a("many", limit=Limit("per tenant", 100)), tenant="big")
    h.advance(1_000)
    h.admit(a("single", limit=Limit("per tenant", 100)), tenant="small")
    order, after = [], START
    for _ in range(4):
        turn = h.turn(1, after=after)
        after = turn.last
        order += [c.label for c in turn.claimed]
    assert order == ["many", "single", "many"], "the third turn came to the end of the round"
    assert [c.label for c in h.claim_keyed(2)] == ["many", "many"]


def test_b50_a_batch_takes_one_of_each_key_before_the_second_of_any(h: Harness) -> None:
    for tenant, count in (("a", 9), ("b", 2), ("c", 1)):
        for _ in range(count):
            h.admit(a("one", limit=Limit("k", 8)), tenant=tenant)
    turn = h.turn(6)
    assert sorted(c.ref.tenant for c in turn.claimed) == ["a"] * 2 + ["b"] * 2 + ["c"]
    assert (turn.last, turn.ended) == (("c", "k"), False)


def test_a_round_goes_on_behind_who_was_served_last(h: Harness) -> None:
    for key in "abc":
        for _ in range(2):
            h.admit(a(key, limit=Limit(key, 5)))
    first = h.turn(2)
    assert (sorted(c.label for c in first.claimed), first.last) == (["a", "b"], ("acme", "b"))
    second = h.turn(2, after=first.last)
    assert [c.label for c in second.claimed] == ["c", "c"]
    assert h.turn(2, after=second.last).ended


def test_more_keys_than_one_turn_looks_at(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "KEYS", 2)
    for key in "abcde":
        h.admit(a(key, limit=Limit(key, 1)))
    found, after, ended = [], START, []
    for _ in range(3):
        turn = h.turn(9, after=after)
        found += [c.label for c in turn.claimed]
        after = turn.last
        ended.append(turn.ended)
    assert (found, ended) == (list("abcde"), [False, False, True])


# -- keys that rest -------------------------------------------------------------------------------------------


def test_a_failure_may_let_its_key_rest(h: Harness) -> None:
    for _ in range(3):
        h.admit(a("one", limit=TWO))
        h.admit(a("other", limit=OTHER))
        h.advance(1)
    failed, beside = h.claim_keyed(2, handlers=(HANDLER,)), h.admit(a("free"))
    mine = next(c for c in failed if c.slot_key == "k")
    h.fail(mine, pause_ms=5_000, retry_after_ms=5_000)
    assert [c.ref.job_id for c in h.claim()] == [beside]
    h.finish(next(c for c in failed if c.slot_key == "j"))
    turn = h.turn()
    assert ([c.label for c in turn.claimed], turn.resume_ms) == (["other"], 5_000)
    h.advance(4_999)
    assert [c.slot_key for c in h.claim_keyed()] == []
    h.advance(1)
    h.wake()
    assert len(h.claim_keyed()) == 2


def test_a_key_that_rests_since_it_was_looked_at_gives_no_slot(h: Harness) -> None:
    """A claim looks at the keys first; what it takes is judged by the statement that takes it."""

    def taken() -> Program[Rows]:
        shares = {"tenants": ["acme"], "keys": ["k"], "limits": [2], "takes": [2]}
        return (yield Statement("claim_keyed", {"queue": "default", "handlers": [HANDLER], "holder": "w1:9", "lease_ms": 1_000, **shares}))

    for _ in range(3):
        h.admit(a("one", limit=TWO))
    h.fail(h.take_keyed(), pause_ms=5_000)
    assert not h.run(Operation("taken", Access.STATEMENT, taken))
    h.advance(4_999)
    assert not h.run(Operation("taken", Access.STATEMENT, taken))
    h.advance(1)
    assert len(h.run(Operation("taken", Access.STATEMENT, taken))) == 2


def test_a_key_rests_though_the_attempt_was_the_last(h: Harness) -> None:
    h.admit(a("one", limit=TWO, attempts=1))
    h.admit(a("two", limit=TWO))
    h.fail(h.take_keyed(), pause_ms=5_000)
    assert h.claim_keyed() == []
    h.advance(5_000)
    h.take_keyed("two")


def test_the_longest_rest_of_a_key_counts(h: Harness) -> None:
    for label in ("one", "two", "three"):
        h.admit(a(label, limit=TWO))
        h.advance(1)
    one, two = h.claim_keyed()
    h.fail(one, pause_ms=9_000)
    h.fail(two, pause_ms=2_000)
    h.advance(8_999)
    assert h.claim_keyed() == []
    h.advance(1)
    assert len(h.claim_keyed()) > 0


def test_what_runs_is_not_stopped_by_a_rest(h: Harness) -> None:
    h.admit(a("one", limit=TWO))
    h.admit(a("two", limit=TWO))
    one, two = h.claim_keyed()
    h.fail(one, pause_ms=9_000)
    assert h.renew(two) == [ACCEPTED]
    assert h.finish(two) == Settled(ACCEPTED)


def test_a_failure_without_a_key_rests_nothing(h: Harness) -> None:
    h.admit()
    assert h.fail(h.take(), pause_ms=9_000).verdict is ACCEPTED
    assert h.slots() == []


# -- slots that nobody uses -----------------------------------------------------------------------------------


def test_free_slots_go_when_nobody_has_used_them_for_long_and_come_again(h: Harness) -> None:
    for _ in range(3):
        h.admit(a("one", limit=Limit("k", 3)))
    first, second, third = h.claim_keyed()
    h.finish(first)
    h.advance(1_000)
    h.finish(second)
    assert h.run(slots.drop_idle(1_001, 100)) == 0
    assert h.run(slots.drop_idle(1_000, 100)) == 1
    assert (len(h.slots()), len(h.held())) == (2, 1)
    h.advance(1_000)
    for _ in range(4):
        h.admit(a("one", limit=Limit("k", 3)))
    assert h.run(slots.drop_idle(1_000, 0)) == 0
    assert h.run(slots.drop_idle(1_000, 100)) == 1
    assert len(h.claim_keyed()) == 2
    assert h.held() == [1, 2, 3]
    assert h.finish(third) == Settled(ACCEPTED)


def test_a_key_that_rests_is_remembered(h: Harness) -> None:
    h.admit(a("one", limit=ONE, attempts=1))
    h.fail(h.take_keyed(), pause_ms=9_000)
    h.advance(5_000)
    assert h.run(slots.drop_idle(1_000, 100)) == 0
    h.advance(4_000)
    assert h.run(slots.drop_idle(1_000, 100)) == 1
