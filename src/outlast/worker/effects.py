"""`ctx.effect`, once for both colours: intent before the call, outcome after it, and what to do where the outcome is not known."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from outlast.domain.defaults import LONGEST
from outlast.domain.effects import EFFECT_UNKNOWN, Confirmed, EffectCall, Judged, Met, answer_schema, input_hash
from outlast.domain.errors import Invalid, OutlastError
from outlast.domain.failures import Ask, Refused, Retry, Snooze, Stopped
from outlast.domain.payload import check_text
from outlast.domain.values import MISSING, check_hint, decode_stored, encode, hints, schema_of, takes
from outlast.domain.work import Verdict
from outlast.store.programs import effects
from outlast.worker.attempt_state import AttemptState
from outlast.worker.outside import Calling, Made, Reporting, Waiting
from outlast.worker.recall import REASONS, Recall, read_back

MAX_EFFECT_NAME = 200
_SLICE = 0.2
"""Seconds between two looks at whether the attempt still has its authority."""


class EffectUnknown(Ask):
    """The question about a call of unknown outcome that can be neither reconciled nor repeated."""

    def __init__(self, wanted: EffectCall, made_as: object) -> None:
        words = f"It is not known whether {wanted.name!r} took place. Look it up, and say so; or try again, and it may happen twice."
        super().__init__(EFFECT_UNKNOWN, words, actions=())
        self.actions = ("retry", "answer", "skip")
        self.effect = (wanted.name, wanted.input_hash)
        self.input_schema = answer_schema(schema_of(made_as))


@dataclass(frozen=True, slots=True)
class Wanted:
    """An effect as the handler asks for it. `blocking`: by a plain function, in a thread."""

    name: str
    fn: Callable[[str], Any]
    reconcile: Callable[[str], Any] | None
    idempotent: bool
    logical: object
    timeout: float
    blocking: bool

    def checked(self, *, limit: int) -> EffectCall:
        """What the ledger is asked for; Invalid for what cannot be, before anything is written."""
        check_text(self.name, what="effect name", limit=MAX_EFFECT_NAME)
        if self.idempotent not in (True, False):
            raise Invalid("idempotent is True or left out.")
        if self.reconcile is not None and self.idempotent:
            raise Invalid("An effect is reconciled or idempotent: give reconcile= or idempotent=True, not both.")
        _check_function(self.fn, "call", blocking=self.blocking)
        if self.reconcile is not None:
            _check_function(self.reconcile, "reconcile", blocking=self.blocking)
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or not 0 < self.timeout <= LONGEST:
            raise Invalid(f"The timeout of an effect is seconds, above 0 and at most {LONGEST}.")
        check_hint(self.made_as, what="effect's outcome")
        body = encode(self.logical, limit=limit, what="effect's input")
        return EffectCall(self.name, input_hash(body, limit=limit), max(1, round(self.timeout * 1000)))

    def lasting(self, call: EffectCall, left: float) -> EffectCall:
        """The call as it is begun with so many seconds left: a coroutine is cancelled with its attempt, so nobody waits for it longer.

        What runs in a thread cannot be, nor may what a lambda gives: they have their own time.
        """
        if self.blocking or not inspect.iscoroutinefunction(self.fn):
            return call
        return replace(call, timeout_ms=max(1, min(call.timeout_ms, round(left * 1000))))

    @property
    def made_as(self) -> object:
        """The annotation by which the outcome is read back; MISSING for a lambda."""
        return hints(self.fn).returns


def _check_function(fn: object, what: str, *, blocking: bool) -> None:
    if not callable(fn):
        raise Invalid(f"The {what} of an effect is a function that takes the key, for example lambda key: send(text, key).")
    if blocking and inspect.iscoroutinefunction(fn):
        raise Invalid(f"A task that is a plain def gives plain functions to ctx.effect; {what} is an async def.")
    if not takes(fn, 1):
        raise Invalid(f"The {what} of an effect takes the key and nothing more, for example lambda key: send(text, key).")


def effect(state: AttemptState, wanted: Wanted) -> Recall[Made]:
    """The outcome of the effect: stored before, of this call, or reconciled; or what its call raised, for the caller to raise."""
    call = wanted.checked(limit=state.max_output)
    _once(state, call)
    ref = state.hold.claimed.ref
    ask = effects.begin
    while True:
        state.hold.check()
        asked = time.monotonic()
        met: Met | Verdict = yield ask(ref, wanted.lasting(call, state.hold.deadline - asked))
        if isinstance(met, Verdict):
            reason = REASONS.get(met, "replaced")
            state.hold.lose(reason)
            raise Stopped(reason)
        if met.state == "confirmed":
            return Made(decode_stored(met.outcome or "null", wanted.made_as, what="outcome of an effect"))
        if met.state == "intended":
            made = yield from _call(state, wanted, met, asked, doubted=ask is effects.retake)
            if made is not None:
                return made
        elif met.wait_ms > 0:
            yield from _wait(state, met.wait_ms / 1000, wanted.timeout)
        elif wanted.reconcile is not None:
            found = yield from _reconcile(state, wanted, met, wanted.reconcile)
            if found is not None:
                return found
        elif wanted.idempotent:
            ask = effects.retake
        else:
            raise EffectUnknown(call, wanted.made_as)


def _once(state: AttemptState, call: EffectCall) -> None:
    if (call.name, call.input_hash) in state.effects:
        raise Invalid(f"The effect {call.name!r} ran in this attempt already with this input; give each its own name or input=.")
    state.effects.add((call.name, call.input_hash))


def _call(state: AttemptState, wanted: Wanted, met: Met, asked: float, *, doubted: bool) -> Recall[Made | None]:
    """What came of the call; None: it is too late for it, and it was not begun.

    asked: when the intent was asked for. Whoever meets it counts the call's time from there, so that a call which began later would still
    be under way when it is looked for. doubted: an earlier call with this key may have happened, whatever comes of this one.
    """
    spared: Literal["refused", "unknown"] = "unknown" if doubted else "refused"
    late = time.monotonic() - asked
    left = min(wanted.timeout - late, state.hold.deadline - time.monotonic())
    if state.hold.lost() is not None or late > wanted.timeout / 2 or left <= 0:  # half of its time is too little to be worth a doubt
        yield from _report(state, met, spared)
        state.hold.check()
        return None
    made: Made = yield Calling(wanted.fn, met.key, left)
    if made.error is None:
        return (yield from _happened(state, wanted, met, made.value))
    if isinstance(made.error, Refused):
        yield from _report(state, met, "refused")
        return made
    if isinstance(made.error, Retry) or made.never:
        yield from _report(state, met, spared)
        return made
    yield from _report(state, met, "unknown")
    state.doubts.append(made.error)
    return made


def _reconcile(state: AttemptState, wanted: Wanted, met: Met, ask: Callable[[str], Any]) -> Recall[Made | None]:
    """What the provider knows of the key; None: it surely did not happen, and may be begun anew."""
    state.hold.check()
    made: Made = yield Calling(ask, met.key, min(wanted.timeout, max(0.001, state.hold.deadline - time.monotonic())))
    if isinstance(made.error, Refused):
        yield from _report(state, met, "refused")
        return None
    if made.error is not None:
        if not isinstance(made.error, Retry):  # whose time counts
            state.doubts.append(made.error)
        return made
    found: object = made.value
    if not isinstance(found, Confirmed):
        return Made(error=Invalid("reconcile returns Confirmed(value), or raises Refused where the effect surely did not happen."))
    return (yield from _happened(state, wanted, met, cast("Confirmed[None]", found).value))


def _happened(state: AttemptState, wanted: Wanted, met: Met, value: object) -> Recall[Made]:
    """Stores the outcome, and gives it back as a replacement would read it."""
    made_as = wanted.made_as
    try:
        body = encode(value, limit=state.max_output, what="effect's outcome", plain=made_as is MISSING, hint=made_as, code="result_invalid")
        kept = read_back(body, made_as, what="effect's outcome")
    except BaseException as error:  # reading a value runs the host's code too
        yield from _report(state, met, "unknown")  # it happened, and nobody could be told what came of it
        return Made(error=error)
    judged = yield from _report(state, met, "confirmed", body)
    if judged.state == "confirmed" and judged.outcome != body:
        return Made(decode_stored(judged.outcome or "null", made_as, what="outcome of an effect"))
    if judged.state == "refused":
        return Made(error=Refused("refused", "It was settled before that this did not happen."))
    return Made(kept)


def _report(state: AttemptState, met: Met, to: Literal["confirmed", "refused", "unknown"], outcome: str | None = None) -> Recall[Judged]:
    """Tells the ledger, however long the store is away; the first report is what comes back."""
    operation = effects.settle(met.ref, met.intent, to, outcome)
    pause = 0.1
    while True:
        made: Made = yield Reporting(operation)
        error = made.error
        if error is None:
            judged: Judged = made.value
            return judged
        if not (isinstance(error, OutlastError) and error.retryable) or state.hold.lost() in ("replaced", "deadline"):
            raise error
        yield Waiting(pause)
        pause = min(pause * 2, 2.0)


def _wait(state: AttemptState, seconds: float, needed: float) -> Recall[None]:
    """Until an earlier claim's call is over by its own time-out: here, if what is `needed` then is left, else in a snooze.

    An attempt that ended while it only waited would be used up for nothing.
    """
    until = time.monotonic() + seconds
    if until + needed > state.hold.deadline:
        raise Snooze(seconds)
    while (left := until - time.monotonic()) > 0:
        state.hold.check()
        yield Waiting(min(left, _SLICE))
