"""T8, T9, T10 and T3, J3: an attempt that failed, and what its budget leads to."""

from __future__ import annotations

import pytest

from contract.harness import ACCEPTED, LEASE_MS, STALE, Harness
from contract.plans import BASE_MS, CAP_MS, WINDOW_MS, a
from outlast.domain.retry import delay_ms
from outlast.domain.work import Settled


def again(h: Harness, label: str = "one") -> None:
    """Fails the next attempt, after waiting for it."""
    h.advance(CAP_MS)
    h.wake()
    h.fail(h.take(label))


def test_t8_a_failure_with_budget_waits_and_uses_an_attempt(h: Harness) -> None:
    job = h.admit()
    before = (h.job_row(job), h.task_row(job))
    claimed = h.take(worker="w9")
    claimed_at = h.now
    h.advance(40)
    delay = delay_ms(0, BASE_MS, CAP_MS, 0.5)
    assert h.fail(claimed, "no_paper", detail="Traceback") == Settled(ACCEPTED, retry_in_ms=delay)
    entry = h.standing(job)
    assert (entry["spent"], entry["fence"], entry["code"], entry["first_failed_at"]) == (1, 1, "no_paper", h.now)
    assert (entry["ready_at"], entry["due_at"]) == (None, h.now + delay)
    assert (entry["holder"], entry["lease_until"], entry["deadline_at"]) == (None, None, None)
    (attempt,) = h.rows("attempt", job)
    assert [attempt[c] for c in ("no", "fence", "number", "worker", "code", "detail")] == [0, 1, 1, "w9", "no_paper", "Traceback"]
    assert (attempt["started_at"], attempt["ended_at"]) == (claimed_at, h.now)
    assert (h.job_row(job), h.task_row(job)) == before
    assert h.view(job).state == "retrying"
    shown = h.task(job)
    assert (shown.state, shown.attempt, shown.code, shown.next_attempt_at_ms) == ("retrying", 1, "no_paper", h.now + delay)


def test_t8_the_first_failure_is_remembered_and_the_delay_grows(h: Harness) -> None:
    job = h.admit(a("one", attempts=5))
    first = h.now
    delays = []
    for n in range(3):
        settled = h.fail(h.take(), f"code_{n}")
        delays.append(settled.retry_in_ms)
        assert h.standing(job)["first_failed_at"] == first
        h.advance(settled.retry_in_ms or 0)
        h.wake()
    assert delays == [delay_ms(n, BASE_MS, CAP_MS, 0.5) for n in range(3)] == [500, 1000, 2000]
    assert [(r["number"], r["fence"], r["code"]) for r in h.rows("attempt", job)] == [(1, 1, "code_0"), (2, 2, "code_1"), (3, 3, "code_2")]


def test_t8_the_number_of_an_attempt_is_not_its_fence(h: Harness) -> None:
    job = h.admit()
    h.hand_back(h.take())
    h.snooze(h.take(), 0)
    h.wake()
    h.fail(h.take())
    assert [(r["number"], r["fence"]) for r in h.rows("attempt", job)] == [(1, 3)]


def test_t8_a_provider_that_asks_for_more_time_gets_it(h: Harness) -> None:
    job = h.admit()
    assert h.fail(h.take(), retry_after_ms=90_000).retry_in_ms == 90_000
    assert h.standing(job)["due_at"] == h.now + 90_000


@pytest.mark.parametrize("less", [0, -5, 499])
def test_t8_a_provider_that_asks_for_less_changes_nothing(h: Harness, less: int) -> None:
    h.admit()
    assert h.fail(h.take(), retry_after_ms=less).retry_in_ms == 500


def test_t8_no_retry_starts_after_the_window(h: Harness) -> None:
    h.admit(a("one", window_ms=10_000))
    assert h.fail(h.take(), retry_after_ms=90_000).retry_in_ms == 10_000


@pytest.mark.parametrize("jitter", [0.0, 0.999999])
def test_t8_the_delay_stays_in_its_bounds(h: Harness, jitter: float) -> None:
    h.admit(a("one", base_ms=1_000, cap_ms=300))
    settled = h.fail(h.take(), jitter=jitter)
    assert settled.retry_in_ms == (0 if jitter == 0.0 else 300)


def test_t9_the_last_attempt_needs_attention(h: Harness) -> None:
    job = h.admit(a("one", attempts=3))
    h.fail(h.take())
    again(h)
    h.advance(CAP_MS)
    h.wake()
    claimed = h.take(worker="w9")
    assert h.fail(claimed, "no_paper") == Settled(ACCEPTED, gave_up=True)
    assert h.entry(job) is None
    task = h.task_row(job)
    assert (task["state"], task["fence"], task["spent"], task["code"], task["finished_at"]) == ("needs_attention", 3, 3, "no_paper", None)
    assert [r["number"] for r in h.rows("attempt", job)] == [1, 2, 3]
    (question,) = h.rows("attention", job)
    assert (question["id"], question["code"], question["message"], question["actions"]) == ("0.3", "no_paper", "It broke.", "retry dismiss")
    assert (question["raised_at"], question["until"], question["resolved_at"]) == (h.now, h.now + 3_600_000, None)
    stored = h.job_row(job)
    assert (stored["state"], stored["open"], stored["required_open"], stored["attention"]) == ("needs_attention", 1, 1, 1)
    assert (stored["version"], stored["finished_at"]) == (2, None)
    seen = h.view(job)
    assert (seen.state, seen.attention_count) == ("needs_attention", 1)
    assert seen.attention is not None
    assert (seen.attention.id, seen.attention.label, seen.attention.actions) == ("0.3", "one", ("retry", "dismiss"))
    assert h.task(job).attempt == 3
    assert h.claim() == []


def test_t9_a_window_that_is_over_needs_attention_whatever_attempts_are_left(h: Harness) -> None:
    job = h.admit(a("one", attempts=100, window_ms=10_000, deadline_ms=60_000))
    h.fail(h.take())
    h.advance(9_990)
    h.wake()
    claimed = h.take()
    h.advance(10)
    assert h.fail(claimed).gave_up is True
    assert h.view(job).state == "needs_attention"


def test_t9_a_moment_before_the_windows_end_there_is_budget(h: Harness) -> None:
    h.admit(a("one", attempts=100, window_ms=10_000, deadline_ms=60_000))
    h.fail(h.take())
    h.advance(9_990)
    h.wake()
    claimed = h.take()
    h.advance(9)
    assert h.fail(claimed) == Settled(ACCEPTED, retry_in_ms=1)


def test_t9_a_permanent_failure_has_no_second_attempt(h: Harness) -> None:
    job = h.admit(a("one", attempts=100))
    assert h.fail(h.take(), permanent=True).gave_up is True
    assert (h.task_row(job)["spent"], h.view(job).state) == (1, "needs_attention")


def test_t9_a_budget_of_one_attempt_has_no_second(h: Harness) -> None:
    h.admit(a("one", attempts=1))
    assert h.fail(h.take()).gave_up is True


def test_t9_a_window_of_nothing_has_no_second_attempt(h: Harness) -> None:
    h.admit(a("one", attempts=5, window_ms=0))
    assert h.fail(h.take()).gave_up is True


def test_t9_a_budget_of_two_thousand_is_used_to_its_end(h: Harness) -> None:
    job = h.admit(a("one", attempts=2_000, base_ms=0, window_ms=10**12))
    h.sql("update {outlast.queue_entry} set spent = 1990, fence = 1990")
    h.aside = frozenset({"C7 spent"})
    outcomes = []
    for _ in range(10):
        outcomes.append(h.fail(h.take()))
        h.wake()
    assert [s.retry_in_ms for s in outcomes] == [0] * 9 + [None]
    assert outcomes[-1].gave_up
    assert (h.task_row(job)["spent"], h.view(job).state) == (2_000, "needs_attention")


def test_t8_the_largest_policy_gives_a_time_that_the_store_can_hold(h: Harness) -> None:
    ten_years = 10 * 365 * 86_400_000
    job = h.admit(a("one", attempts=10_000, base_ms=ten_years, cap_ms=ten_years, window_ms=ten_years))
    h.sql("update {outlast.queue_entry} set spent = 5000")
    h.aside = frozenset({"C7 spent"})
    assert h.fail(h.take(), jitter=1.0).retry_in_ms == ten_years
    assert h.standing(job)["due_at"] == h.now + ten_years


def test_t9_a_question_leaves_the_other_tasks_alone(h: Harness) -> None:
    job = h.admit(a("one", attempts=1), a("two"), a("child", after="one"))
    held = h.take_all()
    h.fail(held["one"])
    assert h.shows(job) == {"one": "needs_attention", "two": "running", "child": "blocked"}
    assert h.finish(held["two"]).verdict is ACCEPTED
    assert h.view(job).state == "needs_attention"


def test_t8_a_failure_at_the_very_instant_of_the_leases_end_is_the_sweeps(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.advance(LEASE_MS)
    before = h.snapshot()
    assert h.fail(claimed).verdict is STALE
    assert h.give_up(h.failure(claimed)).verdict is STALE
    assert h.snapshot() == before
    h.sweep()
    assert [r["code"] for r in h.rows("attempt", job)] == ["worker_lost"]


def test_t10_j3_an_optional_task_fails_and_can_be_the_jobs_last(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True, attempts=1))
    held = h.take_all()
    h.finish(held["main"])
    h.advance(5)
    assert h.fail(held["extra"], "no_paper") == Settled(ACCEPTED, gave_up=True)
    task = h.task_row(job, "extra")
    assert (task["state"], task["spent"], task["fence"], task["code"], task["finished_at"]) == ("failed", 1, 1, "no_paper", h.now)
    assert h.rows("attention", job) == []
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["finished_at"], stored["version"]) == (
        "completed",
        "succeeded_with_problems",
        h.now,
        3,
    )
    assert [r["code"] for r in h.rows("attempt", job)] == ["no_paper"]


def test_t10_an_optional_failure_satisfies_a_soft_edge(h: Harness) -> None:
    job = h.admit(a("extra", optional=True, attempts=1), a("join", after="extra"))
    assert h.fail(h.take("extra")).opened == 1
    assert h.shows(job) == {"extra": "failed", "join": "queued"}
    h.finish(h.take("join"))
    assert h.job_row(job)["outcome"] == "succeeded_with_problems"


def test_t3_an_optional_child_of_an_optional_failure_is_skipped(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True, attempts=1), a("more", optional=True, after="extra"))
    held = h.take_all()
    h.fail(held["extra"])
    task = h.task_row(job, "more")
    assert (task["state"], task["code"], task["finished_at"]) == ("skipped", "parent_failed", h.now)
    assert (h.job_row(job)["problems"], h.job_row(job)["open"], h.job_row(job)["version"]) == (2, 1, 2)


def test_t3_a_skip_goes_down_the_graph_and_satisfies_soft_edges_on_its_way(h: Harness) -> None:
    job = h.admit(
        a("root", optional=True, attempts=1),
        a("child", optional=True, after="root"),
        a("grandchild", optional=True, after="child"),
        a("join", after="grandchild"),
        a("after", after="join"),
        a("late", optional=True, after="join"),
    )
    assert h.fail(h.take("root")).opened == 1
    assert h.shows(job) == {
        "root": "failed",
        "child": "skipped",
        "grandchild": "skipped",
        "join": "queued",
        "after": "blocked",
        "late": "blocked",
    }
    assert (h.job_row(job)["problems"], h.job_row(job)["version"]) == (3, 2)
    assert h.finish(h.take("join")).opened == 2


def test_t3_a_diamond_of_optional_tasks_is_skipped_once_each(h: Harness) -> None:
    job = h.admit(
        a("main"),
        a("top", optional=True, attempts=1),
        a("left", optional=True, after="top"),
        a("right", optional=True, after="top"),
        a("bottom", optional=True, after="left right"),
        a("join", after="main bottom left"),
    )
    held = h.take_all()
    h.fail(held["top"])
    assert h.job_row(job)["problems"] == 4
    assert h.task_row(job, "join")["deps_left"] == 1
    assert h.finish(held["main"]).opened == 1
    h.finish(h.take("join"))
    assert h.view(job).state == "completed"


def test_t3_an_optional_child_of_two_parents_is_skipped_when_one_of_them_fails(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True, attempts=1), a("both", optional=True, after="main extra"))
    held = h.take_all()
    h.fail(held["extra"])
    assert h.shows(job)["both"] == "skipped"
    skipped = h.task_row(job, "both")
    h.finish(held["main"])
    assert h.task_row(job, "both") == skipped, "nothing moves what has ended"
    assert (h.view(job).state, h.job_row(job)["problems"]) == ("completed", 2)


def test_t3_an_optional_child_that_its_other_parent_opens_first_is_not_skipped_later(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True, attempts=1), a("side", optional=True, after="main"))
    held = h.take_all()
    h.finish(held["main"])
    h.fail(held["extra"])
    assert h.shows(job)["side"] == "queued"
    h.finish(h.take("side"))
    assert h.job_row(job)["problems"] == 1


def test_t9_a_parent_in_need_of_attention_satisfies_nothing(h: Harness) -> None:
    job = h.admit(a("one", attempts=1), a("child", after="one"), a("extra", optional=True, after="one"))
    h.fail(h.take("one"))
    assert h.shows(job) == {"one": "needs_attention", "child": "blocked", "extra": "blocked"}
    assert h.task_row(job, "child")["deps_left"] == 1


def test_t9_the_window_counts_from_the_first_failure_not_from_the_admission(h: Harness) -> None:
    h.admit(a("one", attempts=100, window_ms=WINDOW_MS))
    h.advance(WINDOW_MS * 3)
    assert h.fail(h.take()).gave_up is False
