"""Reading jobs, once for both colours: what a principal may see, and that what they may not see is not there."""

from __future__ import annotations

import time
from typing import Any, Literal

from outlast.client import cursors, views
from outlast.client.calls import Application, Call
from outlast.domain.access import Deed, Scope, reading_scope, scope_of
from outlast.domain.conflicts import NotReady
from outlast.domain.errors import Forbidden, Invalid, NotFound, OutlastError
from outlast.domain.ids import is_job_id
from outlast.domain.kinds import AnyTask, check_name
from outlast.domain.model import (
    MAX_TARGET,
    JobView,
    Page,
    Principal,
    Recovery,
    TaskView,
)
from outlast.domain.payload import check_text
from outlast.domain.values import decode_stored
from outlast.domain.work import (
    Filter,
    JobRow,
    OutputRow,
    RecoveryRows,
    Tombstone,
)
from outlast.store.programs import status

MAX_PAGE = 200
_STATES = ("active", "queued", "running", "retrying", "needs_attention", "completed", "cancelled")


def _found(job_id: str, principal: Principal, deed: Deed) -> Call[JobRow]:
    """The job, if this principal may do this with it; NotFound or Forbidden otherwise."""
    row: JobRow | None = (yield status.job(scope_of(principal, deed), job_id)) if is_job_id(job_id) else None
    if row is None:
        raise (yield from refusal(principal, job_id))
    return row


def refusal(principal: Principal, job_id: str) -> Call[OutlastError]:
    """Forbidden for who may read the job, Expired for the owner of one that was purged, NotFound for all others."""
    left: JobRow | Tombstone | None = None
    if is_job_id(job_id):
        left = yield status.unreachable(reading_scope(principal), Scope(principal.tenant, principal.subject), job_id)
    if isinstance(left, Tombstone):
        return views.expired(left)
    return NotFound("There is no such job.") if left is None else Forbidden("You may see this job, but not do this with it.")


def get(app: Application, job_id: str, principal: Principal) -> Call[JobView]:
    """One job."""
    return views.job(app.base_url, app.registry, (yield from _found(job_id, principal, "read")))


def owned(app: Application, job_id: str, principal: Principal) -> Call[JobView]:
    """One job of the principal's own; Forbidden for who may only see it."""
    return views.job(app.base_url, app.registry, (yield from _found(job_id, principal, "decide")))


def list_jobs(
    app: Application,
    principal: Principal,
    *,
    state: str | None,
    kind: str | None,
    limit: int,
    cursor: str | None,
    target: str | None = None,
) -> Call[Page[JobView]]:
    """One page of the principal's own jobs, newest first."""
    if state is not None and state not in _STATES:
        raise Invalid(f"state is one of {', '.join(_STATES)}.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise Invalid(f"limit is a whole number from 1 to {MAX_PAGE}.")
    if kind is not None:
        check_name(kind, what="name of a kind")
    if target is not None:
        check_text(target, what="reference of a target", limit=MAX_TARGET)
    scope = scope_of(principal, "decide")  # their own, an operator's too
    bound = f"{scope.tenant}\n{scope.owner}\n{state}\n{kind}\n{target}"
    before = None if cursor is None else cursors.read(cursor, bound)
    rows, following = yield status.jobs(scope, Filter(state, kind, target), limit=limit, before=before)
    items = tuple(views.job(app.base_url, app.registry, row) for row in rows)
    return Page(items, None if following is None else cursors.write(following, bound))


def tasks(job_id: str, principal: Principal) -> Call[tuple[TaskView, ...]]:
    """The tasks of a job in plan order."""
    rows = (yield status.tasks(scope_of(principal, "read"), job_id)) if is_job_id(job_id) else None
    if rows is None:
        raise (yield from refusal(principal, job_id))
    return tuple(views.task(row) for row in rows)


def result(app: Application, job_id: str, task: AnyTask[Any] | None, principal: Principal, label: str | None) -> Call[Any]:
    """A task's output as the type that it returned, or as JSON that of the task which made the job usable."""
    if task is not None and not isinstance(task, AnyTask):
        raise Invalid("result takes the task that made it, as @jobs.task returned it, or none.")
    scope = scope_of(principal, "result")
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    found: JobRow | None
    outputs: list[OutputRow]
    if task is None:
        found, output = yield status.usable_output(scope, job_id)
        outputs = [] if output is None else [output]
    else:
        found, outputs = yield status.outputs(scope, job_id, task=task.name, no=None)
        if found is not None and not outputs:
            raise Invalid(f"The task {task.name!r} is no part of this job's plan.")
        outputs = [o for o in outputs if label is None or o.label == label]
        if len(outputs) > 1:
            raise Invalid(f"The task {task.name!r} stands in this job's plan several times; give label=.")
        if found is not None and not outputs:
            raise Invalid("There is no such label in this job's plan.")
    if found is None:
        raise (yield from refusal(principal, job_id))
    if not outputs or outputs[0].body is None:
        raise NotReady("There is no result yet.", job=views.job(app.base_url, app.registry, found))
    return decode_stored(outputs[0].body, object if task is None else task.returns, what="result")


def output(app: Application, job_id: str, principal: Principal, no: int | None) -> Call[str]:
    """The JSON text of one task's output, by its place in the plan; None: of the task which made the job usable."""
    scope = scope_of(principal, "result")
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    found: JobRow | None
    row: OutputRow | None
    if no is None:
        found, row = yield status.usable_output(scope, job_id)
    else:
        outputs: list[OutputRow]
        found, outputs = yield status.outputs(scope, job_id, task=None, no=no)
        if found is not None and not outputs:
            raise NotFound("There is no such task.")
        row = outputs[0] if outputs else None
    if found is None:
        raise (yield from refusal(principal, job_id))
    if row is None or row.body is None:
        raise NotReady("There is no result yet.", job=views.job(app.base_url, app.registry, found))
    return row.body


def recovery(job_id: str, principal: Principal) -> Call[Recovery]:
    """A job's past and what is next, for its owner."""
    found: tuple[JobRow, RecoveryRows] | None = None
    if is_job_id(job_id):
        found = yield status.recovery(scope_of(principal, "recovery"), job_id)
    if found is None:
        raise (yield from refusal(principal, job_id))
    return views.recovery(*found)


def wait(app: Application, job_id: str, principal: Principal, timeout: float, until: Literal["usable", "final"]) -> Call[JobView]:
    """The job when it is so, or as it stands after the time."""
    if until not in ("usable", "final"):
        raise Invalid("until is 'usable' or 'final'.")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise Invalid("timeout is a number of seconds, 0 or more.")
    end = time.monotonic() + timeout
    pause = 0.02
    while True:
        view = yield from get(app, job_id, principal)
        left = end - time.monotonic()
        if view.final or (until == "usable" and view.usable_at is not None) or left <= 0:
            return view
        yield min(pause, left)
        pause = min(pause * 1.3, 1.0)
