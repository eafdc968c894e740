"""Section 6: zero rows, the one follow-up read, and the verdict. Each write of a holder in each situation that is not its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contract.harness import ACCEPTED, ANN, BOB, CANCELLED, STALE, STRANGER, Harness
from contract.plans import a
from outlast.domain.work import Claimed, Control, Verdict
from outlast.store.programs import claims, steps

Write = Callable[[Harness, Claimed], Verdict]

WRITES: dict[str, Write] = {
    "finish": lambda h, c: h.finish(c).verdict,
    "retry": lambda h, c: h.fail(c).verdict,
    "give_up": lambda h, c: h.give_up(h.failure(c)).verdict,
    "permanent": lambda h, c: h.fail(c, permanent=True).verdict,
    "ask": lambda h, c: h.ask(c).verdict,
    "snooze": lambda h, c: h.snooze(c).verdict,
    "hand_back": lambda h, c: h.hand_back(c).verdict,
    "renew": lambda h, c: h.renew(c)[0],
    "step": lambda h, c: h.run(steps.store_step(c.ref, "late", "1"))[0],
}


def cancelled(h: Harness, job: str, claimed: Claimed) -> None:
    h.cancel(job)


def cancelled_and_stopped(h: Harness, job: str, claimed: Claimed) -> None:
    h.cancel(job)
    h.stop(claimed)


def cancelled_and_swept(h: Harness, job: str, claimed: Claimed) -> None:
    h.cancel(job)
    h.lose(claimed)
    h.sweep()


def cancelled_after_its_end(h: Harness, job: str, claimed: Claimed) -> None:
    h.lose(claimed)
    h.cancel(job)


def ended(h: Harness, job: str, claimed: Claimed) -> None:
    h.lose(claimed)


def swept(h: Harness, job: str, claimed: Claimed) -> None:
    h.lose(claimed)
    h.sweep()


def swept_and_woken(h: Harness, job: str, claimed: Claimed) -> None:
    swept(h, job, claimed)
    h.advance(60_000)
    h.wake()


def replaced(h: Harness, job: str, claimed: Claimed) -> None:
    swept_and_woken(h, job, claimed)
    h.take(worker="new")


def replaced_and_finished(h: Harness, job: str, claimed: Claimed) -> None:
    swept_and_woken(h, job, claimed)
    h.finish(h.take(worker="new"))


def replaced_and_failed(h: Harness, job: str, claimed: Claimed) -> None:
    swept_and_woken(h, job, claimed)
    h.fail(h.take(worker="new"))


def taken_by_another_holder(h: Harness, job: str, claimed: Claimed) -> None:
    h.sql("update {outlast.queue_entry} set holder = 'somebody:else' where job_id = {uuid:job}", job=job)


def taken_under_another_fence(h: Harness, job: str, claimed: Claimed) -> None:
    h.sql("update {outlast.queue_entry} set fence = fence + 1 where job_id = {uuid:job}", job=job)


def revoked_by_hand(h: Harness, job: str, claimed: Claimed) -> None:
    """As a cancel leaves it; but its job is still open, so that the entry's own guard is all there is."""
    h.exempt = "only a part of a cancel is done by hand"
    h.sql("update {outlast.queue_entry} set revoked = true where job_id = {uuid:job}", job=job)


def gone(h: Harness, job: str, claimed: Claimed) -> None:
    h.exempt = "a part of the job is deleted by hand, as a purge will"
    for table in h.backend.tables():
        h.sql(f"delete from {{outlast.{table}}}")


SITUATIONS: dict[Callable[[Harness, str, Claimed], None], Verdict] = {
    cancelled: CANCELLED,
    cancelled_and_stopped: CANCELLED,
    cancelled_and_swept: CANCELLED,
    cancelled_after_its_end: CANCELLED,
    ended: STALE,
    swept: STALE,
    swept_and_woken: STALE,
    replaced: STALE,
    replaced_and_finished: STALE,
    replaced_and_failed: STALE,
    revoked_by_hand: CANCELLED,
    taken_by_another_holder: STALE,
    taken_under_another_fence: STALE,
    gone: STALE,
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("situation", "verdict"), SITUATIONS.items(), ids=lambda v: getattr(v, "__name__", None) or v.value)
def test_verdict_of_a_holder_whose_claim_is_not_its_own_any_more(
    h: Harness, situation: Callable[[Harness, str, Claimed], None], verdict: Verdict, write: str
) -> None:
    job = h.admit(a("one"), a("child", after="one"))
    claimed = h.take()
    situation(h, job, claimed)
    before = h.snapshot()
    assert WRITES[write](h, claimed) is verdict
    assert h.snapshot() == before, "a refused write leaves no trace"


@pytest.mark.parametrize("write", ["finish", "retry", "give_up", "ask", "snooze", "hand_back"])
def test_verdict_of_a_write_whose_commit_was_unknown_is_accepted_once(h: Harness, write: str) -> None:
    job = h.admit(a("one"), a("two"), a("child", after="one"))
    claimed = h.take_all()["one"]
    assert WRITES[write](h, claimed) is ACCEPTED
    before = h.snapshot()
    assert WRITES[write](h, claimed) is ACCEPTED
    assert h.snapshot() == before, "nothing is counted twice"
    assert h.job_row(job)["version"] <= 2


@pytest.mark.parametrize("write", ["give_up", "ask"])
def test_verdict_of_an_ending_is_accepted_also_after_the_owner_has_decided(h: Harness, write: str) -> None:
    job = h.admit()
    claimed = h.take()
    WRITES[write](h, claimed)
    h.act(job, "retry")
    before = h.snapshot()
    assert WRITES[write](h, claimed) is ACCEPTED
    assert h.snapshot() == before


@pytest.mark.parametrize(("first", "second"), [("snooze", "retry"), ("hand_back", "ask"), ("retry", "snooze"), ("retry", "give_up")])
def test_verdict_of_another_ending_than_the_one_that_was_accepted(h: Harness, first: str, second: str) -> None:
    """A holder ends its attempt once; what it says afterwards is accepted where it is the same, else stale."""
    h.admit()
    claimed = h.take()
    WRITES[first](h, claimed)
    before = h.snapshot()
    verdict = WRITES[second](h, claimed)
    assert verdict is (ACCEPTED if (first, second) == ("retry", "give_up") else STALE)
    assert h.snapshot() == before


def test_verdict_of_a_claim_whose_commit_was_unknown_is_what_its_holder_has(h: Harness) -> None:
    job = h.admit(a("one", attempts=2))
    h.fail(h.take())
    h.advance(60_000)
    h.wake()
    claimed = h.take()
    (found,) = h.run(claims.claimed_by("default", claimed.ref.holder))
    assert found == claimed
    assert h.finish(found).verdict is ACCEPTED
    assert h.task(job).attempt == 2


@pytest.mark.parametrize("scope", [BOB, STRANGER], ids=["other owner", "other tenant"])
def test_verdict_on_a_job_that_is_anothers_is_not_found(h: Harness, scope: object) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    question = h.question(job)
    before = h.snapshot()
    assert h.cancel(job, scope=scope) is Control.NOT_FOUND  # type: ignore[arg-type]
    assert h.act(job, "retry", attention=question, scope=scope) is Control.NOT_FOUND  # type: ignore[arg-type]
    assert h.snapshot() == before


def test_verdict_on_a_job_that_nobody_has_is_not_found(h: Harness) -> None:
    nobody = "00000000-0000-7000-8000-000000000000"
    assert h.cancel(nobody) is Control.NOT_FOUND
    assert h.act(nobody, "retry", attention="0.1") is Control.NOT_FOUND
    assert h.cancel(nobody, scope=ANN, version=3) is Control.NOT_FOUND
