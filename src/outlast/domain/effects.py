"""Effects: calls to the outside that are meant to happen once, and what is known of them.

An effect is one logical thing to do: the root of a job's reruns, the task's label, the effect's name, and its logical input. The
provider's key is derived from these four, so that it is the same at every attempt, retry, replay and rerun of what did not complete.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from outlast.domain import json_schema
from outlast.domain.errors import Invalid
from outlast.domain.kinds import Storable
from outlast.domain.payload import JSON, canonical, dump, parse
from outlast.domain.work import TaskRef

T = TypeVar("T", bound=Storable)

EffectState = Literal["intended", "confirmed", "refused", "unknown"]
EffectEvent = Literal[
    "begin", "met_again", "met_by_another", "retake", "confirmed", "refused", "unknown", "owner_repeats", "owner_confirms", "owner_refuses"
]

EFFECT_UNKNOWN: Final = "effect_unknown"
"""The code of the question about a call of unknown outcome."""
ANSWER_SHAPE: Final = 'The answer to a question about an effect is {"happened": true or false}, and for true perhaps "outcome".'


@dataclass(frozen=True, slots=True)
class Confirmed(Generic[T]):
    """From `reconcile`: the effect happened, with this outcome."""

    value: T


class EffectTransition(NamedTuple):
    """One row of the effect table. `guarded`: only the holder of the task's claim may do it."""

    sources: frozenset[EffectState | None]
    event: EffectEvent
    target: EffectState
    guarded: bool = False


_UNSETTLED: frozenset[EffectState | None] = frozenset({"intended", "unknown"})
_UNKNOWN: frozenset[EffectState | None] = frozenset({"unknown"})
_INTENDED: frozenset[EffectState | None] = frozenset({"intended"})

EFFECT_TRANSITIONS: Final[tuple[EffectTransition, ...]] = (
    EffectTransition(frozenset({None, "refused"}), "begin", "intended", guarded=True),
    EffectTransition(frozenset({"confirmed"}), "begin", "confirmed", guarded=True),
    EffectTransition(_INTENDED, "met_again", "intended", guarded=True),
    EffectTransition(_UNKNOWN, "met_again", "unknown", guarded=True),
    EffectTransition(_UNSETTLED, "met_by_another", "unknown", guarded=True),
    EffectTransition(_UNSETTLED, "retake", "intended", guarded=True),
    EffectTransition(_UNSETTLED, "confirmed", "confirmed"),
    EffectTransition(_UNSETTLED, "refused", "refused"),
    EffectTransition(_UNSETTLED, "unknown", "unknown"),
    EffectTransition(_UNKNOWN, "owner_repeats", "refused"),
    EffectTransition(_UNSETTLED, "owner_confirms", "confirmed"),
    EffectTransition(_UNKNOWN, "owner_refuses", "refused"),
)
"""Every move of an effect; what is not here is refused, and the row stays as it is."""


def moved(state: EffectState | None, event: EffectEvent) -> EffectState | None:
    """The state after an event; None: it is refused."""
    for row in EFFECT_TRANSITIONS:
        if state in row.sources and row.event == event:
            return row.target
    return None


@dataclass(frozen=True, slots=True)
class EffectCall:
    """A call that a task wants to make. The time-out is the call's own, in milliseconds."""

    name: str
    input_hash: str
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class EffectRef:
    """Which effect."""

    tenant: str
    effect_root: str
    label: str
    name: str
    input_hash: str


@dataclass(frozen=True, slots=True)
class Intent:
    """The claim whose intent an effect's row shows: a report that it did not happen is about this one alone."""

    job_id: str
    no: int
    fence: int


@dataclass(frozen=True, slots=True)
class Met:
    """What a claim met in the ledger.

    intended: it may call now, with `key`. confirmed: `outcome` is the stored one. unknown: somebody's call may have happened, and may be
    under way for `wait_ms` more.
    """

    ref: EffectRef
    intent: Intent
    state: EffectState
    key: str
    outcome: str | None = None
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """How an effect stands after a report: the first one's state and outcome."""

    state: EffectState | None
    outcome: str | None


def provider_key(ref: EffectRef) -> str:
    """The key that the provider is given: 64 characters, the same for the same effect for ever."""
    return hashlib.sha256(canonical([ref.effect_root, ref.label, ref.name, ref.input_hash]).encode()).hexdigest()


def input_hash(body: str, *, limit: int) -> str:
    """What a logical input is told apart by: equal values give equal texts, whatever the order of their keys."""
    return hashlib.sha256(canonical(parse(body, limit=limit)).encode()).hexdigest()


def event_of(state: EffectState, intent: Intent, ref: TaskRef, *, repeat: bool) -> EffectEvent:
    """What it means that a claim asks for an effect which stands already. `repeat`: the call may be made again with the same key."""
    if state in ("confirmed", "refused"):
        return "begin"
    if repeat:
        return "retake"
    mine = (intent.job_id, intent.no, intent.fence) == (ref.job_id, ref.no, ref.fence)
    return "met_again" if mine else "met_by_another"


@dataclass(frozen=True, slots=True)
class Word:
    """What the owner says about an effect of unknown outcome; the outcome is JSON text."""

    state: Literal["confirmed", "refused"]
    outcome: str | None


def answer_schema(outcome: str | None) -> str:
    """What the owner's answer must look like, as JSON Schema: whether it happened, and for what did, the outcome as the task reads it.

    outcome: the schema of that, as text; None where anything goes. One that has no null must be told.
    """
    shape: dict[str, JSON] = {} if outcome is None else json.loads(outcome)
    definitions = shape.pop("$defs", None)
    defined: dict[str, JSON] = {} if definitions is None else {"$defs": definitions}
    told: list[JSON] = ["outcome"] if _refuses_null({**shape, **defined}) else []
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": {"happened": {"type": "boolean"}, "outcome": shape},
        "required": ["happened"],
        "additionalProperties": False,
        "anyOf": [
            {"type": "object", "properties": {"happened": {"const": False}, "outcome": False}},
            {"type": "object", "properties": {"happened": {"const": True}}, "required": told},
        ],
        **defined,
    }
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return text if len(text.encode()) <= json_schema.MAX_SCHEMA else answer_schema(None)


def _refuses_null(schema: dict[str, JSON]) -> bool:
    try:
        json_schema.check(None, schema, what="outcome")
    except Invalid:
        return True
    return False


def word_of(answer: str | None) -> Word:
    """The owner's word: without an answer a repeat is accepted, as if it had not happened. Invalid for an answer of another shape."""
    if answer is None:
        return Word("refused", None)
    given: JSON = json.loads(answer)
    if not isinstance(given, dict) or not isinstance(given.get("happened"), bool) or set(given) - {"happened", "outcome"}:
        raise Invalid(ANSWER_SHAPE, pointers=("/input",))
    if not given["happened"]:
        if "outcome" in given:
            raise Invalid(ANSWER_SHAPE, pointers=("/input",))
        return Word("refused", None)
    return Word("confirmed", dump(given.get("outcome"), limit=6 * len(answer) + 4, what="outcome"))
