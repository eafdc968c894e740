"""Puts the routes together into one ASGI application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as Place
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from outlast.client.desk import Desk
from outlast.domain.errors import OutlastError, QuotaExceeded
from outlast.http.answers import base_of, problem_response
from outlast.http.authentication import Authenticator, Identify, SignInElsewhere
from outlast.http.call import Call, Service
from outlast.http.guard import Guard
from outlast.http.limits import Limits
from outlast.http.pacing import Pacing
from outlast.http.page import refusals
from outlast.http.problems import Problem, problem_of
from outlast.http.routes import ROUTES
from outlast.http.table import Access, Route
from outlast.http.watcher import Watcher


class Application:
    """The ASGI application. Mount it at any prefix; it needs no lifespan. development: the page offers a sign-in to anybody."""

    def __init__(self, desk: Desk, authenticator: Authenticator, *, routes: Iterable[Route] = ROUTES, development: bool = False) -> None:
        self.service = Service(desk, authenticator, Pacing(desk.app.registry), Limits(), Watcher(desk), development)
        self._app = Guard(self._router(routes), refuse=self._refuse, base_url=desk.app.base_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        await self._app(_rooted(scope), receive, send)

    def stop(self) -> None:
        """Ends event streams and waits, so that the server can end: call it when the process is told to stop."""
        self.service.watcher.stop()

    def _router(self, routes: Iterable[Route]) -> ASGIApp:
        methods: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods.setdefault(route.path, {})[route.method] = route
        resources = {path: _Resource(self.service, at) for path, at in methods.items()}
        places = [Place(path, endpoint=resource) for path, resource in resources.items()]
        return Router(places, redirect_slashes=False, default=_Elsewhere(resources.get("/")))

    def _refuse(self, problem: Problem, scope: Scope) -> Response:
        """A problem as a document for programs, or as a page for people."""
        configured = self.service.desk.app.base_url
        if refusals.is_for_people(scope):
            return refusals.refusal(problem, base_of(configured, scope), scope, development=self.service.development)
        return problem_response(problem, configured, scope)


def _rooted(scope: Scope) -> Scope:
    """The request with a path that begins with the root's, as it should.

    Under a host that names a root which its proxy took away, it begins with the part of it that the host itself mounted at.
    """
    root, path = scope.get("root_path", ""), scope.get("path", "")
    if not root or path == root or path.startswith(f"{root}/"):
        return scope
    for at, sign in enumerate(root):
        if sign == "/" and at and (path == root[at:] or path.startswith(f"{root[at:]}/")):
            return {**scope, "path": root[:at] + path}
    return scope


class _Resource:
    """Everything on one path."""

    def __init__(self, service: Service, routes: Mapping[str, Route]) -> None:
        self._service = service
        self._routes = routes
        self._allow = ", ".join(sorted({*routes, *(["HEAD"] if "GET" in routes else [])}))
        self._page = any(route.page for route in routes.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[refusals.MARK] = self._page
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        route = self._routes.get(method)
        if route is None:
            raise Problem("method_not_allowed", f"Allowed here: {self._allow}.", headers={"Allow": self._allow})
        scope["outlast.route"] = route.name
        request = Request(scope, receive)
        call = Call(request, self._service, base_of(self._service.desk.app.base_url, scope), None)
        try:
            if route.access is not Access.PUBLIC:
                call = Call(request, self._service, call.base, await self._service.authenticator.principal(request))
            response = await route.endpoint(call)
        except SignInElsewhere as elsewhere:
            if not route.page:
                raise
            response = RedirectResponse(elsewhere.location, elsewhere.status, {"Cache-Control": "no-store"})
        except QuotaExceeded as error:
            raise problem_of(error, retry_after=self._service.pacing.room_after(error.kind)) from error
        except OutlastError as error:
            raise problem_of(error) from error
        await response(scope, receive, send)


class _Elsewhere:
    """Where no route leads. A mount asked for without the slash at its end is the page at its root."""

    def __init__(self, root: _Resource | None) -> None:
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._root is None or not scope["path"] or scope["path"] != scope.get("root_path"):
            raise Problem("not_found", "There is nothing at this address.")
        await self._root(scope, receive, send)


def build(desk: Desk, identify: Identify, *, development: bool = False) -> Application:
    """The application for a host that says by `identify` who is calling."""
    return Application(desk, Authenticator(identify), development=development)
