"""An operator's replay of what needs attention: one new run, the same job, nothing stored is lost, and who did it is on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.harness import BOB, OPERATOR, OWNER, Harness
from contract.plans import a
from contract.test_client import ANN, APP, HANDLERS, OLGA, STRANGER, UNKNOWN, Caller
from outlast.client import operating
from outlast.domain.access import Scope
from outlast.domain.conflicts import AlreadyCompleted, Conflict
from outlast.domain.errors import Forbidden, Invalid, NotFound
from outlast.domain.model import Principal
from outlast.domain.work import Asking, Control
from outlast.store.programs import replay


def exhausted(h: Harness) -> str:
    """A job of four tasks: two are done, the third has used its attempts, the last one waits for it."""
    job = h.admit(a("one"), a("two"), a("three", attempts=1), a("four", after="three"))
    held = h.take_all()
    h.finish(held["one"])
    h.finish(held["two"])
    h.fail(held["three"])
    assert h.view(job).state == "needs_attention"
    return job


def test_a_replay_runs_the_task_once_more_and_repeats_nothing_that_is_done(h: Harness) -> None:
    job = exhausted(h)
    before = h.job_row(job)
    outputs = h.rows("output", job)
    assert h.replay(job) is Control.DONE
    stored = h.job_row(job)
    assert (stored["id"], stored["state"], stored["attention"], stored["version"]) == (job, "open", 0, before["version"] + 1)
    assert h.rows("output", job) == outputs
    assert [r["code"] for r in h.rows("attempt", job)] == ["broken"], "the past is kept"
    claimed = h.take("three")
    assert (claimed.ref.fence, claimed.spent) == (2, 0)
    h.finish(claimed)
    h.finish(h.take("four"))
    assert h.view(job).outcome == "succeeded"


def test_who_did_it_and_why_is_on_record(h: Harness) -> None:
    job = exhausted(h)
    h.replay(job, actor="olga", reason="The provider is back.")
    (row,) = h.rows_of("audit")
    assert [row[c] for c in ("tenant", "at", "actor", "action", "subject", "reason")] == [
        "acme",
        h.now,
        "olga",
        "replay",
        job,
        "The provider is back.",
    ]
    (question,) = h.rows("attention", job)
    assert (question["action"], question["actor"], question["resolved_at"]) == ("retry", "olga", h.now)


def test_a_second_replay_writes_nothing(h: Harness) -> None:
    job = exhausted(h)
    h.replay(job)
    before = h.snapshot()
    assert h.replay(job, n=2) is Control.REPEATED
    assert h.snapshot() == before
    h.take("three")
    before = h.snapshot()
    assert h.replay(job, n=3) is Control.REPEATED
    assert h.snapshot() == before


def test_the_owners_retry_after_it_is_a_success_and_another_decision_is_not(h: Harness) -> None:
    job = exhausted(h)
    question = h.question(job)
    h.replay(job)
    before = h.snapshot()
    assert h.act(job, "retry", attention=question) is Control.REPEATED
    assert h.act(job, "dismiss", attention=question) is Control.SUPERSEDED
    assert h.snapshot() == before


def test_what_fails_for_good_again_asks_again(h: Harness) -> None:
    job = exhausted(h)
    for n in (1, 2):
        h.replay(job, n=n)
        h.fail(h.take("three"))
        assert h.view(job).state == "needs_attention"
    assert [r["fence"] for r in h.rows("attempt", job)] == [1, 2, 3]
    assert len(h.rows_of("audit")) == 2


def test_all_that_offers_a_retry_is_taken_up_at_once(h: Harness) -> None:
    job = h.admit(a("one", attempts=1), a("two", optional=True), a("three"), a("four"))
    held = h.take_all()
    h.fail(held["one"])
    h.ask(held["two"], actions=("retry", "skip"))
    h.ask(held["three"], actions=("answer",))
    before = h.job_row(job)
    assert h.replay(job) is Control.DONE
    assert h.shows(job) == {"one": "queued", "two": "queued", "three": "needs_attention", "four": "running"}
    stored = h.job_row(job)
    assert (stored["attention"], stored["version"]) == (1, before["version"] + 1)
    before_again = h.snapshot()
    assert h.replay(job, n=2) is Control.NOT_OFFERED, "an answer is its owner's"
    assert h.snapshot() == before_again


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_what_is_final_stays_so(h: Harness, end: str) -> None:
    job = exhausted(h)
    if end == "cancelled":
        h.cancel(job)
    else:
        h.replay(job)
        h.finish(h.take("three"))
        h.finish(h.take("four"))
    before = h.snapshot()
    assert h.replay(job, n=2) is (Control.SUPERSEDED if end == "cancelled" else Control.ALREADY_COMPLETED)
    assert h.snapshot() == before


@pytest.mark.parametrize("scope", [BOB, Scope("elsewhere", None)])
def test_of_a_foreign_job_nothing_is_known(h: Harness, scope: Scope) -> None:
    job = exhausted(h)
    before = h.snapshot()
    assert h.replay(job, scope=scope) is Control.NOT_FOUND
    assert h.replay(UNKNOWN) is Control.NOT_FOUND
    assert h.snapshot() == before


def test_its_unique_key_stays_its_own(h: Harness) -> None:
    made = h.admission(a("one", attempts=1), unique="u")
    h.submit_unique(made)
    h.fail(h.take())
    h.replay(made.job_id)
    assert h.job_row(made.job_id)["active_key"] == "u"
    assert OPERATOR.owner is None
    assert made.owner == OWNER


def test_an_operator_goes_through_all_that_asks_page_by_page(h: Harness) -> None:
    jobs = [h.admit(a("one", attempts=1), a("two", attempts=1)) for _ in range(5)]
    for job in jobs:
        for held in [one for one in h.claim(limit=2) if one.ref.job_id == job]:
            h.fail(held)
    early = h.now
    h.advance(1_000)
    late = h.admit(a("one", attempts=1))
    h.fail(h.take("one"))

    def found(
        *, limit: int, tenant: str | None = "acme", kind: str | None = None, code: str | None = None, until: int = h.now
    ) -> list[str]:
        ids: list[str] = []
        after: tuple[str, str] | None = None
        while page := h.run(replay.asking(Asking(tenant, kind, code, until), after=after, limit=limit)):
            assert len(page) <= limit
            ids += [job for _, job in page]
            after = page[-1]
        return ids

    everything = sorted([*jobs, late])
    assert found(limit=2) == found(limit=100) == found(limit=3, tenant=None) == everything, "each once, though two tasks ask"
    assert found(limit=2, until=early) == sorted(jobs)
    assert found(limit=2, tenant="elsewhere") == found(limit=2, kind="other") == found(limit=2, code="other") == []
    assert found(limit=2, kind="kind", code="broken") == everything
    h.replay(jobs[0])
    h.cancel(jobs[1])
    assert found(limit=2) == sorted([*jobs[2:], late])


# -- the call -----------------------------------------------------------------------------------------------------


@pytest.fixture
def c(h: Harness) -> Caller:
    return Caller(h)


def failed(c: Caller) -> str:
    job = c.submit()
    (claimed,) = c.h.claim(handlers=HANDLERS)
    c.h.fail(claimed, permanent=True)
    return job


def replayed(c: Caller, job: str, who: Principal = OLGA, reason: Any = "The printer has paper.") -> Any:
    return c.h.drive(operating.replay_job(APP, job, who, reason))


def test_an_operator_replays_and_again_is_no_error(c: Caller) -> None:
    job = failed(c)
    seen = replayed(c, job)
    assert (seen.id, seen.state, seen.attention) == (job, "running", None)
    assert replayed(c, job) == seen
    (row,) = c.h.rows_of("audit")
    assert (row["actor"], row["reason"]) == ("olga", "The printer has paper.")


def test_nobody_but_an_operator_of_the_tenant(c: Caller) -> None:
    job = failed(c)
    before = c.h.snapshot()
    with pytest.raises(Forbidden):
        replayed(c, job, ANN)
    for who in (Principal("acme", "bob"), STRANGER, Principal("elsewhere", "x", roles=["operator"])):
        with pytest.raises(NotFound):
            replayed(c, job, who)
    with pytest.raises(NotFound):
        replayed(c, "no id")
    assert c.h.snapshot() == before


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 501, None, 7, "\ud800"])
def test_no_replay_without_a_reason(c: Caller, reason: Any) -> None:
    job = failed(c)
    before = c.h.snapshot()
    with pytest.raises(Invalid):
        replayed(c, job, reason=reason)
    assert c.h.snapshot() == before


def test_refusals_say_how_the_job_stands(c: Caller) -> None:
    cases: list[tuple[Callable[[str], Any], type[Conflict], str]] = [
        (c.cancel, Conflict, "attention_superseded"),
        (lambda job: (replayed(c, job), c.finish_all()), AlreadyCompleted, "already_completed"),
    ]
    for end, kind, code in cases:
        job = failed(c)
        end(job)
        with pytest.raises(kind) as refused:
            replayed(c, job)
        assert (refused.value.code, refused.value.job.final) == (code, True)


def test_what_only_the_owner_can_answer_is_not_offered(c: Caller) -> None:
    job = c.submit()
    (claimed,) = c.h.claim(handlers=HANDLERS)
    c.h.ask(claimed, "paper", ("answer",))
    with pytest.raises(Invalid) as refused:
        replayed(c, job)
    assert refused.value.code == "not_offered"
