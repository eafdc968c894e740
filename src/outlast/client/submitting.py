"""Asking for jobs, once for both colours: what a submit, many of them, and a rerun write and are told."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outlast.client import views
from outlast.client.calls import Application, Call
from outlast.client.reading import get, refusal
from outlast.domain.access import Scope, scope_of
from outlast.domain.conflicts import Conflict, UniqueActive
from outlast.domain.errors import Contended, Invalid, KeyReused, Locked, NotRegistered, OutlastError, StillAdmitting
from outlast.domain.ids import is_job_id, uuid7
from outlast.domain.kinds import In, Kind, Task
from outlast.domain.model import (
    MAX_NAME,
    Handle,
    Principal,
    TargetRef,
    Unique,
    UniquePolicy,
)
from outlast.domain.payload import JSON, check_key, clean, dump
from outlast.domain.refusal import article
from outlast.domain.requests import Request, admission_of, caller_of, check_may_submit, read_request
from outlast.domain.states import FINAL_JOBS
from outlast.domain.values import encode
from outlast.domain.work import (
    ActiveTaken,
    Admission,
    Admitted,
    JobRow,
    KeyHeld,
    KeyTaken,
    RerunSource,
    Tombstone,
)
from outlast.observe.correlation import correlation_id, traceparent
from outlast.store.programs import admission, rerun, status


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
    request = read_request(kind, body, None, limit=app.settings.max_input)
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
        raise (yield from unique_active(app, prepared, result.job_id, "Another job with this unique key is active. Nothing was written."))
    return (yield from _handle(app, prepared, result))


def unique_active(app: Application, prepared: Admission, job_id: str, message: str) -> Call[UniqueActive]:
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
        raise (yield from unique_active(app, prepared[held.place], held.job_id, held.message)) from None
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


def rerun_job(app: Application, job_id: str, principal: Principal, key: str | None) -> Call[Handle]:
    """A new job of the same request, linked to the old one."""
    scope = scope_of(principal, "rerun")
    source: RerunSource | None = (yield status.rerun_source(scope, job_id)) if is_job_id(job_id) else None
    if source is None:
        raise (yield from refusal(principal, job_id))
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
        raise (yield from refusal(principal, job_id))
    return (yield from admitted(app, prepared, result))


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
