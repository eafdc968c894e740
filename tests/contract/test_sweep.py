"""T14, T16, T19 and T20 by the sweep: what others lost or left, by the store's clock, one row at a time."""

from __future__ import annotations

from typing import Any

import pytest

from contract.harness import ACCEPTED, LEASE_MS, RETENTION_MS, STALE, WINDOW_MS, Harness
from contract.plans import a
from outlast.domain.work import Swept
from outlast.store.program import Operation
from outlast.store.programs import sweep
from outlast.worker.committer import Windows
from outlast.worker.sweeper import Sweeper, SweepReport

INT64_MAX = 2**63 - 1


def test_t14_a_lost_worker_uses_an_attempt(h: Harness) -> None:
    job = h.admit()
    before = (h.job_row(job), h.task_row(job))
    claimed = h.take(worker="w9")
    claimed_at = h.now
    h.lose(claimed)
    assert h.sweep() == {"retried": 1}
    entry = h.standing(job)
    assert (entry["spent"], entry["fence"], entry["code"], entry["first_failed_at"]) == (1, 1, "worker_lost", h.now)
    assert (entry["ready_at"], entry["due_at"]) == (None, h.now + 500)
    assert (entry["holder"], entry["lease_until"], entry["deadline_at"]) == (None, None, None)
    (attempt,) = h.rows("attempt", job)
    assert [attempt[c] for c in ("fence", "number", "worker", "code", "started_at", "ended_at")] == [
        1,
        1,
        "w9",
        "worker_lost",
        claimed_at,
        h.now,
    ]
    assert (h.job_row(job), h.task_row(job)) == before
    assert h.view(job).state == "retrying"


def test_t14_at_the_very_instant_and_not_before(h: Harness) -> None:
    h.admit()
    h.take()
    h.advance(LEASE_MS - 1)
    assert h.ended_leases() == []
    assert h.sweep() == {}
    h.advance(1)
    assert [row.fence for row in h.ended_leases()] == [1]
    assert h.sweep() == {"retried": 1}


def test_t14_a_deadline_that_is_over_has_its_own_code(h: Harness) -> None:
    job = h.admit(a("one", deadline_ms=40_000))
    claimed = h.take()
    h.advance(20_000)
    assert h.renew(claimed) == [ACCEPTED]
    h.advance(20_000)
    assert h.sweep() == {"retried": 1}
    assert h.standing(job)["code"] == "deadline_exceeded"
    assert [r["code"] for r in h.rows("attempt", job)] == ["deadline_exceeded"]


def test_t14_without_budget_required_work_needs_attention(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    claimed = h.take()
    h.lose(claimed)
    assert h.sweep() == {"gave_up": 1}
    task = h.task_row(job)
    assert (task["state"], task["spent"], task["fence"], task["code"], task["worker"]) == ("needs_attention", 1, 1, "worker_lost", "w1")
    (question,) = h.rows("attention", job)
    assert (question["id"], question["code"], question["actions"]) == ("0.1", "worker_lost", "retry dismiss")
    assert question["message"] != ""
    assert h.job_row(job)["version"] == 2
    assert h.entry(job) is None


def test_t14_without_budget_optional_work_fails_and_its_children_go_on(h: Harness) -> None:
    job = h.admit(a("extra", optional=True, attempts=1), a("more", optional=True, after="extra"), a("join", after="extra"))
    h.lose(h.take("extra"))
    assert h.sweep() == {"gave_up": 1}
    assert h.shows(job) == {"extra": "failed", "more": "skipped", "join": "queued"}
    assert (h.job_row(job)["version"], h.job_row(job)["problems"]) == (2, 2)


def test_t14_a_task_that_kills_its_worker_each_time_ends_in_need_of_attention(h: Harness) -> None:
    job = h.admit(a("one", attempts=3))
    outcomes = []
    for _ in range(3):
        h.lose(h.take())
        outcomes.append(dict(h.sweep()))
        h.advance(60_000)
        h.wake()
    assert outcomes == [{"retried": 1}, {"retried": 1}, {"gave_up": 1}]
    assert [(r["number"], r["code"]) for r in h.rows("attempt", job)] == [(n, "worker_lost") for n in (1, 2, 3)]
    assert h.view(job).state == "needs_attention"
    assert h.claim() == []


def test_t14_the_window_ends_a_crash_loop_too(h: Harness) -> None:
    job = h.admit(a("one", attempts=100, window_ms=LEASE_MS))
    h.lose(h.take())
    assert h.sweep() == {"retried": 1}
    h.advance(500)
    h.wake()
    h.lose(h.take())
    assert h.sweep() == {"gave_up": 1}
    assert h.view(job).state == "needs_attention"


def test_t14_a_candidate_that_finished_meanwhile_is_left_alone(h: Harness) -> None:
    """The sweep reads, pauses, and writes when the task has long been completed by its own holder's clock."""
    job = h.admit()
    claimed = h.take()
    h.advance(LEASE_MS)
    (candidate,) = h.ended_leases()
    h.advance(-1)
    assert h.finish(claimed).verdict is ACCEPTED
    h.advance(1_000)
    before = h.snapshot()
    assert h.run(sweep.lost(candidate, 0.5)) is None
    assert h.run(sweep.retry_lost(candidate, 10)) is Swept.PASSED
    assert h.run(sweep.give_up_lost(candidate, window_ms=WINDOW_MS, retention_ms=RETENTION_MS)) is Swept.PASSED
    assert h.snapshot() == before
    assert h.rows("attempt", job) == []


def test_t14_a_candidate_that_was_renewed_meanwhile_is_left_alone(h: Harness) -> None:
    h.admit(a("one", deadline_ms=600_000))
    claimed = h.take()
    h.advance(LEASE_MS)
    (candidate,) = h.ended_leases()
    h.advance(-1)
    h.renew(claimed)
    h.advance(1)
    before = h.snapshot()
    assert h.sweep_one(candidate) == "passed"
    assert h.run(sweep.retry_lost(candidate, 10)) is Swept.PASSED
    assert h.run(sweep.give_up_lost(candidate, window_ms=WINDOW_MS, retention_ms=RETENTION_MS)) is Swept.PASSED
    assert h.snapshot() == before


def test_t14_a_candidate_that_was_claimed_anew_meanwhile_is_left_alone(h: Harness) -> None:
    h.admit()
    h.lose(h.take())
    (candidate,) = h.ended_leases()
    h.sweep()
    h.advance(60_000)
    h.wake()
    h.lose(h.take())
    before = h.snapshot()
    assert h.sweep_one(candidate) == "passed"
    assert h.run(sweep.retry_lost(candidate, 10)) is Swept.PASSED
    assert h.snapshot() == before
    assert h.sweep() == {"retried": 1}


def test_t14_a_candidate_that_was_cancelled_meanwhile_is_not_retried(h: Harness) -> None:
    job = h.admit()
    h.lose(h.take())
    (candidate,) = h.ended_leases()
    h.cancel(job)
    before = h.snapshot()
    assert h.sweep_one(candidate) == "passed"
    assert h.run(sweep.retry_lost(candidate, 10)) is Swept.PASSED
    assert h.run(sweep.give_up_lost(candidate, window_ms=WINDOW_MS, retention_ms=RETENTION_MS)) is Swept.PASSED
    assert h.snapshot() == before


def test_t14_two_sweeps_of_one_list_count_one_attempt(h: Harness) -> None:
    job = h.admit()
    h.lose(h.take())
    (candidate,) = h.ended_leases()
    assert h.sweep_one(candidate) == "retried"
    assert h.sweep_one(candidate) == "passed"
    assert h.standing(job)["spent"] == 1
    assert len(h.rows("attempt", job)) == 1


def test_t14_the_lost_holder_is_told_that_it_is_stale(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.lose(claimed)
    h.sweep()
    before = h.snapshot()
    assert h.finish(claimed).verdict is STALE
    assert h.renew(claimed) == [STALE]
    assert h.fail(claimed).verdict is STALE
    assert h.snooze(claimed).verdict is STALE
    assert h.hand_back(claimed).verdict is STALE
    assert h.ask(claimed).verdict is STALE
    assert h.give_up(h.failure(claimed)).verdict is STALE
    assert h.snapshot() == before


def test_t14_the_holder_lost_for_good_is_told_that_it_is_stale(h: Harness) -> None:
    h.admit(a("one", attempts=1))
    claimed = h.take()
    h.lose(claimed)
    h.sweep()
    before = h.snapshot()
    for settled in (h.finish(claimed), h.fail(claimed), h.ask(claimed), h.give_up(h.failure(claimed)), h.hand_back(claimed)):
        assert settled.verdict is STALE
    assert h.snapshot() == before


def test_sweep_a_bad_row_stops_nobody_elses_recovery(h: Harness) -> None:
    jobs = [h.admit(a("one", attempts=2)) for _ in range(5)]
    held = h.claim()
    h.sql("update {outlast.queue_entry} set spent = :most where job_id = {uuid:job}", most=INT64_MAX, job=jobs[2])
    h.aside = frozenset({"C7 spent", "F1 budget"})
    h.lose(held[0])
    assert h.sweep(batch=2) == {"retried": 4, "bad": 1}
    assert [h.view(job).state for job in jobs] == ["retrying", "retrying", "running", "retrying", "retrying"]
    assert h.sweep() == {"bad": 1}, "it is met again, and still stops nobody"
    assert h.standing(jobs[2])["spent"] == INT64_MAX


def test_sweep_of_the_worker_does_the_same(h: Harness) -> None:
    """The worker's own sweeper, driven by hand: everything that this file shows in pieces, in one run."""
    bad = h.admit(a("bad", attempts=2))
    lost = h.admit(a("lost"))
    spent = h.admit(a("spent", attempts=1))
    stopping = h.admit(a("stopping"))
    held = h.take_all()
    h.sql("update {outlast.queue_entry} set spent = :most where job_id = {uuid:job}", most=INT64_MAX, job=bad)
    h.aside = frozenset({"C7 spent", "F1 budget"})
    h.cancel(stopping)
    h.lose(held["lost"])
    report = swept_by_the_worker(h)
    assert (report.outcomes, report.bad) == ({Swept.RETRIED: 1, Swept.GAVE_UP: 1, Swept.STOPPED: 1}, 1)
    assert [h.view(job).state for job in (bad, lost, spent, stopping)] == ["running", "retrying", "needs_attention", "cancelled"]
    h.advance(WINDOW_MS)
    assert swept_by_the_worker(h).outcomes == {Swept.ABANDONED: 1}


def swept_by_the_worker(h: Harness) -> SweepReport:
    """One run of the worker's sweeper, which never has to wait here."""

    class Immediate:
        async def run(self, operation: Operation[Any]) -> Any:
            return h.run(operation)

    store: Any = Immediate()
    sweeper = Sweeper(store, Windows(WINDOW_MS, RETENTION_MS), interval=1, moved=lambda: None)
    run = sweeper.run_once()
    try:
        run.send(None)
    except StopIteration as stop:
        report: SweepReport = stop.value
        return report
    raise AssertionError("it waits")


def test_sweep_goes_through_every_candidate_whatever_the_size_of_its_bites(h: Harness) -> None:
    jobs = [h.admit(a("one"), a("two")) for _ in range(4)]
    h.lose(h.claim()[0])
    assert h.sweep(batch=3) == {"retried": 8}
    assert {h.view(job).state for job in jobs} == {"retrying"}


def test_sweep_goes_through_candidates_of_every_tenant(h: Harness) -> None:
    for tenant in ("a", "b", "Z", "\N{GRINNING FACE}", "é"):
        h.admit(tenant=tenant)
    h.lose(h.claim()[0])
    assert h.sweep(batch=1) == {"retried": 5}


def test_t16_the_sweep_stops_for_a_holder_that_went_away_after_a_cancel(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    h.claim()
    h.cancel(job)
    h.advance(LEASE_MS - 1)
    assert h.sweep() == {}
    h.advance(1)
    version = h.job_row(job)["version"]
    assert h.view(job).stopping
    assert h.sweep() == {"stopped": 2}
    assert h.rows("queue_entry", job) == []
    assert not h.view(job).stopping
    assert h.job_row(job)["version"] == version + 1
    assert h.rows("attempt", job) == []
    assert h.sweep() == {}


def test_t16_a_candidate_whose_holder_stopped_meanwhile_is_left_alone(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.cancel(job)
    h.lose(claimed)
    (candidate,) = h.ended_leases()
    assert candidate.revoked
    h.stop(claimed)
    before = h.snapshot()
    assert h.run(sweep.stop_lost(candidate)) is Swept.PASSED
    assert h.snapshot() == before


def test_t19_a_window_that_is_over_skips_optional_work(h: Harness) -> None:
    job = h.admit(a("extra", optional=True), a("more", optional=True, after="extra"), a("join", after="extra"))
    h.ask(h.take("extra"))
    h.advance(WINDOW_MS - 1)
    assert h.sweep() == {}
    h.advance(1)
    assert h.sweep() == {"skipped": 1}
    assert h.shows(job) == {"extra": "skipped", "more": "skipped", "join": "queued"}
    (question,) = h.rows("attention", job)
    assert (question["action"], question["actor"], question["resolved_at"]) == ("skip", "sweep", h.now)
    assert (h.job_row(job)["version"], h.job_row(job)["state"]) == (3, "open")
    assert h.sweep() == {}


def test_t19_a_window_that_is_over_can_end_the_job(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True))
    held = h.take_all()
    h.finish(held["main"])
    h.ask(held["extra"])
    h.advance(WINDOW_MS)
    h.sweep()
    assert (h.job_row(job)["state"], h.job_row(job)["outcome"]) == ("completed", "succeeded_with_problems")


def test_t20_j7_a_window_that_is_over_abandons_a_job_that_needs_its_answer(h: Harness) -> None:
    job = h.admit(a("one", attempts=1), a("child", after="one"))
    h.fail(h.take())
    h.advance(WINDOW_MS)
    assert h.sweep() == {"abandoned": 1}
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["cancelled_by"], stored["version"]) == ("cancelled", "abandoned", "sweep", 3)
    assert h.shows(job) == {"one": "cancelled", "child": "cancelled"}
    assert h.sweep() == {}


def test_t20_a_question_that_was_settled_meanwhile_is_left_alone(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    h.advance(WINDOW_MS)
    (candidate,) = h.run(sweep.windows_over(None, 10))
    h.act(job, "retry")
    before = h.snapshot()
    assert h.run(sweep.close_window(candidate, retention_ms=RETENTION_MS)) is Swept.PASSED
    assert h.snapshot() == before


def test_t20_windows_are_gone_through_whatever_the_size_of_the_bites(h: Harness) -> None:
    jobs = [h.admit(a("one", attempts=1), a("two", attempts=1)) for _ in range(3)]
    for claimed in h.claim():
        h.fail(claimed)
    h.advance(WINDOW_MS)
    report = h.sweep(batch=2)
    assert report["abandoned"] == 3
    assert report["retried"] == report["bad"] == 0
    assert {h.view(job).state for job in jobs} == {"cancelled"}


@pytest.mark.parametrize("ms", [0, 1])
def test_t14_finish_and_sweep_at_one_instant_agree_on_who_was_in_time(h: Harness, ms: int) -> None:
    """Whoever comes first: at the end of the lease it is the sweep's, a moment before the holder's."""
    job = h.admit()
    claimed = h.take()
    h.advance(LEASE_MS - ms)
    swept = h.sweep()
    verdict = h.finish(claimed).verdict
    assert (swept, verdict) == (({"retried": 1}, STALE) if ms == 0 else ({}, ACCEPTED))
    assert h.shows(job) == {"one": "retrying" if ms == 0 else "completed"}
