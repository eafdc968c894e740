"""Queues: pausing and resuming them, by operators and on record, and how each stands.

A pause is one row, which each claim reads in its own statement: no claim that begins after the pause has committed takes anything.
What is held goes on.
"""

from __future__ import annotations

from typing import Any

from outlast.domain.work import Control, Pause, QueueRow
from outlast.store.program import Access, Program, Statement, operation, rows_of
from outlast.store.programs.status import standing


@operation(Access.TRANSACTION)
def pause(name: str, *, audit_id: str, tenant: str, actor: str, reason: str) -> Program[Control]:
    """From its commit on nothing of the queue is claimed. A queue that is paused stays as it is, and nothing is written."""
    paused = yield Statement("pause_queue", {"name": name, "actor": actor, "reason": reason})
    record = {"id": audit_id, "tenant": tenant, "actor": actor, "action": "pause_queue", "subject": name, "reason": reason}
    return (yield from _recorded(record, written=bool(paused)))


@operation(Access.TRANSACTION)
def resume(name: str, *, audit_id: str, tenant: str, actor: str, reason: str) -> Program[Control]:
    """What waits in the queue may be claimed again. Of a queue that is not paused nothing is written."""
    resumed = yield Statement("resume_queue", {"name": name})
    record = {"id": audit_id, "tenant": tenant, "actor": actor, "action": "resume_queue", "subject": name, "reason": reason}
    return (yield from _recorded(record, written=bool(resumed)))


@operation(Access.READ)
def stand() -> Program[tuple[list[QueueRow], list[Pause]]]:
    """How each queue stands for each handler, and which queues are paused, whether anything is in them or not."""
    rows = yield from standing()
    return rows, (yield from rows_of(Statement("paused_queues", {}), Pause))


def _recorded(record: dict[str, Any], *, written: bool) -> Program[Control]:
    """Who did it, if it was done. Found done, it may have been by this very call, of which the commit's answer was lost."""
    if written:
        yield Statement("record_audit", record)
        return Control.DONE
    return Control.DONE if (yield Statement("audit_stands", {"id": record["id"]})) else Control.REPEATED
