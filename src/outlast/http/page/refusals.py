"""Problems for people: the same words and status, as a page."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.responses import Response
from starlette.types import Scope

from outlast.domain.ids import is_job_id
from outlast.http.page import messages
from outlast.http.page.frame import Frame
from outlast.http.page.rendering import render, see_other
from outlast.http.page.sign_in import inside
from outlast.http.problems import Problem
from outlast.observe.correlation import correlation_id

_UNREADABLE: Final = (401, 404, 410)
MARK: Final = "outlast.page"
"""Where the dispatch notes in a request's scope whether what was asked for is a page."""


def is_for_people(scope: Scope) -> bool:
    """Whether a refusal is to be a page: on the page's own routes, and where nothing is but a browser looks for something."""
    marked: bool | None = scope.get(MARK)
    if marked is not None:
        return marked
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    accepts = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return not path.startswith("/v1/") and b"text/html" in accepts


def refusal(problem: Problem, base: str, scope: Scope, *, development: bool) -> Response:
    """The page of a problem; in development the way to the sign-in, for who is not signed in."""
    frame = Frame(urlsplit(base).path.rstrip("/"), development)
    job = scope.get("path_params", {}).get("id", "")
    if problem.code == "unauthenticated" and development:
        return see_other(frame, f"/sign-in?{urlencode({'next': _wanted(scope, job)})}")
    return render(
        frame,
        "refusal.html",
        problem.entry.status,
        problem.headers,
        problem=problem,
        detail=messages.FOR_PAGES.get(problem.code, problem.detail),
        job=job if is_job_id(job) and problem.entry.status not in _UNREADABLE else None,
        correlation=correlation_id.get() or "",
    )


def _wanted(scope: Scope, job: str) -> str:
    """Where who signs in now wanted to be: the address itself; after a form, the page of its job."""
    if scope["method"] not in ("GET", "HEAD"):
        return inside(f"/jobs/{job}")
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    query = scope.get("query_string", b"").decode("latin-1")
    return inside(f"{path or '/'}{query and '?'}{query}")
