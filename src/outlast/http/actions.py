"""What the owner does with a job: cancel it, decide a question, run it again."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from outlast.client import deciding, reading, submitting
from outlast.domain.conflicts import AlreadyCompleted
from outlast.domain.errors import Invalid
from outlast.domain.model import JobView
from outlast.http import bodies, etags, wire
from outlast.http.call import Call, header, query
from outlast.http.jobs import admitted, idempotency_key, of_input
from outlast.http.problems import Problem
from outlast.observe.events import JobControlled
from outlast.observe.hub import emit

_OK, _ACCEPTED = 200, 202


async def cancel(call: Call) -> Response:
    """Cancels. The order of the checks: 404, 403, already cancelled, 409, 428, 412."""
    query(call.request)
    return call.show(await cancelled(call, header(call.request, "if-match")))


async def cancelled(call: Call, if_match: str | None) -> JobView:
    """The job after its cancel. Without a precondition only where there is nothing left to decide."""
    job = await call.job()
    if if_match is None:
        if job.state == "completed":
            raise AlreadyCompleted("The job had completed before.", job=job)
        if job.state == "cancelled":
            return await call.desk.drive(deciding.cancel(call.desk.app, call.job_id, call.principal, None))
        tag = etags.strong(job)
        raise Problem("precondition_required", f"Send If-Match with the job's ETag, now {tag}, or * for whatever it is.", job=job)
    version = etags.wanted_version(if_match, job.version)
    view = await call.desk.drive(deciding.cancel(call.desk.app, call.job_id, call.principal, version))
    emit(JobControlled(view.id, "cancel", view.correlation_id))
    return view


async def act(call: Call) -> Response:
    """Decides an open question; the same request again is answered 200."""
    query(call.request)
    await call.job()  # who may not see it learns nothing from what the body is refused for
    sent = await bodies.read_json(call.request, wire.Act, limit=call.desk.app.settings.max_input + bodies.ENVELOPE)
    given: Any = None if sent.input is msgspec.UNSET else sent.input
    if sent.action == "answer" and sent.input is msgspec.UNSET:
        raise Problem("invalid", "The action 'answer' needs an input: the answer itself.", pointers=("/input",))
    try:
        view, repeated = await call.desk.drive(
            deciding.decide(call.desk.app, call.job_id, sent.attention_id, action=sent.action, principal=call.principal, given=given)
        )
    except Invalid as error:
        raise of_input(error) from error
    emit(JobControlled(view.id, sent.action, view.correlation_id))
    return call.show(view, _OK if repeated else _ACCEPTED)


async def rerun(call: Call) -> Response:
    """A new job of the same request; the same key gives the same new job."""
    query(call.request)
    key = idempotency_key(call.request)
    handle = await call.desk.drive(submitting.rerun_job(call.desk.app, call.job_id, call.principal, key))
    call.desk.store.announce(("*",))
    return await admitted(call, handle)


async def takeover(call: Call) -> Response:
    """The owner takes the target over. The order of the checks: 404, 403, already taken over, 409, 428, 412."""
    query(call.request)
    if_match = header(call.request, "if-match")
    job = await call.desk.drive(reading.owned(call.desk.app, call.job_id, call.principal))
    version: int | None = None
    if if_match is not None:
        version = etags.wanted_version(if_match, job.version)
    elif job.target is not None and job.taken_over_at is None:
        tag = etags.strong(job)
        raise Problem("precondition_required", f"Send If-Match with the job's ETag, now {tag}, or * for whatever it is.", job=job)
    view = await call.desk.drive(deciding.takeover(call.desk.app, call.job_id, call.principal, version))
    if job.taken_over_at is None:
        emit(JobControlled(view.id, "takeover", view.correlation_id))
    return call.show(view)


async def attach(call: Call) -> Response:
    """The owner applies a parked result to the version of the target that they name."""
    query(call.request)
    await call.desk.drive(
        reading.owned(call.desk.app, call.job_id, call.principal)
    )  # who may not, learns nothing of what the body is refused for
    sent = await bodies.read_json(call.request, wire.Apply, limit=bodies.ENVELOPE)
    view = await call.desk.attach(call.job_id, sent.no, call.principal, sent.target_version)
    emit(JobControlled(view.id, "attach", view.correlation_id))
    return call.show(view)
