"""Problem documents as responses."""

from __future__ import annotations

import msgspec
from starlette.responses import Response
from starlette.types import Scope

from outlast.http import wire
from outlast.http.problems import Problem, ProblemDocument
from outlast.observe.correlation import correlation_id

MEDIA_TYPE = "application/problem+json"


def base_of(configured: str, scope: Scope) -> str:
    """Where the API is mounted: as the application was told, else as the host mounted it."""
    root: str = scope.get("root_path", "")
    return configured or root.rstrip("/")


def problem_response(problem: Problem, configured: str, scope: Scope) -> Response:
    """The document of a problem."""
    base = base_of(configured, scope)
    correlation = correlation_id.get() or ""
    job = None if problem.job is None else msgspec.Raw(wire.encode(wire.job(problem.job, base)))
    document = ProblemDocument(
        type=f"{base}/problems#{problem.code}",
        title=problem.entry.title,
        status=problem.entry.status,
        detail=problem.detail,
        instance=f"urn:outlast:request:{correlation}",  # not the address, which is input, and tells one malformed id from another
        code=problem.code,
        retryable=problem.retryable,
        correlation_id=correlation,
        pointers=problem.pointers,
        job=job,
    )
    return Response(msgspec.json.encode(document), problem.entry.status, problem.headers, media_type=MEDIA_TYPE)
