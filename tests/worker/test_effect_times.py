"""When the call of an effect may begin, and what is reported of one that did not: the logic alone, with a clock that stands still."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from outlast import Refused, Retry, Stopped
from outlast.domain.effects import EffectRef, Intent, Judged, Met
from outlast.domain.work import Claimed, TaskRef
from outlast.store.program import Operation, Statement
from outlast.worker import effects, hold
from outlast.worker.attempt_state import AttemptState
from outlast.worker.effects import Wanted, effect
from outlast.worker.hold import Hold
from outlast.worker.outside import Calling, Made, Reporting

TIMEOUT = 20.0
LEASE = 500.0
REF = TaskRef("acme", "00000000-0000-7000-8000-000000000001", 0, 2, "w1:1")
EFFECT = EffectRef("acme", REF.job_id, "Mail", "mail", "hash")
MINE = Intent(REF.job_id, 0, 2)
BEFORE = Intent(REF.job_id, 0, 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """`clock.now` is the monotonic clock of the attempt."""
    held = SimpleNamespace(now=1000.0)
    held.monotonic = lambda: held.now
    monkeypatch.setattr(effects, "time", held)
    monkeypatch.setattr(hold, "time", held)
    return held


def attempt() -> AttemptState:
    claimed = Claimed(REF, 0, "post@1:mail", "default", 600_000, 0, "Mail", None, "{}", "{}", "ann", "c1")
    state: Any = object.__new__(AttemptState)
    state.hold = Hold(claimed, sent_at=1000.0, lease=LEASE)
    state.max_output, state.effects, state.doubts = 10_000, set(), []
    return cast("AttemptState", state)


def send(key: str) -> str:
    return key


def wanted(*, idempotent: bool = False) -> Wanted:
    return Wanted("mail", send, None, idempotent, None, TIMEOUT, blocking=True)


def met(state: Any, intent: Intent = MINE) -> Met:
    return Met(EFFECT, intent, state, "key")


def asked(doing: object) -> str:
    """Which operation the ledger is asked for."""
    assert isinstance(doing, Operation)
    return doing.name


def reported(doing: object) -> str:
    """What is reported."""
    assert isinstance(doing, Reporting)
    statement = next(doing.operation.start())
    assert isinstance(statement, Statement)
    return str(statement.params["state"])


def test_a_call_has_what_is_left_of_its_time_since_its_intent_was_asked_for(clock: SimpleNamespace) -> None:
    run = effect(attempt(), wanted())
    assert asked(next(run)) == "begin"
    clock.now += 7
    calling = run.send(met("intended"))
    assert isinstance(calling, Calling)
    assert calling.timeout == TIMEOUT - 7


@pytest.mark.parametrize("late", [11.0, 25.0])
def test_a_call_that_would_begin_too_late_is_begun_anew(clock: SimpleNamespace, late: float) -> None:
    """The answer of the store took so long that who meets the intent would look for the call while it is still under way."""
    run = effect(attempt(), wanted())
    assert asked(next(run)) == "begin"
    clock.now += late
    assert reported(run.send(met("intended"))) == "refused"
    assert asked(run.send(Made(Judged("refused", None)))) == "begin"
    calling = run.send(met("intended"))
    assert isinstance(calling, Calling)
    assert calling.timeout == TIMEOUT


def test_e4_no_call_begins_without_a_lease(clock: SimpleNamespace) -> None:
    """By this process's own clock, whoever has told it or not: another may have the task by now."""
    run = effect(attempt(), wanted())
    clock.now += LEASE - 1
    assert asked(next(run)) == "begin"
    clock.now += 1
    assert reported(run.send(met("intended"))) == "refused"
    with pytest.raises(Stopped) as stopped:
        run.send(Made(Judged("refused", None)))
    assert stopped.value.reason == "replaced"


def repeating(clock: SimpleNamespace) -> Any:
    """An idempotent effect that an earlier claim left without an outcome, at the moment at which it asks to repeat it."""
    run = effect(attempt(), wanted(idempotent=True))
    assert asked(next(run)) == "begin"
    assert asked(run.send(met("unknown", BEFORE))) == "retake"
    return run


def test_a_repeat_that_was_not_begun_says_nothing_of_the_earlier_call(clock: SimpleNamespace) -> None:
    run = repeating(clock)
    clock.now += 11
    assert reported(run.send(met("intended"))) == "unknown"
    assert asked(run.send(Made(Judged("unknown", None)))) == "retake"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Made(error=Retry("busy")), "unknown"),
        (Made(error=TypeError(), never=True), "unknown"),
        (Made(error=Refused("no_such_address")), "refused"),
        (Made(error=ConnectionError()), "unknown"),
    ],
    ids=["turned away", "not made", "refused by who knows the key", "lost"],
)
def test_what_a_repeat_raises_says_of_the_earlier_call(clock: SimpleNamespace, made: Made, said: str) -> None:
    run = repeating(clock)
    assert isinstance(run.send(met("intended")), Calling)
    assert reported(run.send(made)) == said


@pytest.mark.parametrize("made", [Made(error=Retry("busy")), Made(error=TypeError(), never=True), Made(error=Refused("gone"))])
def test_a_first_call_that_was_turned_away_surely_did_not_happen(clock: SimpleNamespace, made: Made) -> None:
    run = effect(attempt(), wanted())
    next(run)
    assert isinstance(run.send(met("intended")), Calling)
    assert reported(run.send(made)) == "refused"
