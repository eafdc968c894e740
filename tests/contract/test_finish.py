"""T7 and T2, J2: a result, once, from the holder only; and what it opens."""

from __future__ import annotations

import pytest

from contract.harness import ACCEPTED, CANCELLED, LEASE_MS, RETENTION_MS, STALE, Harness
from contract.plans import a
from outlast.domain.work import Settled


def test_t7_j2_a_finish_stores_the_result_and_ends_the_job(h: Harness) -> None:
    job = h.admit()
    claimed = h.take(worker="w9")
    claimed_at = h.now
    h.advance(1_500)
    assert h.finish(claimed, '{"page":-0.0,"é":1}', "book.epub") == Settled(ACCEPTED)
    assert h.entry(job) is None
    (output,) = h.rows("output", job)
    assert (output["body"], output["ref"]) == ('{"page":-0.0,"é":1}', "book.epub")
    task = h.task_row(job)
    assert (task["state"], task["fence"], task["spent"], task["worker"], task["code"]) == ("completed", 1, 0, "w9", None)
    assert (task["started_at"], task["finished_at"]) == (claimed_at, h.now)
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["version"]) == ("completed", "succeeded", 2)
    assert (stored["finished_at"], stored["purge_at"]) == (h.now, h.now + RETENTION_MS)
    assert h.view(job).state == "completed"
    assert h.shows(job) == {"one": "completed"}


def test_t7_the_attempt_shown_is_the_one_that_completed(h: Harness) -> None:
    job = h.admit()
    h.fail(h.take())
    h.advance(1_000)
    h.wake()
    claimed = h.take()
    assert h.task(job).attempt == 2
    h.finish(claimed)
    assert (h.task(job).attempt, h.task_row(job)["spent"], h.task(job).code) == (2, 1, None)


def test_t7_a_finish_of_one_of_several_leaves_the_job_open(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    held = h.take_all()
    h.finish(held["one"])
    stored = h.job_row(job)
    assert (stored["state"], stored["open"], stored["required_open"], stored["version"]) == ("open", 1, 1, 2)
    assert (stored["finished_at"], stored["outcome"], stored["purge_at"]) == (None, None, None)
    assert h.view(job).state == "running"
    h.hand_back(held["two"])
    assert h.view(job).state == "running", "something of it has ended"


def test_t7_a_finish_at_the_very_instant_of_the_leases_end_is_refused(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.advance(LEASE_MS)
    before = h.snapshot()
    assert h.finish(claimed).verdict is STALE
    assert h.snapshot() == before
    assert h.sweep() == {"retried": 1}
    assert h.shows(job) == {"one": "retrying"}


def test_t7_a_finish_a_moment_before_the_leases_end_is_accepted(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.advance(LEASE_MS - 1)
    assert h.finish(claimed).verdict is ACCEPTED
    h.advance(1)
    assert h.sweep() == {}
    assert h.shows(job) == {"one": "completed"}


def test_t7_a_finish_at_the_deadline_is_refused(h: Harness) -> None:
    h.admit(a("one", deadline_ms=5_000))
    claimed = h.take()
    h.advance(5_000)
    assert h.finish(claimed).verdict is STALE
    assert h.sweep() == {"retried": 1}


def test_t7_a_replaced_worker_cannot_overwrite_the_new_result(h: Harness) -> None:
    job = h.admit()
    old = h.take(worker="old")
    h.lose(old)
    h.sweep()
    h.advance(60_000)
    h.wake()
    new = h.take(worker="new")
    assert h.finish(old, '"old"').verdict is STALE
    assert h.finish(new, '"new"').verdict is ACCEPTED
    before = h.snapshot()
    h.advance(1)
    assert h.finish(old, '"old"').verdict is STALE
    assert h.snapshot() == before
    assert [o["body"] for o in h.rows("output", job)] == ['"new"']
    assert h.task_row(job)["worker"] == "new"


def test_t7_another_holder_of_the_same_fence_is_refused(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.sql("update {outlast.queue_entry} set holder = 'somebody:else'")
    assert h.finish(claimed).verdict is STALE
    h.sql("update {outlast.queue_entry} set holder = :holder", holder=claimed.ref.holder)
    assert h.finish(claimed).verdict is ACCEPTED


def test_t7_a_finish_after_a_cancel_writes_nothing(h: Harness) -> None:
    job = h.admit(a("one"), a("two", after="one"))
    claimed = h.take()
    h.cancel(job)
    before = h.snapshot()
    assert h.finish(claimed).verdict is CANCELLED
    assert h.snapshot() == before
    assert h.rows("output", job) == []


def test_t7_one_stale_result_of_a_batch_leaves_the_others_whole(h: Harness) -> None:
    jobs = [h.admit(a(label)) for label in ("one", "two", "three")]
    held = h.take_all()
    h.hand_back(held["two"])
    settled = h.finish_all(*((held[label], f'"{label}"', None) for label in ("three", "two", "one")))
    assert [s.verdict for s in settled] == [ACCEPTED, STALE, ACCEPTED]
    assert [h.view(job).state for job in jobs] == ["completed", "running", "completed"]
    assert [h.rows("output", job)[0]["body"] for job in (jobs[0], jobs[2])] == ['"one"', '"three"']


def test_t7_j2_the_version_counts_once_for_all_results_of_a_batch(h: Harness) -> None:
    job, other = h.admit(a("one"), a("two"), a("three")), h.admit(a("four"))
    held = h.take_all()
    h.finish_all(*((held[label], "1", None) for label in ("one", "two", "four")))
    assert (h.job_row(job)["version"], h.job_row(job)["open"]) == (2, 1)
    assert (h.job_row(other)["version"], h.job_row(other)["open"]) == (2, 0)


def test_t2_a_child_is_opened_by_its_last_parent(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), a("join", after="one two", queue="print", priority=4))
    held = h.take_all()
    assert h.finish(held["one"]) == Settled(ACCEPTED)
    assert (h.shows(job)["join"], h.task_row(job, "join")["deps_left"], h.entry(job, "join")) == ("blocked", 1, None)
    h.advance(9)
    assert h.finish(held["two"]) == Settled(ACCEPTED, opened=1)
    entry = h.standing(job, "join")
    assert (entry["ready_at"], entry["fence"], entry["spent"], entry["queue"], entry["priority"]) == (h.now, 0, 0, "print", 4)
    assert h.shows(job)["join"] == "queued"
    assert h.take("join", queue="print").ref.fence == 1


def test_t2_both_parents_in_one_batch_open_the_child_once(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), a("join", after="one two"))
    held = h.take_all()
    settled = h.finish_all((held["one"], "1", None), (held["two"], "2", None))
    assert [s.verdict for s in settled] == [ACCEPTED, ACCEPTED]
    assert max(s.opened for s in settled) == 1
    assert h.job_row(job)["version"] == 2
    assert [c.label for c in h.claim()] == ["join"]


def test_t2_a_parent_opens_all_its_children(h: Harness) -> None:
    job = h.admit(a("one"), *(a(f"part {n}", after="one") for n in range(5)))
    assert h.finish(h.take()) == Settled(ACCEPTED, opened=5)
    assert sorted(h.take_all()) == [f"part {n}" for n in range(5)]
    assert h.job_row(job)["version"] == 2


def test_t2_a_diamond_runs_each_task_once(h: Harness) -> None:
    job = h.admit(a("top"), a("left", after="top"), a("right", after="top"), a("bottom", after="left right"))
    h.finish(h.take("top"))
    middle = h.take_all()
    assert sorted(middle) == ["left", "right"]
    h.finish(middle["right"])
    assert h.claim() == []
    h.finish(middle["left"])
    h.finish(h.take("bottom"))
    assert (h.view(job).state, h.job_row(job)["version"]) == ("completed", 5)


def test_t2_a_join_of_a_hundred_parts_is_opened_once(h: Harness) -> None:
    labels = [f"part{n}" for n in range(100)]
    job = h.admit(*(a(label) for label in labels), a("join", after=" ".join(labels)))
    held = h.take_all(limit=200)
    settled = [h.finish_all(*((held[label], "1", None) for label in labels[n : n + 7])) for n in range(0, 100, 7)]
    assert all(s.verdict is ACCEPTED for batch in settled for s in batch)
    assert h.standing(job, "join")["ready_at"] == h.now
    assert h.job_row(job)["version"] == 1 + len(settled)
    assert (h.view(job).total, h.view(job).open) == (101, 1)


def test_t2_a_child_of_a_job_that_is_due_later_waits_for_that_time(h: Harness) -> None:
    job = h.admit(a("one"), a("two", after="one"), due_in=1_000)
    h.advance(1_000)
    h.wake()
    h.finish(h.take())
    entry = h.standing(job, "two")
    assert (entry["ready_at"], entry["due_at"]) == (h.now, None)


def test_j2_a_finish_beside_an_open_question_leaves_the_job_in_need_of_attention(h: Harness) -> None:
    job = h.admit(a("one"), a("two", attempts=1))
    held = h.take_all()
    h.fail(held["two"])
    h.finish(held["one"])
    stored = h.job_row(job)
    assert (stored["state"], stored["open"], stored["attention"], stored["version"]) == ("needs_attention", 1, 1, 3)


@pytest.mark.parametrize("first", ["main", "extra"])
def test_j2_an_optional_failure_is_a_problem_of_the_outcome(h: Harness, first: str) -> None:
    job = h.admit(a("main"), a("extra", optional=True, attempts=1))
    held = h.take_all()
    for label in (first, "extra" if first == "main" else "main"):
        if label == "main":
            h.finish(held[label])
        else:
            h.fail(held[label])
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["problems"]) == ("completed", "succeeded_with_problems", 1)


def test_d4_an_output_never_changes(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.finish(claimed, '"first"')
    assert h.finish(claimed, '"second"').verdict is ACCEPTED
    assert [o["body"] for o in h.rows("output", job)] == ['"first"']
