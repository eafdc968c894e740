"""Places the application at the prefix that its links name, for a server that hosts nothing else."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_PROBES: Final = frozenset({"/healthz", "/readyz"})
_NOT_FOUND: Final = 404


class Hosted:
    """The application under its base URL's path; probes at the root too, and a redirect from there to the page."""

    def __init__(self, app: ASGIApp, base_url: str) -> None:
        self._app = app
        self._prefix = urlsplit(base_url).path.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or not self._prefix or path in _PROBES:
            await self._app(scope, receive, send)
        elif path == self._prefix or path.startswith(f"{self._prefix}/"):
            await self._app({**scope, "root_path": self._prefix}, receive, send)
        elif path == "/":
            await RedirectResponse(f"{self._prefix}/", headers={"Cache-Control": "no-store"})(scope, receive, send)
        else:
            await JSONResponse({"title": f"Everything is below {self._prefix}/", "status": _NOT_FOUND}, _NOT_FOUND)(scope, receive, send)
