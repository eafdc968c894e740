"""Steps, answers, and what a task reads of its parents."""

from __future__ import annotations

from outlast.domain.work import ParentRow, TaskRef, Verdict
from outlast.store.program import Access, Program, Statement, operation, rows_of
from outlast.store.programs.verdicts import entry_of, holds, key_of, place_of, refused


@operation(Access.STATEMENT)
def store_step(ref: TaskRef, name: str, body: str) -> Program[tuple[Verdict, str]]:
    """Stores a step's output under its holder's guard; the first write wins, and is what comes back."""
    rows = yield Statement("store_step", {**key_of(ref), "name": name, "body": body})
    if rows:
        return Verdict.ACCEPTED, body
    stored = yield Statement("step_body", {**place_of(ref), "name": name})
    if stored and int(stored[0][0]) == ref.fence:
        return Verdict.ACCEPTED, str(stored[0][1])
    entry = yield from entry_of(ref)
    if stored and entry is not None and entry.fence == ref.fence and not entry.revoked and entry.leased:
        return Verdict.ACCEPTED, str(stored[0][1])
    return (yield from refused(ref, entry)), body


def store_step_last(ref: TaskRef, name: str, body: str) -> Program[int | None]:
    """`store_step` as the last statement of a transaction of the host's; None: the guard did not hold, or the step is stored."""
    rows = yield Statement("store_step", {**key_of(ref), "name": name, "body": body})
    return 1 if rows else None


@operation(Access.READ)
def step_verdict(ref: TaskRef, name: str) -> Program[Verdict | str | None]:
    """What became of a step whose transaction's end is unknown or whose guard did not hold.

    Its stored output where there is one and the claim still holds its task; None: it is not stored, and the claim still holds.
    """
    entry = yield from entry_of(ref)
    if not holds(entry, ref):
        return (yield from refused(ref, entry))
    stored = yield Statement("step_body", {**place_of(ref), "name": name})
    return str(stored[0][1]) if stored else None


@operation(Access.READ)
def step_names(ref: TaskRef) -> Program[frozenset[str]]:
    """The names of the steps that a task has stored."""
    rows = yield Statement("step_names", place_of(ref))
    return frozenset(str(r[0]) for r in rows)


@operation(Access.READ)
def step_body(ref: TaskRef, name: str) -> Program[str | None]:
    """A stored step's output."""
    rows = yield Statement("step_body", {**place_of(ref), "name": name})
    return str(rows[0][1]) if rows else None


@operation(Access.READ)
def answer_of(ref: TaskRef, code: str) -> Program[str | None]:
    """The owner's last answer to this task's question of that code."""
    rows = yield Statement("answers_of", {**place_of(ref), "code": code})
    return str(rows[0][0]) if rows else None


@operation(Access.READ)
def parents_of(ref: TaskRef) -> Program[list[ParentRow]]:
    """The parents of a task in plan order."""
    return (yield from rows_of(Statement("parents_of", place_of(ref)), ParentRow))
