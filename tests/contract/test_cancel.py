"""T15 and T16, J5, J8 and J9: nothing of a cancelled job is written by a task any more, and who still holds one is told."""

from __future__ import annotations

import pytest

from contract.harness import ACCEPTED, CANCELLED, LEASE_MS, OPERATOR, RETENTION_MS, STALE, Harness
from contract.plans import CAP_MS, a
from outlast.domain.work import Control, Settled, Verdict
from outlast.store.programs import steps


def test_t15_j5_a_cancel_ends_tasks_of_every_state(h: Harness) -> None:
    job = h.admit(
        a("done"),
        a("asks", attempts=1),
        a("retrying"),
        a("running"),
        a("queued"),
        a("extra", optional=True, attempts=1),
        a("more", optional=True, after="extra"),
        a("blocked", after="queued"),
    )
    held = h.take_all()
    h.finish(held["done"], '"kept"')
    h.fail(held["asks"])
    h.fail(held["retrying"])
    h.hand_back(held["queued"])
    h.fail(held["extra"])
    running, version = h.standing(job, "running"), h.job_row(job)["version"]
    h.advance(9)
    assert h.cancel(job) is Control.DONE
    assert h.shows(job) == {
        "done": "completed",
        "asks": "cancelled",
        "retrying": "cancelled",
        "running": "cancelled",
        "queued": "cancelled",
        "extra": "failed",
        "more": "skipped",
        "blocked": "cancelled",
    }
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["cancelled_by"], stored["version"]) == ("cancelled", "user", "ann", version + 1)
    assert (stored["cancelled_at"], stored["finished_at"], stored["purge_at"]) == (h.now, h.now, h.now + RETENTION_MS)
    assert [stored[c] for c in ("total", "open", "required_open", "attention", "problems")] == [8, 0, 0, 0, 2]
    assert h.rows("queue_entry", job) == [{**running, "revoked": 1}], "who holds one keeps fence and lease"
    assert [o["body"] for o in h.rows("output", job)] == ['"kept"']
    assert [(q["action"], q["actor"], q["resolved_at"]) for q in h.rows("attention", job)] == [("closed", "ann", h.now)]
    assert h.claim() == []


def test_t15_the_fence_and_the_attempts_of_an_entry_stay_with_its_task(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    held = h.take_all()
    h.fail(held["one"])
    h.cancel(job)
    assert [(h.task_row(job, label)["fence"], h.task_row(job, label)["spent"]) for label in ("one", "two")] == [(1, 1), (1, 0)]


def test_t15_nothing_is_written_after_it(h: Harness) -> None:
    job = h.admit(a("one"), a("two", after="one"))
    claimed = h.take()
    h.cancel(job)
    before = h.snapshot()
    assert h.finish(claimed).verdict is CANCELLED
    assert h.fail(claimed).verdict is CANCELLED
    assert h.give_up(h.failure(claimed)).verdict is CANCELLED
    assert h.ask(claimed).verdict is CANCELLED
    assert h.snooze(claimed).verdict is CANCELLED
    assert h.hand_back(claimed).verdict is CANCELLED
    assert h.renew(claimed, progress="still here") == [CANCELLED]
    assert h.run(steps.store_step(claimed.ref, "page", "1"))[0] is CANCELLED
    assert h.claim() == []
    assert h.wake().count == 0
    assert h.snapshot() == before


def test_t15_a_job_that_waits_for_its_time_is_cancelled_too(h: Harness) -> None:
    job = h.admit(due_in=1_000)
    h.cancel(job)
    h.advance(1_000)
    assert h.wake().count == 0
    assert (h.rows("queue_entry", job), h.view(job).stopping) == ([], False)


def test_t15_other_jobs_are_left_alone(h: Harness) -> None:
    job, other, same_id_elsewhere = h.admit(), h.admit(), h.admit(tenant="elsewhere")
    before = [h.job_row(other), h.job_row(same_id_elsewhere), h.standing(other), h.standing(same_id_elsewhere)]
    h.cancel(job)
    assert [h.job_row(other), h.job_row(same_id_elsewhere), h.standing(other), h.standing(same_id_elsewhere)] == before


def test_t16_j8_a_holder_that_stops_ends_the_stopping(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.cancel(job)
    version = h.job_row(job)["version"]
    assert (h.view(job).state, h.view(job).stopping) == ("cancelled", True)
    assert h.stop(claimed) == Settled(ACCEPTED)
    assert h.entry(job) is None
    assert (h.view(job).state, h.view(job).stopping) == ("cancelled", False)
    assert h.job_row(job)["version"] == version + 1


def test_t16_j8_the_version_counts_the_last_one_that_stops(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), a("three"))
    held = h.take_all()
    h.cancel(job)
    version = h.job_row(job)["version"]
    seen = []
    for label in ("two", "one", "three"):
        h.stop(held[label])
        seen.append((h.job_row(job)["version"] - version, h.view(job).stopping))
    assert seen == [(0, True), (0, True), (1, False)]


def test_t16_to_stop_again_is_accepted_without_a_write(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.cancel(job)
    h.stop(claimed)
    before = h.snapshot()
    assert h.stop(claimed).verdict is ACCEPTED
    assert h.snapshot() == before


def test_t16_a_holder_may_stop_after_its_lease_ended(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.cancel(job)
    h.advance(LEASE_MS * 2)
    assert h.stop(claimed).verdict is ACCEPTED
    assert h.sweep() == {}
    assert not h.view(job).stopping


def test_t16_a_holder_of_what_is_not_cancelled_has_nothing_to_stop(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    before = h.snapshot()
    assert h.stop(claimed).verdict is STALE
    assert h.snapshot() == before


def test_t16_an_old_holder_does_not_stop_for_the_new_one(h: Harness) -> None:
    job = h.admit()
    old = h.take()
    h.hand_back(old)
    h.take(worker="w2")
    h.cancel(job)
    before = h.snapshot()
    assert h.stop(old).verdict is STALE
    assert h.snapshot() == before


def test_j5_a_version_that_is_not_the_present_one_is_refused(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    held = h.take_all()
    h.finish(held["one"])
    before = h.snapshot()
    for version in (1, 3, -1, 2**53):
        assert h.cancel(job, version=version) is Control.STALE_VERSION
    assert h.snapshot() == before
    assert h.cancel(job, version=2) is Control.DONE


def test_j9_a_cancel_again_succeeds_without_a_write_whatever_version_it_names(h: Harness) -> None:
    job = h.admit()
    h.cancel(job, version=1)
    before = h.snapshot()
    for version in (1, 2, None, 77):
        assert h.cancel(job, version=version, actor="another") is Control.REPEATED
    assert h.snapshot() == before


def test_j9_a_completed_job_is_not_cancelled(h: Harness) -> None:
    job = h.admit()
    h.finish(h.take())
    before = h.snapshot()
    for version in (2, 1, None):
        assert h.cancel(job, version=version) is Control.ALREADY_COMPLETED
    assert h.snapshot() == before


def test_j9_a_final_job_moves_no_more(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True, attempts=1))
    held = h.take_all()
    h.ask(held["extra"])
    question = h.question(job)
    h.finish(held["main"])
    h.act(job, "skip")
    assert h.job_row(job)["state"] == "completed"
    before = h.snapshot()
    assert h.act(job, "retry", attention=question) is Control.SUPERSEDED
    assert h.act(job, "skip", attention=question) is Control.REPEATED
    assert h.cancel(job) is Control.ALREADY_COMPLETED
    h.advance(10**9)
    assert h.sweep() == {}
    assert h.snapshot() == before


def test_j5_an_operator_cancels_for_the_owner(h: Harness) -> None:
    job = h.admit()
    assert h.cancel(job, scope=OPERATOR, actor="olga") is Control.DONE
    assert h.job_row(job)["cancelled_by"] == "olga"


def test_j5_a_job_in_need_of_attention_is_cancelled(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    assert h.cancel(job) is Control.DONE
    assert (h.view(job).attention, h.view(job).attention_count) == (None, 0)


@pytest.mark.parametrize("late", ["finish", "fail", "ask"])
def test_t15_who_comes_first_wins_and_the_other_is_told(h: Harness, late: str) -> None:
    job = h.admit(a("one", attempts=1))
    claimed = h.take()
    verdict: Verdict = {"finish": h.finish, "fail": h.fail, "ask": h.ask}[late](claimed).verdict
    assert verdict is ACCEPTED
    expected = Control.ALREADY_COMPLETED if late == "finish" else Control.DONE
    assert h.cancel(job) is expected


def test_t15_a_retry_that_was_accepted_stays_so_after_the_cancel(h: Harness) -> None:
    """Its commit was unknown to its holder, who asks again after the job was cancelled."""
    job = h.admit()
    claimed = h.take()
    h.fail(claimed)
    h.cancel(job)
    before = h.snapshot()
    assert h.fail(claimed).verdict is ACCEPTED
    h.advance(CAP_MS)
    assert h.sweep() == {}
    assert h.snapshot() == before
