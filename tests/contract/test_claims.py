"""T4, T5, T6, T12 and T13: what takes, holds and lets go of an entry, and never writes task or job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contract.harness import ACCEPTED, CANCELLED, LEASE_MS, STALE, Harness
from contract.plans import HANDLER, OTHER_HANDLER, a
from outlast.domain.work import Renewal, Settled, Woken
from outlast.store.programs import claims, status


def test_t5_a_claim_raises_the_fence_and_takes_a_lease(h: Harness) -> None:
    job = h.admit(a("one", deadline_ms=600_000))
    before = (h.job_row(job), h.task_row(job))
    h.advance(7)
    claimed = h.take(worker="w9")
    entry = h.standing(job)
    assert (entry["fence"], entry["spent"], entry["claimed_at"]) == (1, 0, h.now)
    assert (entry["lease_until"], entry["deadline_at"]) == (h.now + LEASE_MS, h.now + 600_000)
    assert entry["holder"] == claimed.ref.holder
    assert claimed.ref.holder.startswith("w9:")
    assert (h.job_row(job), h.task_row(job)) == before
    assert h.view(job).state == "running"
    assert h.shows(job) == {"one": "running"}


def test_t5_a_claim_brings_all_that_an_attempt_needs(h: Harness) -> None:
    job = h.admit(a("part 7", item='{"chapter":7}', handler=OTHER_HANDLER, queue="print"), body='{"book":1}', caller='{"roles":[]}')
    claimed = h.take("part 7", queue="print")
    assert (claimed.ref.tenant, claimed.ref.job_id, claimed.ref.no, claimed.ref.fence) == ("acme", job, 0, 1)
    assert (claimed.item, claimed.input, claimed.caller) == ('{"chapter":7}', '{"book":1}', '{"roles":[]}')
    assert (claimed.handler, claimed.queue, claimed.owner, claimed.spent) == (OTHER_HANDLER, "print", "ann", 0)
    assert (claimed.deadline_ms, claimed.deadline_at_ms) == (60_000, h.now + 60_000)
    assert claimed.correlation_id == h.view(job).correlation_id


def test_t5_a_lease_never_passes_the_deadline(h: Harness) -> None:
    job = h.admit(a("one", deadline_ms=5_000))
    h.take()
    entry = h.standing(job)
    assert entry["lease_until"] == entry["deadline_at"] == h.now + 5_000


def test_t5_lower_priority_first_then_who_waited_longest(h: Harness) -> None:
    for label, priority in (("late", 5), ("first", 0), ("second", 0), ("urgent", -1)):
        h.admit(a(label, priority=priority))
        h.advance(1)
    assert [c.label for c in h.claim()] == ["urgent", "first", "second", "late"]


def test_t5_no_more_than_asked_for(h: Harness) -> None:
    for _ in range(5):
        h.admit()
        h.advance(1)
    assert [len(h.claim(2)) for _ in range(4)] == [2, 2, 1, 0]


def test_t5_one_claim_statement_has_one_holder(h: Harness) -> None:
    h.admit(a("one"), a("two"))
    assert len({c.ref.holder for c in h.claim()}) == 1


def test_t5_only_known_handlers(h: Harness) -> None:
    h.admit(a("new", handler="kind@2:work"))
    h.admit(a("one"))
    assert [c.label for c in h.claim(handlers=(HANDLER,))] == ["one"]
    assert h.claim(handlers=()) == []
    assert [c.label for c in h.claim(handlers=("kind@2:work",))] == ["new"]


def test_t5_only_the_queue_asked_for(h: Harness) -> None:
    h.admit(a("one", queue="print"))
    assert h.claim() == []
    assert len(h.claim(queue="print")) == 1


def test_t5_nothing_of_a_paused_queue(h: Harness) -> None:
    h.admit()
    h.admit(a("one", queue="print"))
    h.sql("insert into {outlast.queue} (name, paused_at, paused_by, reason) values ('default', {now}, 'op', 'repairs')")
    assert h.claim() == []
    assert len(h.claim(queue="print")) == 1
    h.sql("update {outlast.queue} set paused_at = null")
    assert len(h.claim()) == 1


def test_t5_what_is_held_is_not_claimed_again_not_even_when_its_lease_has_ended(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    assert h.claim() == []
    h.lose(claimed)
    assert h.claim() == []
    h.advance(1_000_000)
    assert h.claim() == []


def test_t5_the_fence_goes_on_over_every_claim(h: Harness) -> None:
    h.admit()
    fences = []
    for _ in range(4):
        claimed = h.take()
        fences.append(claimed.ref.fence)
        h.hand_back(claimed)
    assert fences == [1, 2, 3, 4]


def test_t5_a_claim_forgets_the_progress_of_the_last_one(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.renew(claimed, progress="page 3")
    h.hand_back(claimed)
    h.take()
    assert h.task(job).progress is None


def test_t5_an_unknown_claim_is_found_by_its_holder(h: Harness) -> None:
    h.admit(a("one"), a("two"))
    h.admit(a("three"))
    (mine, other) = h.claim(2), h.claim(1)
    found = h.run(claims.claimed_by("default", mine[0].ref.holder))
    assert sorted(found, key=lambda c: c.ref.no) == sorted(mine, key=lambda c: c.ref.no)
    assert h.run(claims.claimed_by("default", other[0].ref.holder)) == other
    assert h.run(claims.claimed_by("print", mine[0].ref.holder)) == []
    assert h.run(claims.claimed_by("default", "w1:nothing")) == []


def test_t5_an_unknown_claim_of_a_cancelled_job_is_not_run(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.cancel(job)
    assert h.run(claims.claimed_by("default", claimed.ref.holder)) == []


def test_t5_queues_with_something_to_run_or_running_are_named(h: Harness) -> None:
    assert h.run(claims.ready_queues()) == frozenset()
    h.admit(a("one", queue="held"))
    h.take(queue="held")
    h.admit(a("one", queue="ready"), a("two", queue="blocked", after="one"))
    h.admit(a("one", queue="later"), due_in=5)
    assert h.run(claims.ready_queues()) == {"held", "ready"}


def test_t4_wakes_at_the_very_instant_and_not_before(h: Harness) -> None:
    job = h.admit(a("one", queue="print"), due_in=1_000)
    h.advance(999)
    assert h.wake() == Woken(0, (), 1)
    assert h.claim(queue="print") == []
    h.advance(1)
    assert h.wake() == Woken(1, ("print",), 0)
    entry = h.standing(job)
    assert entry["ready_at"] == entry["due_at"] == h.now
    assert len(h.claim(queue="print")) == 1


def test_t4_what_fell_due_first_goes_first_however_late_it_is_woken(h: Harness) -> None:
    h.admit(a("later"), due_in=2_000)
    h.admit(a("sooner"), due_in=1_000)
    h.advance(60_000)
    h.admit(a("now"))
    assert h.wake().count == 2
    assert [c.label for c in h.claim()] == ["sooner", "later", "now"]


def test_t4_no_more_than_asked_for_and_the_earliest_first(h: Harness) -> None:
    jobs = [h.admit(due_in=n) for n in (3, 1, 2)]
    h.advance(10)
    assert h.wake(2).count == 2
    assert [h.standing(job)["ready_at"] is not None for job in jobs] == [False, True, True]
    assert h.wake(2).count == 1
    assert h.wake(2) == Woken(0, (), None)


def test_t4_a_retry_wakes_as_retrying(h: Harness) -> None:
    job = h.admit()
    h.fail(h.take())
    h.advance(1_000)
    assert h.wake().count == 1
    assert h.shows(job) == {"one": "retrying"}
    assert h.task(job).next_attempt_at_ms is None
    assert h.take().spent == 1


def test_t4_wakes_nothing_that_is_ready_or_held(h: Harness) -> None:
    h.admit()
    h.take()
    h.admit()
    assert h.wake() == Woken(0, (), None)


def test_t6_a_renewal_prolongs_the_lease_from_now(h: Harness) -> None:
    job = h.admit(a("one", deadline_ms=600_000))
    claimed = h.take()
    before = h.job_row(job)
    h.advance(20_000)
    assert h.renew(claimed, progress="page 3") == [ACCEPTED]
    entry = h.standing(job)
    assert (entry["lease_until"], entry["progress"], entry["fence"]) == (h.now + LEASE_MS, "page 3", 1)
    assert h.renew(claimed) == [ACCEPTED]
    assert h.task(job).progress == "page 3"
    assert h.job_row(job) == before


def test_t6_a_renewal_never_passes_the_deadline(h: Harness) -> None:
    job = h.admit(a("one", deadline_ms=40_000))
    claimed = h.take()
    h.advance(29_999)
    assert h.renew(claimed) == [ACCEPTED]
    entry = h.standing(job)
    assert entry["lease_until"] == entry["deadline_at"] == h.now + 10_001
    h.advance(10_001)
    assert h.renew(claimed) == [STALE]


def test_t6_a_renewal_at_the_very_instant_of_the_end_is_too_late(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.advance(LEASE_MS - 1)
    assert h.renew(claimed, lease_ms=10) == [ACCEPTED]
    h.advance(10)
    before = h.snapshot()
    assert h.renew(claimed) == [STALE]
    assert h.snapshot() == before


def test_t6_each_of_a_batch_gets_its_own_verdict_in_the_order_asked(h: Harness) -> None:
    kept, stopped = h.admit(a("kept")), h.admit(a("stopped"))
    h.admit(a("gone"))
    held = h.take_all()
    h.cancel(stopped)
    h.hand_back(held["gone"])
    assert h.renew(held["gone"], held["kept"], held["stopped"]) == [STALE, ACCEPTED, CANCELLED]
    assert h.standing(kept, "kept")["holder"] == held["kept"].ref.holder
    assert h.renew() == []


def test_t6_the_old_holder_cannot_renew_for_the_new_one(h: Harness) -> None:
    job = h.admit()
    old = h.take()
    h.hand_back(old)
    h.take(worker="w2")
    before = h.standing(job)
    h.advance(5)
    assert h.renew(old, progress="mine") == [STALE]
    assert h.standing(job) == before


@pytest.mark.parametrize("changed", [{"fence": 1}, {"fence": 3}, {"holder": "w1:9"}, {"no": 1}, {"tenant": "elsewhere"}], ids=str)
def test_t6_each_word_of_a_claim_stands_in_the_guard_of_its_renewal(h: Harness, changed: dict[str, Any]) -> None:
    """A holder has one claim of a task, so that its fence is a second belt; each holds by itself."""
    job = h.admit()
    h.hand_back(h.take())
    held = h.take()
    before = h.standing(job)
    h.advance(5)
    (verdict,) = h.run(claims.renew([Renewal(replace(held.ref, **changed), "not mine")], LEASE_MS))
    assert verdict is STALE
    assert h.standing(job) == before
    assert h.renew(held) == [ACCEPTED]


@pytest.mark.parametrize("spent", [0, 1])
def test_t12_a_snooze_uses_no_attempt(h: Harness, spent: int) -> None:
    job = h.admit()
    if spent:
        h.fail(h.take())
        h.advance(1_000)
        h.wake()
    claimed = h.take()
    before = h.job_row(job)
    assert h.snooze(claimed, 5_000) == Settled(ACCEPTED, retry_in_ms=5_000)
    entry = h.standing(job)
    assert (entry["spent"], entry["fence"], entry["ready_at"], entry["due_at"]) == (spent, claimed.ref.fence, None, h.now + 5_000)
    assert (entry["holder"], entry["lease_until"], entry["deadline_at"]) == (None, None, None)
    assert h.shows(job) == {"one": "retrying" if spent else "queued"}
    assert h.job_row(job) == before
    assert len(h.rows("attempt", job)) == spent
    h.advance(5_000)
    h.wake()
    assert h.take().spent == spent


def test_t12_a_snooze_of_no_time_is_due_at_once(h: Harness) -> None:
    job = h.admit()
    h.snooze(h.take(), 0)
    assert h.standing(job)["ready_at"] is None
    assert h.wake().count == 1
    assert h.take().ref.fence == 2


def test_t12_any_number_of_snoozes_leaves_the_budget_whole(h: Harness) -> None:
    job = h.admit(a("one", attempts=2))
    for _ in range(10):
        h.snooze(h.take(), 10)
        h.advance(10)
        h.wake()
    assert h.fail(h.take()).gave_up is False
    assert h.task(job).attempt == 1


@pytest.mark.parametrize("spent", [0, 1])
def test_t13_a_hand_back_is_ready_at_once_and_uses_no_attempt(h: Harness, spent: int) -> None:
    job = h.admit()
    if spent:
        h.fail(h.take())
        h.advance(1_000)
        h.wake()
    claimed = h.take()
    h.advance(3)
    assert h.hand_back(claimed) == Settled(ACCEPTED, opened=1)
    entry = h.standing(job)
    assert (entry["spent"], entry["fence"], entry["ready_at"], entry["due_at"]) == (spent, claimed.ref.fence, h.now, None)
    assert (entry["holder"], entry["lease_until"], entry["deadline_at"]) == (None, None, None)
    assert h.shows(job) == {"one": "retrying" if spent else "queued"}
    assert len(h.rows("attempt", job)) == spent
    assert h.take(worker="w2").ref.fence == claimed.ref.fence + 1


def test_t13_each_of_a_batch_gets_its_own_verdict_in_the_order_asked(h: Harness) -> None:
    stopped = h.admit(a("stopped"))
    kept = h.admit(a("one"), a("two"))
    h.admit(a("gone"), a("late", deadline_ms=1_000))
    held = h.take_all()
    h.cancel(stopped)
    h.finish(held["gone"])
    h.advance(1_000)
    verdicts = [s.verdict for s in h.hand_back_all(*(held[label] for label in ("two", "stopped", "late", "gone", "one")))]
    assert verdicts == [ACCEPTED, CANCELLED, STALE, STALE, ACCEPTED]
    assert h.shows(kept) == {"one": "queued", "two": "queued"}
    assert [h.standing(kept, label)["ready_at"] for label in ("one", "two")] == [h.now, h.now]
    before = h.snapshot()
    again = [s.verdict for s in h.hand_back_all(held["one"], held["two"])]
    assert again == [ACCEPTED, ACCEPTED], "its commit was unknown"
    assert h.snapshot() == before
    assert h.hand_back_all() == []


def test_t13_a_job_that_was_handed_back_has_started(h: Harness) -> None:
    job = h.admit()
    h.hand_back(h.take())
    assert h.view(job).state == "running"


def test_t5_clock_is_the_stores(h: Harness) -> None:
    assert h.run(status.clock()) == h.now
    h.advance(123_456)
    assert h.run(status.clock()) == h.now
