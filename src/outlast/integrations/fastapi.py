"""FastAPI: the HTTP side inside an application's lifespan, who calls by one of its dependencies, submits in the request's transaction.

app = FastAPI()
mount(app, jobs, identify=principal)

@app.post("/orders", status_code=202)
async def create(order: Order, db: Session, submit: Annotated[Submit, Depends(submitter(jobs, identify=principal, session=session))]):
    db.add(order_of(order))
    handle = await submit(confirm, order)
    await db.commit()
    return accepted(handle)
"""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from types import FrameType
from typing import Any, Final

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.params import Depends as Dependency
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outlast.app import Outlast
from outlast.domain.errors import Invalid, OutlastError, TransactionMisused
from outlast.domain.kinds import In, Kind
from outlast.domain.model import Handle, Principal, TargetRef, Unique
from outlast.domain.refusal import article
from outlast.http.app import Application
from outlast.http.openapi import document
from outlast.http.problems import Problem
from outlast.http.routes import ROUTES
from outlast.integrations.answering import ACCEPTED, correlated, headers_of, prefix_of, refusal, signed_in, told
from outlast.observe.events import RequestFailed
from outlast.observe.hub import emit

__all__ = ["Submit", "SyncSubmit", "accepted", "mount", "submitter", "sync_submitter"]

_HANDLERS: Final = "starlette.exception_handlers"
_FOUND: Final = "outlast.found"
_SCHEMAS: Final = b"#/components/schemas/"
_PREFIX: Final = "Outlast"


def mount(app: FastAPI, jobs: Outlast, *, identify: Callable[..., Any] | Dependency, path: str | None = None) -> Application:
    """API and page below the path of the jobs' base_url, as part of the application. Call it once, before the application starts.

    identify: a dependency of the application (what stands in `Depends(...)`, or that itself) that returns a Principal, or None for
    nobody; it is solved for each request, with overrides, and again while a stream lasts. path: where a proxy takes a prefix away.

    Open streams end when the server is told to stop, connections are given back at the end of the lifespan, refusals in the
    application's own routes are answered as problem documents unless it handles OutlastError itself, what it submits carries the
    request's id, and its OpenAPI document has the API's calls. Invalid without a base_url.
    """
    if not isinstance(app, FastAPI):
        raise Invalid(
            f"mount takes the FastAPI application, not {article(app)}. In Starlette: app.mount('/jobs', jobs.asgi(identify=...))."
        )
    prefix = prefix_of(jobs, path)
    if any(_is_there(route, jobs, prefix) for route in app.routes):
        raise Invalid("This application has these jobs, or something else at that path, already; call mount once.")
    caller = _Caller(app, identify)
    application = jobs.asgi(identify=caller)
    placed = _Placed(application)
    app.mount(prefix, placed)
    app.include_router(APIRouter(lifespan=_lifespan(jobs, placed)))
    app.add_middleware(_Correlated)

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, OutlastError | Problem):
            raise error
        return refusal(application, error, request.scope, route=getattr(request.scope.get("route"), "path", ""))

    for kind in (OutlastError, Problem):
        app.exception_handlers.setdefault(kind, refused)
    _describe(app, prefix, caller.route)
    return application


class Submit:
    """Submits for who calls, in the transaction of the request's session: the job is there once that is committed."""

    def __init__(self, jobs: Outlast, owner: Principal, transaction: Any) -> None:  # noqa: ANN401 - the host's own session
        self._jobs = jobs
        self.owner = owner
        self._transaction = _session(transaction)

    async def __call__(
        self,
        kind: Kind[In],
        input: In,
        *,
        key: str | None = None,
        unique: Unique | None = None,
        target: TargetRef | None = None,
        not_before: datetime | None = None,
    ) -> Handle:
        """As `jobs.submit`, with its errors. Nothing is promised before the commit: answer after it."""
        return await self._jobs.submit(
            kind,
            input,
            owner=self.owner,
            key=key,
            unique=unique,
            target=target,
            not_before=not_before,
            transaction=self._transaction,
        )


class SyncSubmit:
    """The same for routes that are a plain `def`, and a blocking session."""

    def __init__(self, jobs: Outlast, owner: Principal, transaction: Any) -> None:  # noqa: ANN401 - the host's own session
        self._jobs = jobs
        self.owner = owner
        self._transaction = _session(transaction)

    def __call__(
        self,
        kind: Kind[In],
        input: In,
        *,
        key: str | None = None,
        unique: Unique | None = None,
        target: TargetRef | None = None,
        not_before: datetime | None = None,
    ) -> Handle:
        """As `jobs.sync.submit`, with its errors. Nothing is promised before the commit: answer after it."""
        return self._jobs.sync.submit(
            kind,
            input,
            owner=self.owner,
            key=key,
            unique=unique,
            target=target,
            not_before=not_before,
            transaction=self._transaction,
        )


def submitter(
    jobs: Outlast, *, identify: Callable[..., Any] | Dependency, session: Callable[..., Any] | Dependency
) -> Callable[..., Awaitable[Submit]]:
    """A dependency that gives a Submit: for who `identify` says, in the AsyncSession (or connection) that `session` gives the route too."""
    _check_jobs(jobs)
    who, db = _depends(identify), _depends(session)

    async def dependency(principal: Any = who, transaction: Any = db) -> Submit:  # noqa: ANN401 - what the host's dependencies give
        return Submit(jobs, signed_in(principal), transaction)

    return dependency


def sync_submitter(
    jobs: Outlast, *, identify: Callable[..., Any] | Dependency, session: Callable[..., Any] | Dependency
) -> Callable[..., Awaitable[SyncSubmit]]:
    """The same with a Session (or connection) that blocks."""
    _check_jobs(jobs)
    who, db = _depends(identify), _depends(session)

    async def dependency(principal: Any = who, transaction: Any = db) -> SyncSubmit:  # noqa: ANN401 - what the host's dependencies give
        return SyncSubmit(jobs, signed_in(principal), transaction)

    return dependency


def accepted(handle: Handle) -> JSONResponse:
    """202 with Location, Retry-After and `{"id", "state", "url"}`. To be returned after the commit."""
    return JSONResponse(told(handle), ACCEPTED, headers_of(handle))


class _Caller:
    """Asks a dependency of the application who calls, by a route that nobody can reach."""

    def __init__(self, app: FastAPI, identify: Callable[..., Any] | Dependency) -> None:
        who = _depends(identify)

        async def endpoint(request: Request, principal: Any = who) -> Response:  # noqa: ANN401 - what the host's dependency gives
            request.scope[_FOUND].append(principal)
            return Response()

        self._app = app
        self.route = APIRoute("/", endpoint, methods=["GET"], response_model=None, dependency_overrides_provider=app)
        if self.route.body_field is not None:
            raise Invalid(
                "The dependency that says who calls must not take a body: that is the request's own. A model as a parameter is one."
            )
        self._said = False
        self._asked = AsyncExitStackMiddleware(self.route.app)  # also where no application stands around, in `outlast serve`

    async def __call__(self, request: Request) -> Principal | None:
        """What the dependency gives; None where a header, cookie or parameter that it needs is missing. What it raises goes through.

        Its answer to nobody is not sent, so handlers of exceptions are out of reach; and a stream holds none of its resources.
        """
        found: list[Any] = []
        scope = {name: value for name, value in request.scope.items() if name != _HANDLERS}
        try:
            await self._asked({**scope, "app": self._app, _FOUND: found}, _nothing_more, _nowhere)
        except RequestValidationError as error:
            self._say(error)
            return None
        if not found:
            raise Invalid("The dependency that says who calls has answered the request by itself; it must return or raise.")
        principal: Principal | None = found[0]
        return principal

    def _say(self, error: RequestValidationError) -> None:
        """Logs once what of the address it asks for: a parameter that was meant as something else makes everybody nobody."""
        asked = sorted({str(one["loc"][1]) for one in error.errors() if one["loc"][0] in ("query", "path")})
        if asked and not self._said:
            self._said = True
            emit(RequestFailed("identify", f"the dependency takes {', '.join(asked)} from the address, and it was not there", ""))


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(message: Message) -> None:
    """What the route answers is not what was asked for."""


class _Correlated:
    """What a request submits carries its id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with correlated(Headers(scope=scope)):
            await self._app(scope, receive, send)


def _depends(given: Callable[..., Any] | Dependency) -> Any:  # noqa: ANN401 - FastAPI's own word for a default
    if isinstance(given, Dependency):
        return given
    if not callable(given):
        raise Invalid("identify= and session= take a dependency: what you would write in Depends(...).")
    return Depends(given)


def _check_jobs(jobs: object) -> None:
    if not isinstance(jobs, Outlast):
        raise Invalid(f"The jobs are an Outlast, not {article(jobs)}.")


def _session(given: Any) -> Any:  # noqa: ANN401 - the host's own session
    """Nothing in its place would be no transaction at all: the job would be there whatever becomes of the request."""
    if given is None:
        raise TransactionMisused(
            "The dependency session= gave None, so that there is no transaction to submit in; it must yield or return the session.",
            code="session_invalid",
        )
    return given


class _Placed:
    """The HTTP side where it is mounted. Streams end with the server also where no lifespan is run: that of an application in another."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.has_lifespan = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.has_lifespan and threading.current_thread() is threading.main_thread():
            self.has_lifespan = True
            _hear(self.application.stop)
        await self.application(scope, receive, send)


def _is_there(route: object, jobs: Outlast, prefix: str) -> bool:
    if not isinstance(route, Mount):
        return False
    return route.path == prefix or (isinstance(route.app, _Placed) and route.app.application.service.desk is jobs.desk)


def _lifespan(jobs: Outlast, placed: _Placed) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        placed.has_lifespan = True
        with _told_to_stop(placed.application.stop):
            try:
                yield
            finally:
                await jobs.close()

    return lifespan


@contextmanager
def _told_to_stop(stop: Callable[[], None]) -> Generator[None]:
    """Calls `stop` when the server is told to end, before the server hears of it.

    The end of the lifespan is too late: servers come to it when the last answer has ended, and an event stream does not end by itself.
    """
    forget = _hear(stop) if threading.current_thread() is threading.main_thread() else None
    try:
        yield
    finally:
        if forget is not None:
            forget()


def _hear(stop: Callable[[], None]) -> Callable[[], None]:
    """Calls `stop` from now on, in front of the server's own handlers; what is returned takes that back. For the main thread."""
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def heard(number: int, frame: FrameType | None) -> None:
        stop()
        before[number](number, frame)

    def forget() -> None:
        for number, server in before.items():
            if signal.getsignal(number) is heard:
                signal.signal(number, server)

    for told_by in (signal.SIGINT, signal.SIGTERM):
        earlier = signal.getsignal(told_by)
        if callable(earlier):  # a server's own; where there is none, the process ends at once
            before[told_by] = earlier
            signal.signal(told_by, heard)
    return forget


def _describe(app: FastAPI, prefix: str, route: APIRoute) -> None:
    """Adds the API's calls to the application's OpenAPI document, with the application's own ways to sign in."""
    described: Any = app
    own = app.openapi

    def openapi() -> dict[str, Any]:
        schema = own()
        if f"{prefix}/v1/jobs" in schema["paths"]:
            return schema
        caller = get_openapi(title="", version="", routes=[route])
        schemes = caller.get("components", {}).get("securitySchemes", {})
        security = caller["paths"]["/"]["get"].get("security", [])
        text = msgspec.json.encode(document(ROUTES)).replace(_SCHEMAS, _SCHEMAS + _PREFIX.encode())
        ours: dict[str, Any] = msgspec.json.decode(text)
        components = schema.setdefault("components", {})
        schemas = {_PREFIX + name: value for name, value in ours["components"]["schemas"].items()}
        components.setdefault("schemas", {}).update(schemas)
        for name, scheme in schemes.items():
            components.setdefault("securitySchemes", {}).setdefault(name, scheme)
        for path, operations in ours["paths"].items():
            for operation in operations.values():
                operation["tags"] = ["jobs"]
                operation["operationId"] = f"outlast_{operation['operationId']}"
                if operation.pop("security", None) and security:
                    operation["security"] = security
            schema["paths"][prefix + path] = operations
        return schema

    described.openapi = openapi  # the documented way to extend it
