"""Who is calling: what the host's function says, and nothing else that a request carries."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request

from outlast.domain.model import Principal
from outlast.domain.refusal import article
from outlast.http.problems import Problem

Identify: TypeAlias = Callable[[Request], Principal | Awaitable[Principal | None] | None]

_UNAUTHORIZED, _FORBIDDEN = 401, 403


class Authenticator:
    """Asks the host's `identify` of each request. `challenge` is what a 401 says in WWW-Authenticate."""

    def __init__(self, identify: Identify, *, challenge: str = 'Bearer realm="outlast"') -> None:
        self._identify = identify
        self.challenge = challenge

    async def principal(self, request: Request) -> Principal:
        """Who calls; Problem 401 for nobody, or 403 where the host refuses. What else the host's function raises goes through."""
        try:
            said = self._identify(request)
            found = cast("object", await said if inspect.isawaitable(said) else said)
        except HTTPException as error:
            raise self._refusal(error) from error
        if found is None:
            raise Problem("unauthenticated", "Sign in, and repeat the request.", headers={"WWW-Authenticate": self.challenge})
        if not isinstance(found, Principal):
            raise TypeError(f"identify must return a Principal or None, not {article(found)}")
        return found

    def _refusal(self, error: HTTPException) -> Exception:
        """The host's 401 and 403 are ours; other statuses of its own it answers itself, outside of this application."""
        if error.status_code == _UNAUTHORIZED:
            headers = {name: value for name, value in dict(error.headers or {}).items() if name.lower() == "www-authenticate"}
            return Problem("unauthenticated", "Sign in, and repeat the request.", headers=headers or {"WWW-Authenticate": self.challenge})
        if error.status_code == _FORBIDDEN:
            return Problem("forbidden", "You are not let in here.")
        return error
