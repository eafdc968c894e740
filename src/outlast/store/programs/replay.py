"""An operator's replay of what needs attention (T17, J4): the job keeps its id, its outputs and its steps, and who did it is on record."""

from __future__ import annotations

from outlast.domain.access import Scope, owns
from outlast.domain.effects import EffectRef, word_of
from outlast.domain.work import Asking, Control
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.control import judge
from outlast.store.programs.graph import JobChange, write

_FIRST = ("", "00000000-0000-0000-0000-000000000000")


@operation(Access.READ)
def asking(wanted: Asking, *, after: tuple[str, str] | None, limit: int) -> Program[list[tuple[str, str]]]:
    """Tenant and id of the next jobs with such an open question, in key order behind `after`."""
    tenant, job_id = after or _FIRST
    params = {"after_tenant": tenant, "after": job_id, "until": wanted.until_ms, "limit": limit}
    rows = yield Statement("jobs_asking", {**params, "tenant": wanted.tenant, "kind": wanted.kind, "code": wanted.code})
    return [(str(row[0]), str(row[1])) for row in rows]


@operation(Access.TRANSACTION)
def replay(scope: Scope, job_id: str, *, audit_id: str, actor: str, reason: str, request_hash: str, retention_ms: int) -> Program[Control]:
    """Takes `retry` for every open question that offers it. With none open it is a success without a write, as its own repeat is.

    A question about a call of unknown outcome is left to the job's owner: a repeat may be a second mail.
    """
    place = {"tenant": scope.tenant, "job_id": job_id}
    locked = yield Statement("lock_job", {**place, "owner": scope.owner})
    if not locked:
        return Control.NOT_FOUND
    state, _, root, owner = locked[0]
    if state in ("completed", "cancelled"):
        return Control.ALREADY_COMPLETED if state == "completed" else Control.SUPERSEDED
    asked = yield Statement("open_questions", place)
    offered = [row for row in asked if "retry" in str(row[2]).split() and (row[5] is None or owns(owner, actor))]
    if not offered:
        return Control.NOT_OFFERED if asked else Control.REPEATED
    job = JobChange(scope.tenant, job_id)
    for attention_id, no, _actions, required, label, name, input_hash in offered:
        resolution = {**place, "id": attention_id, "action": "retry", "actor": actor, "request_hash": request_hash}
        yield Statement("resolve_attention", resolution)
        if name is not None:
            yield from judge(EffectRef(scope.tenant, root, label, name, input_hash), word_of(None))
        yield Statement("reopen_task", {**place, "no": no})
        job.moved("needs_attention", "open", required=bool(required))
    yield Statement("open_entries", place)
    yield Statement(
        "record_audit", {"id": audit_id, "tenant": scope.tenant, "actor": actor, "action": "replay", "subject": job_id, "reason": reason}
    )
    yield from write(job, retention_ms=retention_ms)
    return Control.DONE
