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
from outlast.domain.errors import Invalid, NotRegistered, OutlastError, QuotaExceeded
from outlast.domain.model import Handle, Principal
from outlast.domain.refusal import article
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
    if not isinstance(jobs, Outlast):
        raise Invalid(f"The jobs are an Outlast, not {article(jobs)}.")
    base = jobs.desk.app.base_url
    prefix = urlsplit(base).path.rstrip("/")
    if not base or not prefix.startswith("/"):
        raise Invalid("Say where people find their work, below the application's own routes: Outlast(..., base_url='/jobs').")
    if path is None:
        return prefix
    if not isinstance(path, str) or not path.startswith("/") or not path.strip("/"):
        raise Invalid("path= is a path from the root, below the application's own routes: path='/jobs'.")
    return path.rstrip("/")


def signed_in(principal: object) -> Principal:
    """Who calls; Problem 401 for nobody."""
    if principal is None:
        raise Problem("unauthenticated", "Sign in, and repeat the request.", headers={"WWW-Authenticate": 'Bearer realm="outlast"'})
    if not isinstance(principal, Principal):
        raise TypeError("what says who calls must return a Principal or None")
    return principal


def told(handle: Handle) -> dict[str, str]:
    """What the body of a 202 says of the job."""
    return {"id": handle.id, "state": handle.state, "url": handle.url}


def headers_of(handle: Handle) -> dict[str, str]:
    """Where the job's status is, and when to ask for it."""
    return {"Location": handle.url, "Retry-After": str(RETRY_SECONDS)}


def refusal(application: Application, error: OutlastError | Problem, scope: Scope, *, route: str) -> Response:
    """The problem document of what an application's own route was refused with; a store that fails is in the log too.

    What the route's own code did wrong is no refusal: it is raised again, for the application to answer and to log as any other defect
    of its own. That is a misuse of Outlast, and an argument that cannot be used, but for an input that does not fit (with pointers) and
    an action that the job does not offer.
    """
    if isinstance(error, NotRegistered) or (isinstance(error, Invalid) and not error.pointers and error.code == Invalid.code):
        raise error
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
