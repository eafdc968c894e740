"""Concurrency keys: that each claim of a task with a key has one slot of it, within its limit, and that no slot is lost."""

from __future__ import annotations

from collections.abc import Iterator

from outlast.domain.soundness.rows import EntryRow, JobRows, SlotRow
from outlast.domain.soundness.rule import Fault, count, given, rule


def _has(slot: SlotRow, entry: EntryRow | None) -> bool:
    """Whether this claim has this slot: also one that was revoked, until its holder stopped."""
    if entry is None or entry.holder is None or entry.slot_key is None:
        return False
    return (slot.fence, slot.key) == (entry.fence, entry.slot_key)


@rule("A5", "key", "A task has a concurrency key and a limit of it, or neither.")
def key(rows: JobRows) -> Iterator[Fault]:
    """What the plan said."""
    for no, task in sorted(rows.tasks.items()):
        if (task.slot_key is None) != (task.slot_limit is None):
            yield Fault(f"slot_key is {given(task.slot_key)}, slot_limit is {given(task.slot_limit)}", "both set, or neither", no)
        elif task.slot_limit is not None and task.slot_limit < 1:
            yield Fault(f"its key allows {task.slot_limit} at once", "1 or more", no)


@rule("C8", "held", "Who holds a task with a concurrency key has one slot of it.")
def held(rows: JobRows) -> Iterator[Fault]:
    """No fewer, for it counts; no more, for nobody would free it."""
    for no, entry in sorted(rows.entries.items()):
        if entry.holder is None or entry.slot_key is None:
            continue
        slots = sum(slot.no == no and _has(slot, entry) for slot in rows.slots)
        if slots != 1:
            yield Fault(f"its claim has {count(slots, 'slot')} of its key", "one", no)


@rule("C8", "taken", "A slot that is taken is of the claim that holds its task, and of that task's key.")
def taken(rows: JobRows) -> Iterator[Fault]:
    """Else it is lost: the end of no claim frees it."""
    for slot in rows.slots:
        if slot.no is None or slot.fence is None:
            yield Fault(f"slot {slot.n} of a key names no claim of its job", "task and fence of a claim", slot.no)
        elif not _has(slot, rows.entries.get(slot.no)):
            yield Fault(f"slot {slot.n} of a key is taken by fence {slot.fence}, which does not hold it", "free", slot.no)


@rule("C8", "limit", "The number of a slot that is taken is within the limit of its task.")
def limit(rows: JobRows) -> Iterator[Fault]:
    """Rows of a key may be more than a task may take."""
    for slot in rows.slots:
        task = None if slot.no is None else rows.tasks.get(slot.no)
        most = None if task is None else task.slot_limit
        if most is not None and not 1 <= slot.n <= most:
            yield Fault(f"slot {slot.n} of its key is taken", f"1 to {most}", slot.no)


RULES = (key, held, taken, limit)
