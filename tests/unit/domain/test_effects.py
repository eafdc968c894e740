"""The effect table, keys, and the owner's word."""

from __future__ import annotations

import pytest

from outlast.domain.effects import (
    EFFECT_TRANSITIONS,
    EffectEvent,
    EffectRef,
    EffectState,
    Intent,
    Word,
    event_of,
    input_hash,
    moved,
    provider_key,
    word_of,
)
from outlast.domain.errors import Invalid
from outlast.domain.work import TaskRef

STATES: tuple[EffectState | None, ...] = (None, "intended", "confirmed", "refused", "unknown")
REF = EffectRef("acme", "root", "one", "mail", "x")


def test_the_table_says_one_thing_for_each_state_and_event() -> None:
    pairs = [(state, row.event) for row in EFFECT_TRANSITIONS for state in row.sources]
    assert len(pairs) == len(set(pairs))


def test_what_happened_stays_so() -> None:
    assert {row.target for row in EFFECT_TRANSITIONS if "confirmed" in row.sources} == {"confirmed"}


def test_nothing_but_a_claim_makes_an_intent_and_everybody_may_say_what_became_of_it() -> None:
    assert all(row.guarded for row in EFFECT_TRANSITIONS if row.target == "intended")
    assert not any(row.guarded for row in EFFECT_TRANSITIONS if row.event in ("confirmed", "refused", "unknown"))


def test_a_call_of_unknown_outcome_is_not_begun_but_retaken() -> None:
    assert moved("unknown", "begin") is None
    assert moved("unknown", "met_by_another") == "unknown"
    assert moved("unknown", "retake") == "intended"


def test_the_key_depends_on_each_of_its_four_parts_and_not_on_the_tenant() -> None:
    key = provider_key(REF)
    assert len(key) == 64
    assert int(key, 16) >= 0
    others = [
        EffectRef("acme", *parts)
        for parts in (("r2", "one", "mail", "x"), ("root", "two", "mail", "x"), ("root", "one", "fax", "x"), ("root", "one", "mail", "y"))
    ]
    assert len({key, *map(provider_key, others)}) == 5
    assert provider_key(EffectRef("other", "root", "one", "mail", "x")) == key
    assert provider_key(EffectRef("acme", "root", "onem", "ail", "x")) != key, "parts do not run together"


def test_equal_inputs_are_one_input() -> None:
    assert input_hash('{"a":1,"b":[2]}', limit=99) == input_hash('{"b": [2], "a": 1}', limit=99)
    assert input_hash("1", limit=99) != input_hash("1.0", limit=99)


@pytest.mark.parametrize(
    ("state", "intent", "repeat", "event"),
    [
        ("confirmed", ("job", 0, 1), False, "begin"),
        ("refused", ("job", 0, 1), True, "begin"),
        ("intended", ("job", 0, 2), False, "met_again"),
        ("intended", ("job", 0, 1), False, "met_by_another"),
        ("unknown", ("other", 0, 2), False, "met_by_another"),
        ("unknown", ("job", 0, 1), True, "retake"),
    ],
)
def test_what_it_means_to_meet_an_effect(state: EffectState, intent: tuple[str, int, int], repeat: bool, event: EffectEvent) -> None:
    assert event_of(state, Intent(*intent), TaskRef("acme", "job", 0, 2, "w:1"), repeat=repeat) == event


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (None, Word("refused", None)),
        ('{"happened":false}', Word("refused", None)),
        ('{"happened":true}', Word("confirmed", "null")),
        ('{"happened":true,"outcome":{"id":[1,"\u00e9"]}}', Word("confirmed", '{"id":[1,"\u00e9"]}')),
        ('{"happened":true,"outcome":1E300}', Word("confirmed", "1e+300")),
    ],
)
def test_the_owners_word(answer: str | None, word: Word) -> None:
    assert word_of(answer) == word


@pytest.mark.parametrize(
    "answer", ["null", "1", '"x"', "[]", "{}", '{"happened":"yes"}', '{"happened":true,"x":1}', '{"happened":false,"outcome":1}']
)
def test_a_word_of_another_shape_is_refused(answer: str) -> None:
    with pytest.raises(Invalid, match="happened"):
        word_of(answer)
