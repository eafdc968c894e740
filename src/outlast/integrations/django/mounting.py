"""The page and the HTTP API below a path of a Django project, under ASGI and WSGI."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, cast
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from outlast.domain.errors import Invalid
from outlast.http.app import Application
from outlast.integrations.django.configuration import configuration
from outlast.integrations.django.people import check, identify
from outlast.integrations.django.project import project

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


def application() -> Application:
    """API, page and component as an ASGI application, with the users of Django's sessions."""
    check()
    return project().asgi(identify=configuration().identify or identify)


def prefix() -> str:
    """The path of OUTLAST['base_url']; Invalid at the root, which is Django's."""
    path = urlsplit(configuration().base_url).path.rstrip("/")
    if not path:
        raise Invalid("OUTLAST['base_url'] has to have a path, for example '/jobs': the root is Django's.")
    return path


class Mounted:
    """Django's ASGI application, with the page and the API below OUTLAST['base_url'].

    In asgi.py:

    application = Mounted(get_asgi_application())

    It answers a server's lifespan, which Django does not, and gives connections back at its end.
    """

    def __init__(self, django: ASGIApp) -> None:
        self._django = django
        self._prefix = prefix()
        self._application = application()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        path = str(scope.get("path", ""))
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and (path == self._prefix or path.startswith(f"{self._prefix}/")):
            await self._application({**scope, "root_path": self._prefix}, receive, send)
        else:
            await self._django(scope, receive, send)

    def stop(self) -> None:
        """Ends event streams and waits: call it when the process is told to stop."""
        self._application.stop()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await project().close()
        await send({"type": "lifespan.shutdown.complete"})


class MountedWsgi:
    """Django's WSGI application with the same, through a2wsgi (`pip install a2wsgi`). A stream takes one thread of the server."""

    def __init__(self, django: WsgiApp) -> None:
        self._django = django
        self._prefix = prefix()
        self._application = application()
        self._adapted: tuple[int, WsgiApp] | None = None
        _adapter()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answers one request."""
        script, info = str(environ.get("SCRIPT_NAME", "")), str(environ.get("PATH_INFO", ""))
        path = script + info  # as the browser asked for it; SCRIPT_NAME is what the server has taken off
        if path != self._prefix and not path.startswith(f"{self._prefix}/"):
            return self._django(environ, start_response)
        below = {**environ, "SCRIPT_NAME": self._prefix, "PATH_INFO": path.removeprefix(self._prefix)}
        return self._below()(below, start_response)

    def _below(self) -> WsgiApp:
        """The adapter of this process: it has a loop in a thread, which is not there any more after a fork."""
        pid = os.getpid()
        if self._adapted is None or self._adapted[0] != pid:
            self._adapted = (pid, _adapter()(self._application))
        return self._adapted[1]


def _adapter() -> Callable[[Application], WsgiApp]:
    try:
        from a2wsgi import ASGIMiddleware  # noqa: PLC0415 - the host's choice
    except ModuleNotFoundError as error:
        raise Invalid("Under WSGI the page needs the package a2wsgi: pip install a2wsgi.") from error
    return cast("Callable[[Application], WsgiApp]", ASGIMiddleware)  # it has words of its own for the same protocols
