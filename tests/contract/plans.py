"""Plans in a few words: `plan(a("one"), a("two", after="one"))`."""

from __future__ import annotations

from dataclasses import dataclass

from outlast.domain.kinds import TaskSpec
from outlast.domain.limits import Limit

HANDLER = "kind@1:work"
OTHER_HANDLER = "kind@1:other"
HANDLERS = (HANDLER, OTHER_HANDLER)
BASE_MS = 1_000
CAP_MS = 60_000
WINDOW_MS = 3_600_000
DEADLINE_MS = 60_000
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """A task as a test writes it."""

    label: str
    after: tuple[str, ...]
    optional: bool
    usable: bool
    queue: str
    priority: int
    handler: str
    attempts: int
    base_ms: int
    cap_ms: int
    window_ms: int
    deadline_ms: int
    item: str | None
    limit: Limit | None


def a(
    label: str,
    *,
    after: str = "",
    optional: bool = False,
    usable: bool = False,
    queue: str = "default",
    priority: int = 0,
    handler: str = HANDLER,
    attempts: int = ATTEMPTS,
    base_ms: int = BASE_MS,
    cap_ms: int = CAP_MS,
    window_ms: int = WINDOW_MS,
    deadline_ms: int = DEADLINE_MS,
    item: str | None = None,
    limit: Limit | None = None,
) -> Draft:
    """A task; `after` names its parents, with blanks between."""
    parents = tuple(after.split())
    return Draft(label, parents, optional, usable, queue, priority, handler, attempts, base_ms, cap_ms, window_ms, deadline_ms, item, limit)


def plan(*drafts: Draft) -> tuple[TaskSpec, ...]:
    """The tasks as they are admitted."""
    number = {draft.label: no for no, draft in enumerate(drafts)}
    optional = {draft.label: draft.optional for draft in drafts}
    return tuple(
        TaskSpec(
            no=no,
            label=draft.label,
            handler=draft.handler,
            queue=draft.queue,
            priority=draft.priority,
            required=not draft.optional,
            usable=draft.usable,
            max_attempts=draft.attempts,
            base_ms=draft.base_ms,
            cap_ms=draft.cap_ms,
            window_ms=draft.window_ms,
            deadline_ms=draft.deadline_ms,
            item=draft.item,
            parents=tuple((number[p], not draft.optional and optional[p]) for p in draft.after),
            slot_key=None if draft.limit is None else draft.limit.key,
            slot_limit=None if draft.limit is None else draft.limit.slots,
        )
        for no, draft in enumerate(drafts)
    )
