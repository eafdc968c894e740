"""Effects: that each is of a claim that there was, that its end is all there, and that its key is the derived one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from outlast.domain.effects import EffectRef, EffectState, provider_key
from outlast.domain.soundness.rows import EffectRow
from outlast.domain.soundness.rule import Fault, given, rule, word

_STATES = get_args(EffectState)
_SETTLED = ("confirmed", "refused")


@rule("G1", "place", "An effect is of a task of its job, and of that job's root.")
def place(row: EffectRow) -> Iterator[Fault]:
    """Where it belongs; one whose job is gone is judged by another rule."""
    if row.job_root is None:
        return
    if row.task_label != row.label:
        yield Fault("an effect of no task of its job", "the label of its task", row.no)
    if row.effect_root != row.job_root:
        yield Fault("an effect of another root than its job's", "the root of its job", row.no)


@rule("C2", "intent", "The intent of an effect is of a claim that there was.")
def intent(row: EffectRow) -> Iterator[Fault]:
    """Its fence."""
    if row.last_fence is not None and not 1 <= row.fence <= row.last_fence:
        yield Fault(f"an effect of fence {row.fence}", f"fences 1 to {row.last_fence}", row.no)


@rule("G1", "word", "An effect's state is one that there is.")
def known(row: EffectRow) -> Iterator[Fault]:
    """The words of the state machine."""
    if row.state not in _STATES:
        yield Fault("an effect whose state is no word of Outlast's", ", ".join(_STATES), row.no)


@rule("G4", "settled", "An effect says when it was settled exactly if it is confirmed or refused.")
def settled(row: EffectRow) -> Iterator[Fault]:
    """The time of the first report."""
    if (row.settled_at is not None) != (row.state in _SETTLED):
        yield Fault(f"an effect that is {word(row.state)}, settled_at is {given(row.settled_at)}", "set exactly if it is settled", row.no)


@rule("G4", "outcome", "Only a confirmed effect has an outcome.")
def outcome(row: EffectRow) -> Iterator[Fault]:
    """What the provider said."""
    if row.has_outcome and row.state != "confirmed":
        yield Fault(f"an effect that is {word(row.state)}, with an outcome", "no outcome", row.no)


@rule("G3", "key", "The key that the provider is given is the one derived from root, label, name and input.")
def key(row: EffectRow) -> Iterator[Fault]:
    """The same at every attempt."""
    ref = EffectRef(row.tenant, row.effect_root, row.label, row.name, row.input_hash)
    if row.provider_key != provider_key(ref):
        yield Fault("an effect with another key", "the one derived from root, label, name and input", row.no)


RULES = (place, intent, known, settled, outcome, key)
