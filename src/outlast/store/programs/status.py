"""What is read for people: jobs, tasks, results, recovery, queues. Tenant and owner stand in each statement's predicate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from outlast.domain.access import Scope
from outlast.domain.ids import HIGHEST
from outlast.domain.model import Action, TargetRef
from outlast.domain.states import StoredTask, shown_attempt, shown_job_state, shown_task_state
from outlast.domain.work import (
    AttemptRow,
    AttentionRow,
    EffectRow,
    Filter,
    JobRow,
    OutputRow,
    QueueRow,
    RecoveryRows,
    RerunSource,
    TaskRow,
    Tombstone,
    UnfinishedRow,
    Watched,
)
from outlast.store.program import Access, Program, Statement, operation, row_of, rows_of

_STORED = ("open", "needs_attention", "completed", "cancelled")
_ROUNDS = 20


def _job(*row: Any) -> JobRow:
    (
        tenant, job_id, owner, kind, schema_version, label, stored, outcome, version, usable_at, usable_ref, total, open_, attention,
        accepted_at, finished_at, cancelled_by, rerun_of, correlation_id, held, retry_waiting, started, revoked, current,
        a_id, a_label, a_code, a_message, a_actions, a_until, a_schema, target_ref, target_version, taken_over_at, attach,
    ) = row  # fmt: skip
    question = None
    if a_id is not None:
        question = AttentionRow(a_id, a_label, a_code, a_message, actions_of(a_actions), a_until, a_schema)
    return JobRow(
        tenant=tenant,
        id=job_id,
        owner=owner,
        kind=kind,
        schema_version=schema_version,
        label=label,
        stored=stored,
        state=shown_job_state(stored, held=bool(held), retry_waiting=bool(retry_waiting), started=bool(started)),
        outcome=outcome,
        version=version,
        stopping=bool(revoked),
        usable_at_ms=usable_at,
        usable_ref=usable_ref,
        total=total,
        open=open_,
        current_label=current,
        attention_count=attention,
        attention=question,
        accepted_at_ms=accepted_at,
        finished_at_ms=finished_at,
        cancelled_by=cancelled_by,
        rerun_of=rerun_of,
        correlation_id=correlation_id,
        target=None if target_ref is None else TargetRef(target_ref, target_version),
        taken_over_at_ms=taken_over_at,
        attach=attach,
    )


def actions_of(text: str) -> tuple[Action, ...]:
    """The actions of a question, as they are stored: words with blanks between."""
    return tuple(cast("Action", a) for a in text.split())


def _found(scope: Scope, job_id: str) -> Program[JobRow | None]:
    rows = yield from rows_of(Statement("job_view", {"tenant": scope.tenant, "job_id": job_id, "owner": scope.owner}), _job)
    return rows[0] if rows else None


@operation(Access.READ)
def job(scope: Scope, job_id: str) -> Program[JobRow | None]:
    """One job as it stands, if it lies in the scope."""
    return (yield from _found(scope, job_id))


@operation(Access.READ)
def unreachable(scope: Scope, own: Scope, job_id: str) -> Program[JobRow | Tombstone | None]:
    """What there is of a job that was not found in a narrower scope: itself, or what is left of one of the principal's own.

    The same statements for what is unknown, somebody else's, and somebody else's that was purged.
    """
    found = yield from _found(scope, job_id)
    return found if found is not None else (yield from _buried(own, job_id))


@operation(Access.READ)
def tombstone(own: Scope, job_id: str) -> Program[Tombstone | None]:
    """What is left of a principal's own job that was purged, until its horizon is over."""
    return (yield from _buried(own, job_id))


def _buried(own: Scope, job_id: str) -> Program[Tombstone | None]:
    params = {"tenant": own.tenant, "owner": own.owner, "job_id": job_id}
    return (yield from row_of(Statement("tombstone_of", params), Tombstone))


@operation(Access.READ)
def watched(ids: Sequence[str], tenants: Sequence[str], owners: Sequence[Scope], *, newest: int) -> Program[Watched]:
    """The jobs of these ids as they stand, and ids and versions of each owner's newest ones; for one watcher over many readers."""
    rows: list[JobRow] = []
    if ids:
        rows = yield from rows_of(Statement("jobs_watched", {"ids": json.dumps(list(ids)), "tenants": json.dumps(list(tenants))}), _job)
    found: dict[Scope, list[tuple[str, int]]] = {}
    for scope in owners:
        listed = yield Statement("newest_of_owner", {"tenant": scope.tenant, "owner": scope.owner, "limit": newest})
        found[scope] = [(str(r[0]), int(r[1])) for r in listed]
    return Watched({row.id: row for row in rows}, found)


@operation(Access.READ)
def job_owner(job_id: str) -> Program[tuple[str, str] | None]:
    """Tenant and owner of a job, for an operator at the store itself."""
    rows = yield Statement("job_owner", {"job_id": job_id})
    return (str(rows[0][0]), str(rows[0][1])) if rows else None


@operation(Access.READ)
def jobs(scope: Scope | None, wanted: Filter, *, limit: int, before: str | None) -> Program[tuple[list[JobRow], str | None]]:
    """One page of jobs, newest first, and where the next one begins; scope None: all tenants, for an operator at the store.

    Derived states are looked up among the open jobs, a bounded number of rounds a call; a page may then be short though more follow.
    """
    derived = wanted.state is not None and wanted.state not in (*_STORED, "active")
    stored = "open" if derived else (wanted.state if wanted.state in _STORED else None)
    cursor = before or HIGHEST
    page: list[JobRow] = []
    for _ in range(_ROUNDS):
        params = {
            "before": cursor,
            "active": wanted.state == "active",
            "state": stored,
            "kind": wanted.kind,
            "target": wanted.target,
            "limit": limit + 1,
        }
        if scope is not None and scope.owner is not None:
            statement = Statement("job_list", {**params, "tenant": scope.tenant, "owner": scope.owner})
        else:
            statement = Statement("job_list_all", {**params, "tenant": scope.tenant if scope else None})
        rows = yield from rows_of(statement, _job)
        for row in rows[: limit + 1]:
            if len(page) == limit:
                return page, page[-1].id
            if not derived or row.state == wanted.state:
                page.append(row)
        if len(rows) <= limit:
            return page, None
        cursor = rows[-1].id
    return page, cursor


def _task(*row: Any) -> TaskRow:
    (
        no,
        label,
        state,
        required,
        usable,
        spent,
        max_attempts,
        code,
        progress,
        held,
        due_at,
        ref,
        fence,
        worker,
        holder,
        parked,
    ) = row
    stored: StoredTask = state
    return TaskRow(
        no=no,
        label=label,
        state=shown_task_state(stored, held=bool(held), spent=spent),
        required=bool(required),
        usable=bool(usable),
        attempt=shown_attempt(stored, held=bool(held) and stored == "open", spent=spent),
        max_attempts=max_attempts,
        progress=progress,
        code=code,
        ref=ref,
        next_attempt_at_ms=due_at,
        fence=fence,
        worker=str(holder).rpartition(":")[0] if holder else worker,
        parked=bool(parked),
    )


@operation(Access.READ)
def tasks(scope: Scope, job_id: str) -> Program[list[TaskRow] | None]:
    """The tasks of a job in plan order; None if the job does not lie in the scope."""
    if (yield from _found(scope, job_id)) is None:
        return None
    return (yield from rows_of(Statement("task_list", {"tenant": scope.tenant, "job_id": job_id}), _task))


@operation(Access.READ)
def usable_output(scope: Scope, job_id: str) -> Program[tuple[JobRow | None, OutputRow | None]]:
    """The job, and the output of the task that made it usable."""
    found = yield from _found(scope, job_id)
    if found is None:
        return None, None
    rows = yield from rows_of(Statement("usable_output", {"tenant": scope.tenant, "job_id": job_id}), OutputRow)
    return found, rows[0] if rows else None


@operation(Access.READ)
def outputs(scope: Scope, job_id: str, *, task: str | None, no: int | None) -> Program[tuple[JobRow | None, list[OutputRow]]]:
    """The job, and the outputs of one of its tasks by place, or of all its tasks of one name."""
    found = yield from _found(scope, job_id)
    if found is None:
        return None, []
    handler = None if task is None else f"{found.kind}@{found.schema_version}:{task}"
    params = {"tenant": scope.tenant, "job_id": job_id, "no": no, "handler": handler}
    return found, (yield from rows_of(Statement("outputs_of_job", params), OutputRow))


def _attempt(*row: Any) -> AttemptRow:
    label, number, fence, started_at, ended_at, code, detail, worker, no = row
    return AttemptRow(no, label, number, fence, worker, started_at, ended_at, code, detail)


def _completed(*row: Any) -> AttemptRow:
    label, number, fence, started_at, ended_at, worker, no = row
    return AttemptRow(no, label, number, fence, worker, started_at, ended_at, None, None)


@operation(Access.READ)
def recovery(scope: Scope, job_id: str) -> Program[tuple[JobRow, RecoveryRows] | None]:
    """Everything about a job's past and what is next, for its owner (and, with the private detail, its operators)."""
    found = yield from _found(scope, job_id)
    if found is None:
        return None
    place = {"tenant": scope.tenant, "job_id": job_id}
    failed = yield from rows_of(Statement("attempts_of_job", place), _attempt)
    completed = yield from rows_of(Statement("ends_of_job", place), _completed)
    questions = yield from rows_of(Statement("attention_of_job", place), _question)
    steps = yield from rows_of(Statement("steps_of_job", place), _steps)
    listed = yield from rows_of(Statement("task_list", place), _task)
    doubtful = yield from rows_of(Statement("effects_in_doubt", place), EffectRow)
    attempts = sorted((*failed, *completed), key=lambda a: (a.ended_at_ms or 0, a.no, a.fence))
    return found, RecoveryRows(tuple(attempts), tuple(questions), tuple(steps), tuple(listed), tuple(doubtful))


def _question(*row: Any) -> AttentionRow:
    attention_id, label, code, message, actions, until, schema = row
    return AttentionRow(attention_id, label, code, message, actions_of(actions), until, schema)


def _steps(label: str, stored: int, _no: int) -> tuple[str, int]:
    return label, stored


@operation(Access.READ)
def answer_schema(scope: Scope, job_id: str, attention_id: str) -> Program[str | None]:
    """What an answer to this question must look like, as JSON text; None where nothing is said, or there is no such question."""
    params = {"tenant": scope.tenant, "job_id": job_id, "id": attention_id, "owner": scope.owner}
    rows = yield Statement("answer_schema", params)
    return None if not rows or rows[0][0] is None else str(rows[0][0])


@operation(Access.READ)
def rerun_source(scope: Scope, job_id: str) -> Program[RerunSource | None]:
    """A job as a rerun copies it."""
    params = {"tenant": scope.tenant, "job_id": job_id, "owner": scope.owner}
    rows = yield from rows_of(Statement("rerun_source", params), RerunSource)
    return rows[0] if rows else None


def standing() -> Program[list[QueueRow]]:
    """Depth and oldest age of each queue by handler, counted on the claim index."""
    ready = yield Statement("queue_depths", {})
    waiting = yield Statement("queue_waiting", {})
    found: dict[tuple[str, str], QueueRow] = {}
    for queue, handler, total, free, oldest in ready:
        found[queue, handler] = QueueRow(queue, handler, int(free), int(total) - int(free), 0, None if oldest is None else int(oldest))
    for queue, handler, total in waiting:
        row = found.get((queue, handler), QueueRow(queue, handler, 0, 0, 0, None))
        found[queue, handler] = QueueRow(queue, handler, row.ready, row.held, int(total), row.oldest_ms)
    return [found[key] for key in sorted(found)]


@operation(Access.READ)
def queues() -> Program[list[QueueRow]]:
    """See `standing`."""
    return (yield from standing())


@operation(Access.READ)
def unfinished_handlers() -> Program[list[UnfinishedRow]]:
    """How many unfinished tasks there are of each handler, and how old the oldest of their jobs is."""
    rows = yield Statement("unfinished_handlers", {})
    return [UnfinishedRow(str(r[0]), int(r[1]), max(0, int(r[2]))) for r in rows]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Which database a connection is on: equal for all connections to it, and for no other. `migrated`: it has our tables, of any age."""

    place: str
    migrated: bool


@operation(Access.READ)
def whereabouts() -> Program[Whereabouts]:
    """Where the connection is that this runs on. It takes no lock and no snapshot."""
    rows = yield Statement("whereabouts", {})
    place, migrated = next(((row[2], row[3:]) for row in rows if row[1] == "main"), (None, ()))
    return Whereabouts(str(place or ""), all(migrated))


@operation(Access.READ)
def clock() -> Program[int]:
    """The store's clock, in milliseconds."""
    rows = yield Statement("clock", {})
    return int(rows[0][0])
