"""Places the application at the prefix that its links name, for a server that hosts nothing else."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_PROBES: Final = frozenset({"/healthz", "/readyz"})
_NOT_FOUND: Final = 404
_MISDIRECTED: Final = 421
_PLAIN: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_LOOPBACK: Final = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


class Hosted:
    """The application under its base URL's path; probes at the root too, and a redirect from there to the page.

    loopback_only: other names of this server are refused. Where anybody is whoever they say, a page of elsewhere must not reach it by
    letting its own name point to this machine.
    """

    def __init__(self, app: ASGIApp, base_url: str, *, loopback_only: bool = False) -> None:
        self._app = app
        self._prefix = urlsplit(base_url).path.rstrip("/")
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        path: str = scope.get("path", "")
        if scope["type"] == "http" and self._loopback_only and not _is_loopback(Headers(scope=scope).get("host", "")):
            said = {"title": "With identities for development this server answers to localhost alone", "status": _MISDIRECTED}
            await JSONResponse(said, _MISDIRECTED, _PLAIN, media_type="application/problem+json")(scope, receive, send)
            return
        if scope["type"] != "http" or not self._prefix or path in _PROBES:
            await self._app(scope, receive, send)
        elif path == self._prefix or path.startswith(f"{self._prefix}/"):
            await self._app({**scope, "root_path": self._prefix}, receive, send)
        elif path == "/":
            await RedirectResponse(f"{self._prefix}/", headers={"Cache-Control": "no-store"})(scope, receive, send)
        else:
            said = {"title": f"Everything is below {self._prefix}/", "status": _NOT_FOUND, "code": "not_found"}
            await JSONResponse(said, _NOT_FOUND, _PLAIN, media_type="application/problem+json")(scope, receive, send)


def _is_loopback(host: str) -> bool:
    return _LOOPBACK.fullmatch(host) is not None
