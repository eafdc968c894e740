"""T11 and T17 to T20, J4, J7 and J9: a question to the owner, and the one decision that it takes."""

from __future__ import annotations

import pytest

from contract.harness import ACCEPTED, ANN, OPERATOR, WINDOW_MS, Harness
from contract.plans import CAP_MS, a
from outlast.domain.work import Control, Settled
from outlast.store.programs import steps


def asked(h: Harness, *tasks: object, label: str = "one") -> str:
    """A job whose task `label` asks."""
    job = h.admit(*tasks)  # type: ignore[arg-type]
    h.ask(h.take_all()[label])
    return job


def test_t11_a_question_uses_no_attempt(h: Harness) -> None:
    job = h.admit(a("one", optional=False))
    claimed = h.take(worker="w9")
    h.advance(4)
    assert h.ask(claimed, "which", ("retry", "answer")).verdict is ACCEPTED
    assert h.entry(job) is None
    task = h.task_row(job)
    assert (task["state"], task["spent"], task["fence"], task["code"], task["finished_at"]) == ("needs_attention", 0, 1, "which", None)
    (attempt,) = h.rows("attempt", job)
    assert (attempt["number"], attempt["fence"], attempt["code"], attempt["worker"]) == (1, 1, "which", "w9")
    (question,) = h.rows("attention", job)
    assert (question["id"], question["actions"], question["until"]) == ("0.1", "retry answer dismiss", h.now + WINDOW_MS)
    stored = h.job_row(job)
    assert (stored["state"], stored["attention"], stored["version"]) == ("needs_attention", 1, 2)
    assert h.task(job).attempt == 0


def test_t11_the_id_of_a_question_is_its_task_and_fence(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    for _ in range(3):
        h.hand_back(h.take_all()["two"]) if h.entry(job, "one") is None else [h.hand_back(c) for c in h.claim()]
    h.ask(h.take_all()["two"])
    assert h.question(job) == "1.4"


def test_t11_an_optional_task_may_ask_too(h: Harness) -> None:
    job = asked(h, a("main"), a("extra", optional=True), label="extra")
    assert h.view(job).state == "needs_attention"
    assert h.rows("attention", job)[0]["actions"] == "retry answer skip dismiss"


def test_t11_to_skip_is_offered_for_optional_work_only(h: Harness) -> None:
    job = asked(h)
    assert h.rows("attention", job)[0]["actions"] == "retry answer dismiss"
    h.sql("update {outlast.attention} set actions = 'skip dismiss'")
    before = h.snapshot()
    assert h.act(job, "skip") is Control.NOT_OFFERED
    assert h.snapshot() == before


def test_t17_j4_a_retry_begins_the_attempts_anew_and_the_fence_goes_on(h: Harness) -> None:
    job = h.admit(a("one", attempts=2))
    h.fail(h.take())
    h.advance(CAP_MS)
    h.wake()
    h.fail(h.take())
    version = h.job_row(job)["version"]
    question = h.question(job)
    h.advance(11)
    assert h.act(job, "retry") is Control.DONE
    entry = h.standing(job)
    assert (entry["fence"], entry["spent"], entry["ready_at"], entry["first_failed_at"]) == (2, 0, h.now, None)
    (row,) = h.rows("attention", job)
    assert (row["id"], row["resolved_at"], row["action"], row["actor"]) == (question, h.now, "retry", "ann")
    stored = h.job_row(job)
    assert (stored["state"], stored["attention"], stored["version"]) == ("open", 0, version + 1)
    assert h.shows(job) == {"one": "queued"}
    claimed = h.take()
    assert (claimed.ref.fence, claimed.spent) == (3, 0)
    assert h.fail(claimed).gave_up is False
    assert [(r["fence"], r["number"]) for r in h.rows("attempt", job)] == [(1, 1), (2, 2), (3, 1)]


def test_t17_a_job_that_was_due_later_is_retried_at_once(h: Harness) -> None:
    job = h.admit(a("one", attempts=1), due_in=1_000)
    h.advance(1_000)
    h.wake()
    h.fail(h.take())
    h.act(job, "retry")
    assert h.standing(job)["ready_at"] == h.now


def test_t17_an_operator_may_retry(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    assert h.act(job, "retry", scope=OPERATOR) is Control.DONE
    assert h.rows("attention", job)[0]["actor"] == "operator"


def test_t17_a_second_exhaustion_asks_again_under_another_id(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    first = h.question(job)
    h.act(job, "retry")
    h.fail(h.take())
    second = h.question(job)
    assert (first, second) == ("0.1", "0.2")
    assert h.act(job, "retry", attention=first, request="retry None") is Control.REPEATED
    assert h.view(job).state == "needs_attention"
    assert h.act(job, "retry", attention=second) is Control.DONE


def test_t18_an_answer_is_stored_for_the_next_attempt(h: Harness) -> None:
    job = asked(h)
    question = h.question(job)
    assert h.act(job, "answer", answer='{"paper":"A4"}') is Control.DONE
    (step,) = h.rows("step", job)
    assert (step["name"], step["body"], step["no"]) == (f"answer/{question}", '{"paper":"A4"}', 0)
    claimed = h.take()
    assert (claimed.ref.fence, claimed.spent) == (2, 0)
    assert h.run(steps.answer_of(claimed.ref, "which")) == '{"paper":"A4"}'
    assert h.run(steps.answer_of(claimed.ref, "another")) is None
    assert h.rows("attention", job)[0]["action"] == "answer"


def test_t18_the_last_answer_counts(h: Harness) -> None:
    job = asked(h)
    h.act(job, "answer", answer='"first"')
    h.advance(5)
    h.ask(h.take())
    assert h.run(steps.answer_of(h_ref(h, job), "which")) == '"first"'
    h.act(job, "answer", answer='"second"')
    assert h.run(steps.answer_of(h_ref(h, job), "which")) == '"second"'
    assert [s["name"] for s in h.rows("step", job)] == ["answer/0.1", "answer/0.2"]


def test_t19_a_skip_ends_optional_work_and_what_hangs_on_it(h: Harness) -> None:
    job = asked(h, a("extra", optional=True), a("more", optional=True, after="extra"), a("join", after="extra"), a("main"), label="extra")
    h.advance(3)
    assert h.act(job, "skip") is Control.DONE
    assert h.shows(job) == {"extra": "skipped", "more": "skipped", "join": "queued", "main": "running"}
    assert h.task_row(job, "extra")["finished_at"] == h.now
    stored = h.job_row(job)
    assert (stored["state"], stored["problems"], stored["attention"], stored["open"], stored["version"]) == ("open", 2, 0, 2, 3)
    assert h.rows("attention", job)[0]["action"] == "skip"


def test_t19_j4_a_skip_can_end_the_job(h: Harness) -> None:
    job = h.admit(a("main"), a("extra", optional=True))
    held = h.take_all()
    h.finish(held["main"])
    h.ask(held["extra"])
    h.advance(8)
    assert h.act(job, "skip") is Control.DONE
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["finished_at"]) == ("completed", "succeeded_with_problems", h.now)


def test_t20_j7_a_dismiss_abandons_the_whole_job(h: Harness) -> None:
    job = asked(h, a("one"), a("two"), a("child", after="two"))
    held = h.standing(job, "two")
    h.advance(6)
    assert h.act(job, "dismiss") is Control.DONE
    stored = h.job_row(job)
    assert (stored["state"], stored["outcome"], stored["cancelled_by"]) == ("cancelled", "abandoned", "ann")
    assert (stored["cancelled_at"], stored["finished_at"], stored["version"]) == (h.now, h.now, 3)
    assert h.shows(job) == {"one": "cancelled", "two": "cancelled", "child": "cancelled"}
    assert h.standing(job, "two") == {**held, "revoked": 1}
    assert h.rows("attention", job)[0]["action"] == "dismiss"
    assert h.view(job).stopping


def test_t20_optional_work_may_be_dismissed_too(h: Harness) -> None:
    job = asked(h, a("main"), a("extra", optional=True), label="extra")
    assert h.act(job, "dismiss") is Control.DONE
    assert h.job_row(job)["outcome"] == "abandoned"


@pytest.mark.parametrize("action", ["retry", "answer", "skip", "dismiss"])
def test_act_the_same_request_again_is_accepted_without_a_write(h: Harness, action: str) -> None:
    job = asked(h, a("main"), a("extra", optional=True), label="extra")
    question = h.question(job)
    answer = '"A4"' if action == "answer" else None
    assert h.act(job, action, attention=question, answer=answer) is Control.DONE
    before = h.snapshot()
    h.advance(1)
    assert h.act(job, action, attention=question, answer=answer) is Control.REPEATED
    assert h.snapshot() == before


def test_act_another_decision_on_a_settled_question_is_superseded(h: Harness) -> None:
    job = asked(h, a("main"), a("extra", optional=True), label="extra")
    question = h.question(job)
    h.act(job, "answer", attention=question, answer='"A4"')
    before = h.snapshot()
    assert h.act(job, "answer", attention=question, answer='"A5"') is Control.SUPERSEDED
    assert h.act(job, "skip", attention=question) is Control.SUPERSEDED
    assert h.act(job, "dismiss", attention=question) is Control.SUPERSEDED
    assert h.snapshot() == before


def test_act_an_action_that_is_not_offered_is_refused(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    before = h.snapshot()
    assert h.act(job, "answer", answer='"A4"') is Control.NOT_OFFERED
    assert h.act(job, "skip") is Control.NOT_OFFERED
    assert h.snapshot() == before


@pytest.mark.parametrize("attention", ["0.9", "9.1", "nothing", ""])
def test_act_on_a_question_that_nobody_asked_is_superseded(h: Harness, attention: str) -> None:
    job = asked(h)
    before = h.snapshot()
    assert h.act(job, "retry", attention=attention or "-") is Control.SUPERSEDED
    assert h.snapshot() == before


def test_j9_act_after_a_cancel_is_superseded(h: Harness) -> None:
    job = asked(h)
    question = h.question(job)
    h.cancel(job)
    assert h.rows("attention", job)[0]["action"] == "closed"
    before = h.snapshot()
    assert h.act(job, "retry", attention=question) is Control.SUPERSEDED
    assert h.act(job, "dismiss", attention=question) is Control.SUPERSEDED
    assert h.snapshot() == before


def test_j4_one_of_two_questions_leaves_the_job_in_need_of_attention(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    held = h.take_all()
    h.ask(held["one"])
    h.advance(5)
    h.ask(held["two"], "what")
    seen = h.view(job)
    assert (seen.attention_count, seen.attention and seen.attention.id) == (2, "0.1")
    h.act(job, "retry", attention="0.1")
    seen = h.view(job)
    assert (seen.state, seen.attention_count, seen.attention and seen.attention.id) == ("needs_attention", 1, "1.1")
    h.act(job, "retry", attention="1.1")
    assert h.view(job).state == "running"
    assert [h.job_row(job)[c] for c in ("version", "attention", "open")] == [5, 0, 2]


def test_t11_the_history_of_old_attempts_is_kept(h: Harness) -> None:
    job = asked(h)
    h.act(job, "retry")
    h.finish(h.take())
    past = h.recovery(job)
    assert [(attempt.number, attempt.fence, attempt.code) for attempt in past.attempts] == [(1, 1, "which"), (1, 2, None)]
    assert past.questions == ()


def h_ref(h: Harness, job: str) -> object:
    """A reference to the job's first task, whoever holds it."""
    from outlast.domain.work import TaskRef  # noqa: PLC0415

    return TaskRef(ANN.tenant, job, 0, 1, "")


def test_t18_a_repeated_question_of_one_attempt_asks_once(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    assert h.ask(claimed).verdict is ACCEPTED
    before = h.snapshot()
    assert h.ask(claimed) == Settled(ACCEPTED)
    assert h.snapshot() == before
    assert len(h.rows("attention", job)) == 1
