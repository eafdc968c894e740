"""Submits, shows and lists jobs, their tasks, results and past."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from outlast.client import reading, submitting
from outlast.domain.conflicts import Expired, NotReady
from outlast.domain.errors import Invalid, NotFound, NotRegistered
from outlast.domain.evolution import spoken
from outlast.domain.kinds import Task
from outlast.domain.model import Handle, JobView, TargetRef, Unique
from outlast.http import bodies, etags, wire
from outlast.http.call import Call, header, query, unchanged
from outlast.http.events import wait
from outlast.http.problems import Problem, problem_of
from outlast.observe.correlation import correlation_id
from outlast.observe.events import JobAdmitted
from outlast.observe.hub import emit

_BARE: Final = re.compile(r"[!-~]{1,255}")
_QUOTED: Final = re.compile(r'"((?:[ !\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_CREATED, _OK = 202, 200
_REVALIDATE: Final = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}


def idempotency_key(request: Request) -> str:
    """The key of a request: 1 to 255 visible ASCII characters, bare or as a quoted string; Problem 400."""
    values = request.headers.getlist("idempotency-key")
    if not values:
        raise Problem("invalid_key", "Send an Idempotency-Key header, made once for this request and repeated with it.")
    if len(values) > 1:
        raise Problem("invalid_key", "The Idempotency-Key header stands there more than once; send it once.")
    text = values[0].strip()
    quoted = _QUOTED.fullmatch(text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted is not None else text
    if _BARE.fullmatch(key) is None or (quoted is None and text.startswith('"')):
        raise Problem("invalid_key", "An Idempotency-Key has 1 to 255 visible ASCII characters without spaces, bare or in quotes.")
    return key


async def submit(call: Call) -> Response:
    """Admits a job; the same key and request again give the same job as it stands."""
    query(call.request)
    key = idempotency_key(call.request)
    app = call.desk.app
    sent = await bodies.read_json(call.request, wire.Submit, limit=app.settings.max_input + bodies.ENVELOPE)
    try:
        prepared = submitting.prepare_sent(
            app,
            sent.kind,
            sent.schema_version,
            sent.input,
            owner=call.principal,
            key=key,
            target=_target(sent.target),
            not_before=sent.not_before,
            unique=None if sent.unique is None else _unique(sent.unique),
        )
    except NotRegistered as error:
        known = app.registry.kinds.get(sent.kind)
        if known is None or isinstance(known, Task):
            said = "There is no kind of that name here. Only what @jobs.kind declares is submitted from outside; a task is not."
            raise Problem("not_registered", said, pointers=("/kind",)) from error
        said = f"This kind has {spoken(known.upgrades.readable)} here, and no other."
        raise Problem("not_registered", said, pointers=("/schema_version",)) from error
    except Invalid as error:
        raise of_input(error) from error
    return await admitted(call, await call.desk.submit(prepared))


def _unique(sent: wire.UniqueKey) -> Unique:
    try:
        return Unique(sent.key, sent.policy)
    except Invalid as error:  # a line break at its end, which the pattern of a schema lets pass
        raise Problem("invalid", error.message, pointers=("/unique/key",)) from error


def _target(sent: wire.Target | None) -> TargetRef | None:
    try:
        return None if sent is None else TargetRef(sent.ref, sent.version)
    except Invalid as error:
        raise Problem("invalid", error.message, pointers=("/target",)) from error


def of_input(error: Invalid) -> Problem:
    """A refused input or answer: its places are inside the body's member `input`."""
    problem = problem_of(error)
    problem.pointers = tuple(place if place == "/target" else f"/input{place}" for place in error.pointers)
    return problem


async def admitted(call: Call, handle: Handle) -> Response:
    """The answer to a submit or rerun: the job as it stands now, or what is left of it."""
    try:
        job = await call.desk.drive(reading.get(call.desk.app, handle.id, call.principal))
    except Expired as expired:
        return _left(call, handle, expired)
    emit(JobAdmitted(job.id, job.kind, handle.replayed, correlation_id.get() or job.correlation_id))
    headers = {"Location": f"{call.base}/v1/jobs/{job.id}", "Cache-Control": "no-store"}
    if handle.replayed:
        headers["Idempotency-Replayed"] = "true"
    return call.show(job, _OK if job.final and handle.replayed else _CREATED, headers)


def _left(call: Call, handle: Handle, expired: Expired) -> Response:
    headers = {"Location": f"{call.base}/v1/jobs/{handle.id}", "Cache-Control": "no-store", "Idempotency-Replayed": "true"}
    return Response(wire.encode(wire.purged(handle.id, expired)), _OK, headers, media_type="application/json")


async def list_jobs(call: Call) -> Response:
    """The principal's own jobs, newest first."""
    wanted = query(call.request, "state", "kind", "target", "limit", "cursor")
    limit = wanted.get("limit", "50")
    if _NUMBER.fullmatch(limit) is None:
        raise Problem("invalid_query", f"limit is a whole number from 1 to {reading.MAX_PAGE}.")
    try:
        page = await call.desk.drive(
            reading.list_jobs(
                call.desk.app,
                call.principal,
                state=wanted.get("state"),
                kind=wanted.get("kind"),
                target=wanted.get("target"),
                limit=int(limit),
                cursor=wanted.get("cursor"),
            )
        )
    except Invalid as error:
        raise Problem("invalid_query", error.message) from error
    for job in page.items:
        call.service.pacing.retry_after(job)  # it learns how long such jobs take
    return _json(wire.encode(wire.job_list(page, call.base)))


async def get_job(call: Call) -> Response:
    """One job; 304 when nothing changed; with `wait` as soon as it changes."""
    said = query(call.request, "wait").get("wait")
    if said is not None and _NUMBER.fullmatch(said) is None:
        raise Problem("invalid_query", "wait is a whole number of seconds.")
    return await wait(call, await call.job(), 0 if said is None else int(said))


async def list_tasks(call: Call) -> Response:
    """The tasks of a job."""
    query(call.request)
    views = await call.desk.drive(reading.tasks(call.job_id, call.principal))
    body = wire.encode(wire.task_list(views))
    return _tagged(call, body, etags.of_bytes(body, weak=True))


async def get_result(call: Call) -> Response:
    """The output that made the job usable, or that of one task by its number."""
    query(call.request)
    named: str | None = call.request.path_params.get("no")
    if named is not None and _NUMBER.fullmatch(named) is None:
        named = "999999999"  # a task that no plan has, so that it costs what an unknown one does
    try:
        text = await call.desk.drive(reading.output(call.desk.app, call.job_id, call.principal, None if named is None else int(named)))
    except NotFound:
        raise NotFound("There is no such job.") from None
    except NotReady as error:
        raise _not_ready(call, error.job) from error
    body = text.encode()
    return _tagged(call, body, etags.of_bytes(body, weak=False))


def _not_ready(call: Call, job: JobView) -> Problem:
    if job.final:
        return Problem("not_ready", "The job has ended without this result.", job=job, retryable=False)
    headers = {"Retry-After": str(call.service.pacing.retry_after(job) or 1)}
    return Problem("not_ready", "There is no result yet. Ask again later, or follow the job's events.", job=job, headers=headers)


async def get_recovery(call: Call) -> Response:
    """What happened so far and what is next."""
    query(call.request)
    past = await call.desk.drive(reading.recovery(call.job_id, call.principal))
    return Response(
        wire.encode(wire.recovery(await call.job(), past, call.base)), headers={"Cache-Control": "no-store"}, media_type="application/json"
    )


def _json(body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, headers={**_REVALIDATE, **(headers or {})}, media_type="application/json")


def _tagged(call: Call, body: bytes, etag: str) -> Response:
    if etags.matches(header(call.request, "if-none-match"), etag):
        return unchanged({**_REVALIDATE, "ETag": etag})
    return _json(body, {"ETag": etag})
