"""What an application's own routes answer with: a job that was accepted, and refusals as the HTTP API words them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from outlast.app import Outlast
from outlast.domain.errors import Invalid, OutlastError, QuotaExceeded
from outlast.domain.model import Handle
from outlast.http.answers import problem_response
from outlast.http.app import Application
from outlast.http.guard import correlation_of
from outlast.http.problems import RETRY_SECONDS, Problem, problem_of
from outlast.observe.correlation import correlation_id, traceparent
from outlast.observe.events import RequestFailed, reason_of
from outlast.observe.hub import emit

ACCEPTED: Final = 202
_DEFECT: Final = 500


def prefix_of(jobs: Outlast, path: str | None) -> str:
    """The path to mount at: the one that is named, else that of base_url. Invalid where links would not lead there."""
    base = jobs.desk.app.base_url
    prefix = (urlsplit(base).path if path is None else path).rstrip("/")
    if not base or not prefix.startswith("/"):
        raise Invalid("Say where people find their work, below the application's own routes: Outlast(..., base_url='/jobs').")
    return prefix


def told(handle: Handle) -> dict[str, str]:
    """What the body of a 202 says of the job."""
    return {"id": handle.id, "state": handle.state, "url": handle.url}


def headers_of(handle: Handle) -> dict[str, str]:
    """Where the job's status is, and when to ask for it."""
    return {"Location": handle.url, "Retry-After": str(RETRY_SECONDS)}


def refusal(application: Application, error: OutlastError | Problem, scope: Scope, *, route: str) -> Response:
    """The problem document of what an application's own route was refused with; a store that fails is in the log too.

    A misuse of Outlast is no refusal: it is raised again, for the application to answer and to log as any other defect of its own.
    """
    service = application.service
    retry_after = service.pacing.room_after(error.kind) if isinstance(error, QuotaExceeded) else None
    problem = error if isinstance(error, Problem) else problem_of(error, retry_after=retry_after)
    correlation = correlation_id.get() or ""
    if problem.entry.status == _DEFECT:
        raise error
    if problem.entry.status > _DEFECT:
        emit(RequestFailed(route, reason_of(error), correlation))
    response = problem_response(problem, service.desk.app.base_url, scope)
    response.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Request-Id": correlation})
    return response


@contextmanager
def correlated(headers: Headers) -> Generator[None]:
    """What is submitted in the block carries the request's id and trace, as a submit over the HTTP API does."""
    given, trace = correlation_of(headers)
    tokens = (correlation_id.set(given), traceparent.set(trace))
    try:
        yield
    finally:
        correlation_id.reset(tokens[0])
        traceparent.reset(tokens[1])
