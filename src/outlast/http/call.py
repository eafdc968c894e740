"""One request on its way: who calls, on what, with what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from outlast.client import reading
from outlast.client.desk import Desk
from outlast.domain.ids import is_job_id
from outlast.domain.model import JobView, Principal
from outlast.http import etags, wire
from outlast.http.authentication import Authenticator
from outlast.http.limits import Limits
from outlast.http.pacing import Pacing
from outlast.http.problems import Problem
from outlast.http.watcher import Watcher

NOBODYS = "00000000-0000-7000-8000-000000000000"
"""Asked for in place of what is no id, so that a malformed id costs what an unknown one does."""


@dataclass(frozen=True, slots=True)
class Service:
    """What the endpoints of one application share. `development`: anybody is whoever they say, so the page offers a sign-in."""

    desk: Desk
    authenticator: Authenticator
    pacing: Pacing
    limits: Limits
    watcher: Watcher
    development: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A request, with its principal where the route asks for one."""

    request: Request
    service: Service
    base: str
    caller: Principal | None

    @property
    def principal(self) -> Principal:
        """Who calls. The dispatch has seen to it that there is somebody."""
        if self.caller is None:
            raise Problem("unauthenticated", "Sign in first.")
        return self.caller

    @property
    def desk(self) -> Desk:
        """Runs calls on the store."""
        return self.service.desk

    @property
    def job_id(self) -> str:
        """The id in the path, or one that nobody has."""
        named: str = self.request.path_params["id"]
        return named if is_job_id(named) else NOBODYS

    async def job(self) -> JobView:
        """The job in the path as it stands; NotFound."""
        return await self.desk.drive(reading.get(self.desk.app, self.job_id, self.principal))

    def show(self, job: JobView, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """A job as an answer, with its tag and, while it goes on, when to ask again."""
        return Response(
            wire.encode(wire.job(job, self.base)), status, {**self.job_headers(job), **(headers or {})}, media_type="application/json"
        )

    def job_headers(self, job: JobView) -> dict[str, str]:
        """ETag, Retry-After and caching of an answer that shows a job."""
        headers = {"ETag": etags.strong(job), "Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
        retry_after = self.service.pacing.retry_after(job)
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        return headers

    @property
    def path(self) -> str:
        """The path of the place where the API is mounted, for links and cookies."""
        return urlsplit(self.base).path.rstrip("/")


def unchanged(headers: Mapping[str, str]) -> Response:
    """304, with the headers that the full answer would have."""
    return Response(status_code=304, headers=dict(headers))


def header(request: Request, name: str) -> str | None:
    """The one value of a header; Problem 400 when it stands there twice."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise Problem("bad_request", f"The header {name} stands there more than once; send it once.")
    return values[0] if values else None


def query(request: Request, *known: str) -> Mapping[str, str]:
    """The query's parameters; Problem 400 for one that is not known, or stands there twice, or has no value."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Problem(
                "invalid_query", f"The query parameters here are {', '.join(known)}." if known else "There are no query parameters here."
            )
        if name in found or not value:
            raise Problem("invalid_query", f"Give {name} once, with a value.")
        found[name] = value
    return found
