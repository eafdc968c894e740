"""Zero rows: the one follow-up read, and the verdict that it gives (what a holder is told when its guard did not hold)."""

from __future__ import annotations

from dataclasses import dataclass

from outlast.domain.work import TaskRef, Verdict
from outlast.store.program import Program, Statement, row_of


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry with its task's policy and the store's clock."""

    fence: int
    holder: str | None
    spent: int
    first_failed_at_ms: int | None
    revoked: int
    leased: int
    lease_until_ms: int | None
    deadline_at_ms: int | None
    now_ms: int
    max_attempts: int
    base_ms: int
    cap_ms: int
    window_ms: int
    required: int
    code: str | None


def key_of(ref: TaskRef) -> dict[str, object]:
    """The parameters by which a holder's statement finds its own claim."""
    return {"tenant": ref.tenant, "job_id": ref.job_id, "no": ref.no, "fence": ref.fence, "holder": ref.holder}


def place_of(ref: TaskRef) -> dict[str, object]:
    """The parameters that name a task."""
    return {"tenant": ref.tenant, "job_id": ref.job_id, "no": ref.no}


def entry_of(ref: TaskRef) -> Program[EntryRow | None]:
    """The task's entry, if one stands."""
    return (yield from row_of(Statement("entry", place_of(ref)), EntryRow))


def holds(entry: EntryRow | None, ref: TaskRef) -> bool:
    """Whether the claim still owns the task, as far as a read can tell."""
    return entry is not None and entry.fence == ref.fence and entry.holder == ref.holder and bool(entry.leased) and not entry.revoked


def refused(ref: TaskRef, entry: EntryRow | None, *, ended_as: tuple[str, ...] = ()) -> Program[Verdict]:
    """The verdict after a guard did not hold. `ended_as`: task states in which my own repeated statement had succeeded."""
    if entry is None:
        rows = yield Statement("task_end", place_of(ref))
        if not rows:
            return Verdict.STALE
        state, fence, _ = rows[0]
        if state in ended_as and fence == ref.fence:
            return Verdict.ACCEPTED
        return Verdict.CANCELLED if state == "cancelled" else Verdict.STALE
    if entry.revoked and entry.fence == ref.fence:
        return Verdict.CANCELLED
    return Verdict.STALE


def ended(ref: TaskRef, entry: EntryRow | None, code: str) -> Program[Verdict]:
    """As `refused`, for an attempt that its holder ended with this code: accepted, if that is how its row says it ended."""
    if (entry is None or released(ref, entry)) and (yield from attempt_code(ref)) == code:
        return Verdict.ACCEPTED
    return (yield from refused(ref, entry))


def attempt_code(ref: TaskRef) -> Program[str | None]:
    """How the claim's attempt ended, by whoever came first: its holder or the sweep; None if neither did."""
    rows = yield Statement("attempt_of", {**place_of(ref), "fence": ref.fence})
    return str(rows[0][0]) if rows else None


def released(ref: TaskRef, entry: EntryRow | None) -> bool:
    """Whether the entry stands as my own release left it: not held, with my fence."""
    return entry is not None and entry.holder is None and entry.fence == ref.fence
