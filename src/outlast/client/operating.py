"""What operators do, once for both colours and on record: replays, pauses of queues, the deletion of a person's jobs."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable

from outlast.client import views
from outlast.client.calls import Application, Call
from outlast.client.deciding import digest_of
from outlast.client.reading import get, refusal
from outlast.domain.access import scope_of
from outlast.domain.conflicts import AlreadyCompleted, Conflict
from outlast.domain.errors import Forbidden, Invalid, NotFound
from outlast.domain.ids import is_job_id, uuid7
from outlast.domain.kinds import check_name
from outlast.domain.model import (
    MAX_NAME,
    Forgotten,
    JobView,
    Principal,
    QueueChange,
    QueueView,
)
from outlast.domain.payload import check_text
from outlast.domain.schedules import ScheduleRow
from outlast.domain.work import (
    Control,
    Erased,
)
from outlast.store.program import Operation
from outlast.store.programs import forgetting, queues, replay, schedules

MAX_REASON = 500
ERASED_AT_ONCE = 20
KEYS_AT_ONCE = 500


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
        raise (yield from refusal(principal, job_id))
    check_text(reason, what="reason", limit=MAX_REASON)
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    did: Control = yield replay.replay(
        scope,
        job_id,
        audit_id=uuid7(time.time_ns() // 1_000_000, os.urandom(10)),
        actor=principal.subject,
        reason=reason,
        request_hash=digest_of("retry", None),
        retention_ms=app.retention_ms,
    )
    if did is Control.NOT_FOUND:
        raise (yield from refusal(principal, job_id))
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
