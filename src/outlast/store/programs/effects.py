"""The effect ledger: what is meant to happen outside, and what became of it (rows of the effect table)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from outlast.domain.effects import EffectCall, EffectRef, Intent, Judged, Met, event_of, moved, provider_key
from outlast.domain.work import TaskRef, Verdict
from outlast.store.program import Access, Program, Repeat, Statement, operation
from outlast.store.programs.verdicts import entry_of, key_of, refused


@operation(Access.TRANSACTION)
def begin(ref: TaskRef, call: EffectCall) -> Program[Met | Verdict]:
    """Commits the intent of a call under its holder's guard, or says how the effect stands.

    The entry is locked first and until the commit, so that a cancel comes before the intent or after it. A repeat of the same claim
    changes nothing.
    """
    return (yield from _meet(ref, call, repeat=False))


@operation(Access.TRANSACTION)
def retake(ref: TaskRef, call: EffectCall) -> Program[Met | Verdict]:
    """As `begin`, where a call of unknown outcome may be made again with the same key, once the time of the earlier one is over."""
    return (yield from _meet(ref, call, repeat=True))


def _meet(ref: TaskRef, call: EffectCall, *, repeat: bool) -> Program[Met | Verdict]:
    rows = yield Statement("effect_place", key_of(ref))
    if not rows:
        entry = yield from entry_of(ref)
        return (yield from refused(ref, entry))
    root, label = rows[0]
    effect = EffectRef(ref.tenant, str(root), str(label), call.name, call.input_hash)
    mine = Intent(ref.job_id, ref.no, ref.fence)
    key = provider_key(effect)
    intent = {**asdict(effect), **asdict(mine), "timeout_ms": call.timeout_ms}
    if (yield Statement("insert_effect", {**intent, "provider_key": key})):
        return Met(effect, mine, "intended", key)
    found = yield Statement("effect_of", asdict(effect))
    if not found:
        raise Repeat
    state, job_id, no, fence, stored_key, outcome, left = found[0]
    standing = Intent(str(job_id), int(no), int(fence))
    wait_ms = 0 if standing == mine else max(0, int(left))
    event = event_of(state, standing, ref, repeat=repeat and wait_ms == 0)
    match moved(state, event):
        case "confirmed":
            return Met(effect, standing, "confirmed", str(stored_key), outcome)
        case "intended":
            if event != "met_again":
                yield Statement("intend_effect", intent)
            return Met(effect, mine, "intended", str(stored_key))
        case _:
            if state == "intended":
                yield Statement("doubt_effect", asdict(effect))
            return Met(effect, standing, "unknown", str(stored_key), wait_ms=wait_ms)


@operation(Access.STATEMENT)
def settle(effect: EffectRef, intent: Intent, state: Literal["confirmed", "refused", "unknown"], outcome: str | None) -> Program[Judged]:
    """Records what became of a call, whoever reports it and however late. The first report wins, and is what comes back."""
    rows = yield Statement("settle_effect", {**asdict(effect), **asdict(intent), "state": state, "outcome": outcome})
    if rows:
        return Judged(state, outcome)
    found = yield Statement("effect_outcome", asdict(effect))
    return Judged(found[0][0], found[0][1]) if found else Judged(None, None)
