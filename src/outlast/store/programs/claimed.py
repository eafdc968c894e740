"""What a claim gives: the row of a claimed task as a value."""

from __future__ import annotations

from typing import Any

from outlast.domain.work import Claimed, TaskRef


def claimed_of(row: tuple[Any, ...], holder: str) -> Claimed:
    """A claimed task, of a row that any of the claim statements gives."""
    (
        tenant,
        job_id,
        no,
        fence,
        spent,
        handler,
        queue,
        deadline_ms,
        deadline_at,
        label,
        item,
        body,
        caller,
        owner,
        correlation,
        slot_key,
    ) = row
    ref = TaskRef(tenant, job_id, no, fence, holder)
    return Claimed(ref, spent, handler, queue, deadline_ms, deadline_at, label, item, body, caller, owner, correlation, slot_key)
