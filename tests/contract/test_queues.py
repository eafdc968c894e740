"""Queues: a pause stops claims and nothing else, survives everything but a resume, and is on record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from contract.harness import Harness
from contract.plans import a
from contract.test_client import ANN, OLGA, Caller
from outlast.client import operating
from outlast.domain.errors import Forbidden, Invalid
from outlast.domain.model import Principal, QueueView
from outlast.domain.work import Control, Pause, Settled, Verdict
from outlast.store.programs import completion, queues


def pause(h: Harness, name: str = "default", *, n: int = 1, actor: str = "olga", reason: str = "The printer is down.") -> Control:
    return h.run(queues.pause(name, audit_id=audit(n), tenant="acme", actor=actor, reason=reason))


def resume(h: Harness, name: str = "default", *, n: int = 2, actor: str = "olga", reason: str = "It prints.") -> Control:
    return h.run(queues.resume(name, audit_id=audit(n), tenant="acme", actor=actor, reason=reason))


def audit(n: int) -> str:
    return f"00000000-0000-7000-8000-00000000000{n}"


def test_t5_c4_nothing_of_a_paused_queue_is_claimed_until_it_is_resumed(h: Harness) -> None:
    h.admit()
    assert pause(h) is Control.DONE
    h.admit(key="k")
    before = h.snapshot()
    assert h.claim() == []
    assert h.snapshot() == before
    assert resume(h) is Control.DONE
    assert len(h.claim()) == 2


def test_other_queues_go_on(h: Harness) -> None:
    h.admit(a("one", queue="images"), a("two", queue="mail"))
    pause(h, "images")
    assert h.claim(queue="images") == []
    assert [c.label for c in h.claim(queue="mail")] == ["two"]


def test_a_name_is_compared_to_the_byte(h: Harness) -> None:
    h.admit(a("one", queue="images"))
    for name in ("Images", "image", "images."):
        pause(h, name)
    assert [c.label for c in h.claim(queue="images")] == ["one"]


def test_what_runs_goes_on(h: Harness) -> None:
    h.admit(a("one"), a("two"), a("three", after="one"))
    held = h.take_all()
    pause(h)
    assert h.renew(*held.values()) == [Verdict.ACCEPTED] * 2
    assert h.finish(held["one"]) == Settled(Verdict.ACCEPTED, opened=1), "what it opens waits"
    assert h.hand_back(held["two"]).verdict is Verdict.ACCEPTED
    assert h.claim() == []
    resume(h)
    assert sorted(h.take_all()) == ["three", "two"]


def test_retries_and_what_falls_due_wait(h: Harness) -> None:
    h.admit()
    h.admit(a("later"), due_in=5_000)
    assert h.run(completion.retry(h.failure(h.take()), 1_000)).verdict is Verdict.ACCEPTED
    pause(h)
    h.advance(10_000)
    assert h.wake().count == 2
    assert h.claim() == []
    resume(h)
    assert sorted(h.take_all()) == ["later", "one"]


def test_what_a_lost_worker_held_waits_too(h: Harness) -> None:
    h.admit()
    held = h.take()
    pause(h)
    h.lose(held)
    assert h.sweep() == {"retried": 1}
    h.advance(600_000)
    h.wake()
    assert h.claim() == []
    resume(h)
    assert h.take().spent == 1


def test_a_cancel_needs_no_claim(h: Harness) -> None:
    job = h.admit()
    pause(h)
    assert h.cancel(job) is Control.DONE
    assert h.view(job).state == "cancelled"


def test_a_queue_can_be_paused_before_anything_is_in_it(h: Harness) -> None:
    assert pause(h, "new") is Control.DONE
    h.admit(a("one", queue="new"))
    assert h.claim(queue="new") == []


def test_again_changes_nothing_and_says_so(h: Harness) -> None:
    assert resume(h, n=9) is Control.REPEATED
    assert pause(h) is Control.DONE
    h.advance(1_000)
    before = h.snapshot()
    assert pause(h, n=3, actor="bob", reason="Also.") is Control.REPEATED
    assert h.snapshot() == before
    assert resume(h) is Control.DONE
    before = h.snapshot()
    assert resume(h, n=4) is Control.REPEATED
    assert h.snapshot() == before
    assert pause(h, n=5, actor="bob") is Control.DONE
    assert [row["paused_by"] for row in h.rows_of("queue")] == ["bob"]


@pytest.mark.parametrize("change", [pause, resume])
def test_the_very_call_again_was_its_own_doing(h: Harness, change: Any) -> None:
    """As after a commit whose answer was lost."""
    if change is resume:
        pause(h, n=7)
    assert change(h) is Control.DONE
    before = h.snapshot()
    assert change(h) is Control.DONE
    assert h.snapshot() == before


def test_who_did_it_and_why_is_on_record(h: Harness) -> None:
    pause(h)
    paused_at = h.now
    h.advance(60_000)
    resume(h, actor="bob")
    rows = sorted(h.rows_of("audit"), key=lambda row: row["at"])
    assert [[row[c] for c in ("tenant", "at", "actor", "action", "subject", "reason")] for row in rows] == [
        ["acme", paused_at, "olga", "pause_queue", "default", "The printer is down."],
        ["acme", h.now, "bob", "resume_queue", "default", "It prints."],
    ]


def test_how_the_queues_stand(h: Harness) -> None:
    h.admit(a("one", queue="images"))
    pause(h, "mail")
    pause(h, "images", n=2)
    rows, pauses = h.run(queues.stand())
    assert [(row.queue, row.ready) for row in rows] == [("images", 1)]
    assert pauses == [Pause(name, h.now, "olga", "The printer is down.") for name in ("images", "mail")]


# -- the calls ----------------------------------------------------------------------------------------------------


@pytest.fixture
def c(h: Harness) -> Caller:
    return Caller(h)


def test_an_operator_pauses_and_resumes(c: Caller) -> None:
    c.submit()
    at = datetime.fromtimestamp(c.h.now / 1000, tz=UTC)
    change = c.h.drive(operating.pause_queue("default", OLGA, "The printer is down."))
    standing = QueueView("default", 1, 0, 0, 0.0, at, "olga", "The printer is down.")
    assert (change.queue, change.changed) == (standing, True)
    again = c.h.drive(operating.pause_queue("default", Principal("elsewhere", "bob", roles=["operator"]), "Also."))
    assert (again.queue, again.changed) == (standing, False)
    c.h.advance(2_500)
    (seen,) = c.h.drive(operating.list_queues(OLGA))
    assert (seen.name, seen.oldest, seen.paused_by) == ("default", 2.5, "olga")
    resumed = c.h.drive(operating.resume_queue("default", OLGA, "It prints."))
    assert (resumed.queue, resumed.changed) == (QueueView("default", 1, 0, 0, 2.5), True)
    assert not c.h.drive(operating.resume_queue("default", OLGA, "It prints.")).changed


def test_a_paused_queue_is_listed_with_nothing_in_it(c: Caller) -> None:
    at = datetime.fromtimestamp(c.h.now / 1000, tz=UTC)
    c.h.drive(operating.pause_queue("new", OLGA, "Not yet."))
    assert c.h.drive(operating.list_queues(OLGA)) == (QueueView("new", 0, 0, 0, None, at, "olga", "Not yet."),)
    c.h.drive(operating.resume_queue("new", OLGA, "Now."))
    assert c.h.drive(operating.list_queues(OLGA)) == ()


@pytest.mark.parametrize("who", [ANN, Principal("acme", "ann", roles=["editor", "Operator"])])
def test_nobody_but_operators(c: Caller, who: Principal) -> None:
    before = c.h.snapshot()
    for call in (operating.pause_queue("default", who, "x"), operating.resume_queue("default", who, "x"), operating.list_queues(who)):
        with pytest.raises(Forbidden):
            c.h.drive(call)
    assert c.h.snapshot() == before


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 501, None, 7, "\ud800"])
@pytest.mark.parametrize("call", [operating.pause_queue, operating.resume_queue])
def test_no_change_without_a_reason(c: Caller, call: Any, reason: Any) -> None:
    with pytest.raises(Invalid):
        c.h.drive(call("default", OLGA, reason))
    assert c.h.rows_of("queue") == c.h.rows_of("audit") == []


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, None, 7, "a\n", "a;drop", "\ud800", "*"])
@pytest.mark.parametrize("call", [operating.pause_queue, operating.resume_queue])
def test_no_change_of_what_is_no_queue(c: Caller, call: Any, name: Any) -> None:
    with pytest.raises(Invalid):
        c.h.drive(call(name, OLGA, "x"))
    assert c.h.rows_of("queue") == c.h.rows_of("audit") == []
