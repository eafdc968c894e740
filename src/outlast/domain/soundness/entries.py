"""An entry of the queue: when it stands, its fence, its lease, what it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from outlast.domain.soundness.rows import EntryRow, JobRows, TaskRow
from outlast.domain.soundness.rule import Fault, count, given, rule, word

_COPIED = ("queue", "priority", "handler", "deadline_ms", "slot_key", "slot_limit")


def _standing(rows: JobRows) -> Iterator[tuple[TaskRow, EntryRow]]:
    for no, entry in sorted(rows.entries.items()):
        task = rows.tasks.get(no)
        if task is not None:
            yield task, entry


@rule("A5", "entry", "A task that is open stands in the queue.")
def missing(rows: JobRows) -> Iterator[Fault]:
    """Else nobody would ever run it."""
    for no, task in sorted(rows.tasks.items()):
        if task.state == "open" and no not in rows.entries:
            yield Fault("it is open, and no entry stands", "an entry in the queue", no)


@rule("D5", "entry", "Only a task that is open, or was cancelled while it was held, stands in the queue.")
def standing(rows: JobRows) -> Iterator[Fault]:
    """What has ended is never claimed again."""
    for task, entry in _standing(rows):
        if task.state not in ("open", "cancelled") or (task.state == "cancelled" and entry.holder is None):
            held = "nobody holds" if entry.holder is None else "somebody holds"
            yield Fault(f"it is {word(task.state)}, and an entry stands that {held}", "no entry", task.no)


@rule("E1", "revoked", "An entry is revoked exactly if its task was cancelled.")
def revoked(rows: JobRows) -> Iterator[Fault]:
    """So that its holder meets the cancel."""
    for task, entry in _standing(rows):
        if bool(entry.revoked) != (task.state == "cancelled"):
            found = f"it is {word(task.state)}, and its entry is {'' if entry.revoked else 'not '}revoked"
            yield Fault(found, "revoked exactly if it is cancelled", task.no)


@rule("A5", "copy", "An entry has queue, priority, handler, deadline, concurrency key and its limit of its task.")
def copied(rows: JobRows) -> Iterator[Fault]:
    """It was made from it."""
    for task, entry in _standing(rows):
        for name in _COPIED:
            if getattr(task, name) != getattr(entry, name):
                yield Fault(f"its entry has another {name}", "that of the task", task.no)


@rule("C1", "fence", "The fence of an entry is not below its task's.")
def fence(rows: JobRows) -> Iterator[Fault]:
    """It never goes back."""
    for task, entry in _standing(rows):
        if entry.fence < task.fence:
            yield Fault(f"its entry has fence {entry.fence}", f"{task.fence} or more, as the task", task.no)


@rule("C1", "kept", "A task that was cancelled while it was held keeps the fence and the attempts of its entry.")
def kept(rows: JobRows) -> Iterator[Fault]:
    """Nobody can claim it any more."""
    for task, entry in _standing(rows):
        if task.state == "cancelled" and (task.fence, task.spent) != (entry.fence, entry.spent):
            found = f"fence {task.fence} and {count(task.spent, 'attempt')}"
            yield Fault(found, f"{entry.fence} and {entry.spent}, as its entry", task.no)


@rule("F1", "budget", "What may run again has attempts left, and counts them from its first failure.")
def budget(rows: JobRows) -> Iterator[Fault]:
    """The attempts on the entry."""
    for task, entry in _standing(rows):
        if not 0 <= entry.spent < task.max_attempts:
            yield Fault(f"{count(entry.spent, 'attempt')} consumed, and it may run again", f"below {task.max_attempts}", task.no)
        if (entry.spent > 0) != (entry.first_failed_at is not None):
            found = f"{count(entry.spent, 'attempt')} consumed, first_failed_at is {given(entry.first_failed_at)}"
            yield Fault(found, "set exactly if an attempt was consumed", task.no)


@rule("C3", "lease", "Lease and deadline stand exactly while somebody holds the entry.")
def lease(rows: JobRows) -> Iterator[Fault]:
    """All three, or none."""
    for task, entry in _standing(rows):
        for name in ("lease_until", "deadline_at"):
            if (getattr(entry, name) is not None) != (entry.holder is not None):
                found = f"{'held' if entry.holder is not None else 'not held'}, and {name} is {given(getattr(entry, name))}"
                yield Fault(found, given(entry.holder), task.no)


@rule("C4", "claim", "What is held could be claimed: it was ready, and the claim gave it a fence.")
def claimed(rows: JobRows) -> Iterator[Fault]:
    """How it came to be held."""
    for task, entry in _standing(rows):
        if entry.holder is None:
            continue
        if entry.ready_at is None or entry.claimed_at is None or entry.fence < 1:
            yield Fault("it is held, and was never claimed", "ready_at, claimed_at and a fence", task.no)


@rule("F5", "deadline", "A lease ends no later than its attempt's deadline.")
def deadline(rows: JobRows) -> Iterator[Fault]:
    """A renewal does not pass it."""
    for task, entry in _standing(rows):
        if entry.lease_until is not None and entry.deadline_at is not None and entry.lease_until > entry.deadline_at:
            yield Fault("its lease ends after its deadline", "at the deadline or before", task.no)


@rule("B1", "waits", "What nobody holds is ready, or has a time at which it will be.")
def waits(rows: JobRows) -> Iterator[Fault]:
    """Else it would wait for ever."""
    for task, entry in _standing(rows):
        if entry.holder is None and entry.ready_at is None and entry.due_at is None:
            yield Fault("neither ready nor due", "one of them", task.no)


RULES = (missing, standing, revoked, copied, fence, kept, budget, lease, claimed, deadline, waits)
