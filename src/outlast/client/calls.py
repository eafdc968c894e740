"""What the client does, once for both colours: generators that yield store operations, or seconds to wait, and receive their values."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, cast

from outlast.client import cursors, views
from outlast.domain import json_schema
from outlast.domain.access import Deed, Scope, reading_scope, scope_of
from outlast.domain.conflicts import AlreadyCompleted, Conflict, NotReady, StaleVersion, UniqueActive
from outlast.domain.defaults import Settings
from outlast.domain.effects import ANSWER_SHAPE
from outlast.domain.errors import Contended, Forbidden, Invalid, KeyReused, Locked, NotFound, NotRegistered, OutlastError, StillAdmitting
from outlast.domain.ids import is_job_id, uuid7
from outlast.domain.kinds import AnyTask, In, Kind, Task, check_name
from outlast.domain.model import (
    MAX_NAME,
    MAX_TARGET,
    Action,
    Forgotten,
    Handle,
    JobView,
    Page,
    Principal,
    QueueChange,
    QueueView,
    Recovery,
    TargetRef,
    TaskView,
    Unique,
    UniquePolicy,
)
from outlast.domain.payload import JSON, canonical, check_key, check_text, clean, dump, parse
from outlast.domain.refusal import article
from outlast.domain.registry import Registry
from outlast.domain.requests import Request, admission_of, caller_of, check_may_submit, read_request
from outlast.domain.schedules import ScheduleRow
from outlast.domain.states import FINAL_JOBS
from outlast.domain.values import decode_stored, encode
from outlast.domain.work import (
    ActiveTaken,
    Admission,
    Admitted,
    Control,
    Erased,
    Filter,
    JobRow,
    KeyHeld,
    KeyTaken,
    OutputRow,
    RecoveryRows,
    RerunSource,
    Tombstone,
)
from outlast.observe.correlation import correlation_id, traceparent
from outlast.store.program import Operation
from outlast.store.programs import admission, control, forgetting, queues, replay, rerun, schedules, status, targets

T = TypeVar("T")
Call: TypeAlias = Generator[Operation[Any] | float, Any, T]

MAX_PAGE = 200
MAX_REASON = 500
ERASED_AT_ONCE = 20
KEYS_AT_ONCE = 500
_STATES = ("active", "queued", "running", "retrying", "needs_attention", "completed", "cancelled")
_ACTIONS = ("retry", "answer", "skip", "dismiss")


@dataclass(frozen=True, slots=True)
class Application:
    """What the calls of one `Outlast` need of it."""

    registry: Registry
    settings: Settings
    base_url: str

    @property
    def retention_ms(self) -> int:
        """How long a finished job stays, in milliseconds."""
        return round(self.settings.retention * 1000)

    @property
    def horizon_ms(self) -> int:
        """How long the key of a purged job answers, in milliseconds."""
        return round(self.settings.replay_horizon * 1000)


@dataclass(frozen=True, slots=True, init=False)
class Submission:
    """One of `submit_many`; arguments as of `submit`."""

    kind: Kind[Any]
    input: Any
    key: str | None
    unique: Unique | None
    target: TargetRef | None
    not_before: datetime | None

    def __init__(
        self,
        kind: Kind[In],
        input: In,
        *,
        key: str | None = None,
        unique: Unique | None = None,
        target: TargetRef | None = None,
        not_before: datetime | None = None,
    ) -> None:
        given = {"kind": kind, "input": input, "key": key, "unique": unique, "target": target, "not_before": not_before}
        for name, value in given.items():
            object.__setattr__(self, name, value)


def prepare(
    app: Application,
    kind: Kind[Any],
    value: Any,
    *,
    owner: Principal,
    key: str | None,
    not_before: datetime | None,
    unique: Unique | None = None,
    target: TargetRef | None = None,
) -> Admission:
    """The admission of a submit: everything is checked here, before the store is asked."""
    if not isinstance(owner, Principal):
        raise Invalid("owner= takes a Principal: whose job it is.")
    if not isinstance(kind, Kind):
        raise Invalid("submit takes what @jobs.kind or @jobs.task made.")
    if not app.registry.knows(kind):
        raise NotRegistered(f"The kind {kind.name!r} is not registered with this Outlast.")
    body = encode(value, limit=app.settings.max_input, what="input", hint=kind.input_type)
    request = read_request(kind, body, kind.version, limit=app.settings.max_input)
    return _submission(app, kind, request, owner=owner, key=key, not_before=not_before, unique=unique, target=target)


def prepare_many(app: Application, submissions: Iterable[Submission], *, owner: Principal) -> list[Admission]:
    """The admissions of a submit_many, in order."""
    if not isinstance(submissions, Iterable):
        raise Invalid("submit_many takes several Submissions, for example [Submission(report, Report(...))].")
    submissions = list(submissions)
    for place, one in enumerate(submissions):
        if not isinstance(one, Submission):
            raise Invalid(f"Submission {place} is {article(one)}; submit_many takes what Submission(kind, input, ...) makes.")
    prepared = [
        prepare(app, s.kind, s.input, owner=owner, key=s.key, not_before=s.not_before, unique=s.unique, target=s.target)
        for s in submissions
    ]
    first: dict[tuple[str, str], tuple[int, UniquePolicy, str | None]] = {}
    for place, job in enumerate(prepared):
        if job.unique is None:
            continue
        other, policy, key = first.setdefault((job.unique.scope, job.unique.key), (place, job.unique.policy, job.key))
        repeated = other == place or (key is not None and key == job.key)
        if not repeated and not policy == job.unique.policy == "existing":
            raise Invalid(f"Submissions {other} and {place} have the same unique key: one would refuse or replace the other.")
    return prepared


def prepare_sent(
    app: Application,
    name: str,
    version: int | None,
    value: JSON,
    *,
    owner: Principal,
    key: str,
    not_before: datetime | None,
    unique: Unique | None = None,
    target: TargetRef | None = None,
) -> Admission:
    """The admission of a submit from outside, as `prepare_json`.

    Only what `@jobs.kind` declared can be named: a task is a part of a plan, and what comes before it in the plan may be a check.
    """
    kind = app.registry.kind(name, version)
    if isinstance(kind, Task):
        raise NotRegistered("No kind of that name can be submitted from outside: a task cannot be, only what @jobs.kind declares.")
    return prepare_json(app, name, version, value, owner=owner, key=key, not_before=not_before, unique=unique, target=target)


def prepare_json(
    app: Application,
    name: str,
    version: int | None,
    value: JSON,
    *,
    owner: Principal,
    key: str,
    not_before: datetime | None,
    unique: Unique | None = None,
    target: TargetRef | None = None,
) -> Admission:
    """The admission of a submit that names its kind and brings its input as JSON. What is stored has the kind's present version.

    An input of that version is stored as it was sent, one of an earlier version (None: the present one) as it was brought up.
    """
    kind = app.registry.kind(name, version)
    limit = app.settings.max_input
    request = read_request(kind, dump(value, limit=limit, what="input"), version, limit=limit)
    return _submission(app, kind, request, owner=owner, key=key, not_before=not_before, unique=unique, target=target)


def _submission(
    app: Application,
    kind: Kind[Any],
    request: Request,
    *,
    owner: Principal,
    key: str | None,
    not_before: datetime | None,
    unique: Unique | None,
    target: TargetRef | None,
) -> Admission:
    _check_target(target, kind)
    if unique is not None and not isinstance(unique, Unique):
        raise Invalid('unique= takes a Unique: a key and a policy, for example Unique("nightly", "existing").')
    check_may_submit(owner, kind)
    return _admission(
        app,
        kind,
        request,
        tenant=owner.tenant,
        owner=owner.subject,
        caller=caller_of(owner, kind),
        key=key,
        not_before_ms=_due(not_before),
        rerun_of=None,
        effect_root=None,
        unique=unique,
        target=target,
    )


def _check_target(target: TargetRef | None, kind: Kind[Any]) -> None:
    if target is None:
        return
    if not isinstance(target, TargetRef):
        raise Invalid("target= takes a TargetRef: a reference and the version of it that the owner saw.")
    if kind.target is None:
        raise Invalid(f"The kind {kind.name!r} has no target=, so its jobs take none.", pointers=("/target",))


def _due(not_before: datetime | None) -> int | None:
    if not_before is None:
        return None
    if not isinstance(not_before, datetime) or not_before.utcoffset() is None:
        raise Invalid("not_before must be a datetime with a time zone, for example datetime.now(UTC) + timedelta(hours=1).")
    return max(0, round(not_before.timestamp() * 1000))


def _admission(
    app: Application,
    kind: Kind[Any],
    request: Request,
    *,
    tenant: str,
    owner: str,
    caller: str,
    key: str | None,
    not_before_ms: int | None,
    rerun_of: str | None,
    effect_root: str | None,
    unique: Unique | None = None,
    target: TargetRef | None = None,
) -> Admission:
    return admission_of(
        kind,
        request,
        job_id=uuid7(time.time_ns() // 1_000_000, os.urandom(10)),
        correlation_id=clean(correlation_id.get() or uuid.uuid4().hex, limit=MAX_NAME),
        traceparent=traceparent.get(),
        tenant=tenant,
        owner=owner,
        caller=caller,
        key=None if key is None else check_key(key),
        not_before_ms=not_before_ms,
        retention_ms=app.retention_ms,
        rerun_of=rerun_of,
        effect_root=effect_root,
        unique=unique,
        target=target,
    )


def submit(app: Application, prepared: Admission) -> Call[Handle]:
    """Admits one job, or finds the one that its key made before."""
    if prepared.alone:
        return (yield from admitted(app, prepared, (yield admission.admit_alone(prepared))))
    (result,) = yield admission.admit([prepared])
    return (yield from admitted(app, prepared, result))


def admitted(app: Application, prepared: Admission, result: Admitted | KeyTaken | ActiveTaken) -> Call[Handle]:
    """What a submit comes to, of what the store said; KeyReused for another request's key, UniqueActive for another job's."""
    if isinstance(result, KeyTaken):
        raise KeyReused("This idempotency key belongs to another request. Use a new key for a new request.")
    if isinstance(result, ActiveTaken):
        raise (yield from _unique_active(app, prepared, result.job_id, "Another job with this unique key is active. Nothing was written."))
    return (yield from _handle(app, prepared, result))


def _unique_active(app: Application, prepared: Admission, job_id: str, message: str) -> Call[UniqueActive]:
    """The refusal, with the active job if it is the owner's own: another's is not shown, to operators neither."""
    row: JobRow | None = yield status.job(Scope(prepared.tenant, prepared.owner), job_id)
    return UniqueActive(message, job=None if row is None else views.job(app.base_url, app.registry, row))


def submit_many(app: Application, prepared: Sequence[Admission]) -> Call[tuple[Handle, ...]]:
    """Admits all or none, in one transaction."""
    if not prepared:
        return ()
    results: list[Admitted]
    try:
        results = yield admission.admit_all(prepared)
    except KeyHeld as held:
        raise (yield from _unique_active(app, prepared[held.place], held.job_id, held.message)) from None
    handles: list[Handle] = []
    for job, result in zip(prepared, results, strict=True):
        handles.append((yield from _handle(app, job, result)))
    return tuple(handles)


def _handle(app: Application, prepared: Admission, result: Admitted) -> Call[Handle]:
    url = views.url(app.base_url, result.job_id)
    if not result.replayed:
        return Handle(result.job_id, url, "queued")
    left: JobRow | Tombstone | None = result.tombstone
    if left is None:
        own = Scope(prepared.tenant, prepared.owner)
        left = yield status.unreachable(own, own, result.job_id)
    if left is None:
        raise Contended("The job that this key stood for has just been deleted. Repeat the request.")
    return Handle(result.job_id, url, left.state, replayed=True, expired=isinstance(left, Tombstone))


def _found(job_id: str, principal: Principal, deed: Deed) -> Call[JobRow]:
    """The job, if this principal may do this with it; NotFound or Forbidden otherwise."""
    row: JobRow | None = (yield status.job(scope_of(principal, deed), job_id)) if is_job_id(job_id) else None
    if row is None:
        raise (yield from _refusal(principal, job_id))
    return row


def _refusal(principal: Principal, job_id: str) -> Call[OutlastError]:
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
        raise (yield from _refusal(principal, job_id))
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
        raise (yield from _refusal(principal, job_id))
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
        raise (yield from _refusal(principal, job_id))
    if row is None or row.body is None:
        raise NotReady("There is no result yet.", job=views.job(app.base_url, app.registry, found))
    return row.body


def recovery(job_id: str, principal: Principal) -> Call[Recovery]:
    """A job's past and what is next, for its owner."""
    found: tuple[JobRow, RecoveryRows] | None = None
    if is_job_id(job_id):
        found = yield status.recovery(scope_of(principal, "recovery"), job_id)
    if found is None:
        raise (yield from _refusal(principal, job_id))
    return views.recovery(*found)


def cancel(app: Application, job_id: str, principal: Principal, version: int | None) -> Call[JobView]:
    """Cancels; a repeat succeeds."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise Invalid("version is the number that the job showed.")
    scope = scope_of(principal, "cancel")
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    did: Control = yield control.cancel(scope, job_id, version=version, actor=principal.subject, retention_ms=app.retention_ms)
    if did is Control.NOT_FOUND:
        raise (yield from _refusal(principal, job_id))
    view = yield from get(app, job_id, principal)
    if did is Control.ALREADY_COMPLETED:
        raise AlreadyCompleted("The job had completed before.", job=view)
    if did is Control.STALE_VERSION:
        raise StaleVersion("The job changed since the version you named. Look at it and decide again.", job=view)
    return view


def act(app: Application, job_id: str, attention_id: str, *, action: Action, principal: Principal, given: Any) -> Call[JobView]:
    """Takes the owner's decision; a repeat of the same succeeds."""
    view, _ = yield from decide(app, job_id, attention_id, action=action, principal=principal, given=given)
    return view


def decide(
    app: Application, job_id: str, attention_id: str, *, action: Action, principal: Principal, given: Any
) -> Call[tuple[JobView, bool]]:
    """As `act`; and whether this same request had been taken before."""
    if action not in _ACTIONS:
        raise Invalid(f"action is one of {', '.join(_ACTIONS)}.", code="not_offered")
    answer: str | None = None
    if action == "answer":
        answer = encode(given, limit=app.settings.max_input, what="answer")
    elif given is not None:
        raise Invalid("Only the action 'answer' takes an input.")
    check_text(attention_id, what="attention id", limit=MAX_NAME)
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    scope = scope_of(principal, "retry" if action == "retry" else "decide")
    if answer is not None:
        yield from _fitting(app, scope, job_id, attention_id, answer)
    did: Control = yield control.act(
        scope,
        job_id,
        attention_id,
        action=action,
        answer=answer,
        request_hash=_digest(action, None if answer is None else canonical(parse(answer, limit=app.settings.max_input))),
        actor=principal.subject,
        retention_ms=app.retention_ms,
    )
    if did is Control.NOT_FOUND:
        raise (yield from _refusal(principal, job_id))
    if did in _UNDECIDED:
        refusal = _UNDECIDED[did]()
        raise refusal
    view = yield from get(app, job_id, principal)
    if did is Control.SUPERSEDED:
        raise Conflict("This question was settled otherwise, or is none of this job.", job=view, code="attention_superseded")
    return view, did is Control.REPEATED


_UNDECIDED: Mapping[Control, Callable[[], OutlastError]] = {
    Control.NOT_OFFERED: lambda: Invalid("This action is not offered. The job's attention names those that are.", code="not_offered"),
    Control.OWNERS_ALONE: lambda: Forbidden(
        "Whether a call of unknown outcome is made again is for the owner of the job to say: it may happen twice."
    ),
    Control.MISANSWERED: lambda: Invalid(ANSWER_SHAPE),
}
"""Why a decision was not taken."""


def _digest(action: Action, answer: str | None) -> str:
    """By what a repeated decision is known: whoever repeats it, for the same question."""
    return hashlib.sha256(f"{action}\n{answer or ''}".encode()).hexdigest()


def _fitting(app: Application, scope: Scope, job_id: str, attention_id: str, answer: str) -> Call[None]:
    """Invalid, with its places, for an answer that does not look as the question says; the handler checks again when it reads it."""
    shape = yield from _shape(scope, job_id, attention_id)
    if shape is not None:
        json_schema.check(parse(answer, limit=app.settings.max_input), shape, what="answer")


def _shape(scope: Scope, job_id: str, attention_id: str) -> Call[Mapping[str, JSON] | None]:
    shape: str | None = yield status.answer_schema(scope, job_id, attention_id)
    return None if shape is None else cast("dict[str, JSON]", json.loads(shape))


def answer_shape(job_id: str, attention_id: str, principal: Principal) -> Call[Mapping[str, JSON] | None]:
    """The JSON Schema of what answers this question; None where nothing is said, or there is no such question."""
    scope = scope_of(principal, "decide")
    check_text(attention_id, what="attention id", limit=MAX_NAME)
    return (yield from _shape(scope, job_id, attention_id)) if is_job_id(job_id) else None


def takeover(app: Application, job_id: str, principal: Principal, version: int | None) -> Call[JobView]:
    """The owner takes their target over: nothing is attached by itself from here on. A repeat succeeds."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise Invalid("version is the number that the job showed.")
    scope = scope_of(principal, "decide")
    did: Control = (yield targets.takeover(scope, job_id, version=version)) if is_job_id(job_id) else Control.NOT_FOUND
    if did is Control.NOT_FOUND:
        raise (yield from _refusal(principal, job_id))
    view = yield from get(app, job_id, principal)
    if did is Control.NO_TARGET:
        raise Conflict("This job has no target that could be taken over.", job=view, code="no_target")
    if did is Control.STALE_VERSION:
        raise StaleVersion("The job changed since the version you named. Look at it and decide again.", job=view)
    return view


def replay_job(app: Application, job_id: str, principal: Principal, reason: str) -> Call[JobView]:
    """Every question of the job that offers a retry is taken up again; by an operator, with a reason on record.

    But for those about a call of unknown outcome, which stay open: a repeat of that call is for the owner to choose.
    """
    view, _ = yield from replayed(app, job_id, principal, reason)
    return view


def replayed(app: Application, job_id: str, principal: Principal, reason: str) -> Call[tuple[JobView, bool]]:
    """As `replay_job`; and whether nothing was open any more, so that nothing was done."""
    scope = scope_of(principal, "replay")
    if scope.owner is not None:
        raise (yield from _refusal(principal, job_id))
    check_text(reason, what="reason", limit=MAX_REASON)
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    did: Control = yield replay.replay(
        scope,
        job_id,
        audit_id=uuid7(time.time_ns() // 1_000_000, os.urandom(10)),
        actor=principal.subject,
        reason=reason,
        request_hash=_digest("retry", None),
        retention_ms=app.retention_ms,
    )
    if did is Control.NOT_FOUND:
        raise (yield from _refusal(principal, job_id))
    if did is Control.NOT_OFFERED:
        raise Invalid("Nothing that this job asks offers a retry; its owner has to decide.", code="not_offered")
    view = yield from get(app, job_id, principal)
    if did is Control.ALREADY_COMPLETED:
        raise AlreadyCompleted("The job had completed before.", job=view)
    if did is Control.SUPERSEDED:
        raise Conflict("The job was cancelled, and stays so. Run it again as a new job.", job=view, code="attention_superseded")
    return view, did is Control.REPEATED


def pause_queue(name: str, principal: Principal, reason: str) -> Call[QueueChange]:
    """Nothing of the queue is claimed any more; by an operator, with a reason on record. A repeat succeeds and changes nothing."""
    return (yield from _changed(queues.pause, name, principal, reason))


def resume_queue(name: str, principal: Principal, reason: str) -> Call[QueueChange]:
    """The queue's tasks may be claimed again; by an operator, with a reason on record. A repeat succeeds and changes nothing."""
    return (yield from _changed(queues.resume, name, principal, reason))


def _changed(change: Callable[..., Operation[Control]], name: str, principal: Principal, reason: str) -> Call[QueueChange]:
    _check_operator(principal)
    check_name(name, what="queue name")
    check_text(reason, what="reason", limit=MAX_REASON)
    did: Control = yield change(
        name,
        audit_id=uuid7(time.time_ns() // 1_000_000, os.urandom(10)),
        tenant=principal.tenant,
        actor=principal.subject,
        reason=reason,
    )
    return QueueChange(views.queue(name, *(yield queues.stand())), did is Control.DONE)


def list_queues(principal: Principal) -> Call[tuple[QueueView, ...]]:
    """Every queue in which something stands or that is paused, for operators."""
    _check_operator(principal)
    return views.queues(*(yield queues.stand()))


def _check_operator(principal: Principal) -> None:
    """Queues are no tenant's: an operator's word about one goes for the tasks of all tenants."""
    if scope_of(principal, "queues").owner is not None:
        raise Forbidden("Only operators see queues, pause and resume them.")


def rerun_job(app: Application, job_id: str, principal: Principal, key: str | None) -> Call[Handle]:
    """A new job of the same request, linked to the old one."""
    scope = scope_of(principal, "rerun")
    source: RerunSource | None = (yield status.rerun_source(scope, job_id)) if is_job_id(job_id) else None
    if source is None:
        raise (yield from _refusal(principal, job_id))
    if source.state not in FINAL_JOBS:
        view = yield from get(app, job_id, principal)
        raise Conflict(
            "Only a job that is final can be run again. Cancel it first, or act on its attention.",
            job=view,
            code="not_final",
        )
    kind = app.registry.kind(source.kind, source.schema_version)
    check_may_submit(principal, kind)
    try:
        request = read_request(kind, source.input, source.schema_version, limit=app.settings.max_input)
    except Invalid as error:  # its places are those of a stored input, and no body has them
        raise Invalid(f"What that job was asked for cannot be asked for once more. {error.message}") from error
    prepared = _admission(
        app,
        kind,
        request,
        tenant=scope.tenant,
        owner=source.owner,
        caller=source.caller,
        key=key,
        not_before_ms=None,
        rerun_of=job_id,
        effect_root=None if source.state == "completed" else source.effect_root,
        target=None if source.target_ref is None else TargetRef(source.target_ref, source.target_version or ""),
    )
    result: Admitted | KeyTaken | ActiveTaken | None = yield rerun.admit_rerun(scope, prepared)
    if result is None:
        raise (yield from _refusal(principal, job_id))
    return (yield from admitted(app, prepared, result))


def forget_person(subject: str, principal: Principal, reason: str) -> Call[Forgotten]:
    """Deletes everything that is a person's in the tenant of an operator, with a reason on record."""
    scope = scope_of(principal, "forget")
    if scope.owner is not None:
        raise Forbidden("Only an operator of the tenant may delete what is a person's.")
    check_text(subject, what="subject", limit=MAX_NAME)
    check_text(reason, what="reason", limit=MAX_REASON)
    audit_id = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
    yield forgetting.record(
        audit_id, tenant=scope.tenant, actor=principal.subject, subject=person_digest(scope.tenant, subject), reason=reason
    )
    made: list[ScheduleRow] = yield schedules.listed(scope.tenant, subject)
    for schedule in made:  # before the jobs, and waiting for who fires one: what it has just made is met below
        yield schedules.remove(schedule.key)
    jobs = cancelled = stopping = keys = 0
    before: str | None = None
    while ids := (yield forgetting.owned(scope.tenant, subject, before, ERASED_AT_ONCE)):
        erased: Erased = yield forgetting.erase(scope.tenant, subject, ids, audit_id=audit_id, actor=principal.subject)
        jobs, cancelled, stopping = jobs + erased.jobs, cancelled + erased.cancelled, stopping + erased.stopping
        before = ids[-1]
    while dropped := (yield forgetting.drop_tombstones(scope.tenant, subject, KEYS_AT_ONCE)):
        keys += dropped
    yield forgetting.drop_quotas(scope.tenant, subject)
    return Forgotten(jobs, cancelled, stopping, keys, len(made))


def person_digest(tenant: str, subject: str) -> str:
    """What stands for a person in the record of their deletion: whoever knows the name can compute it, nobody can read the name from it."""
    return "sha256:" + hashlib.sha256(f"{tenant}\n{subject}".encode()).hexdigest()


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


def still_admitting(error: Locked, prepared: Iterable[Admission]) -> OutlastError:
    """What an admission that met a lock for too long is refused with: with a key it is that key's, or under a quota perhaps that one's."""
    prepared = tuple(prepared)
    if all(job.key is None for job in prepared):
        return error
    where = "of this owner" if any(job.quota is not None for job in prepared) else "with this key"
    return StillAdmitting(f"A request {where} is still being admitted by another transaction. Repeat it.")


def queues_of(prepared: Iterable[Admission]) -> tuple[str, ...]:
    """The queues in which an admission may have made work."""
    return tuple(sorted({task.queue for job in prepared for task in job.tasks if not task.parents}))
