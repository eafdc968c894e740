"""Who is calling: what the host's function says, and nothing else that a request carries."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, cast

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from outlast.domain.errors import OutlastError, StoreUnavailable
from outlast.domain.model import Principal
from outlast.domain.refusal import article
from outlast.http.problems import Problem
from outlast.observe.events import Placed, place_of

Identify: TypeAlias = Callable[[Request], Principal | Awaitable[Principal | None] | None]

_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY, _DEFECT = 401, 403, 404, 429, 500
_REDIRECTS: Final = range(300, 400)
_PASSED_ON: Final = ("www-authenticate", "location", "retry-after")


class SignInElsewhere(Problem):
    """The host sends people away to sign in: 401 for programs, a redirect for the page."""

    def __init__(self, status: int, location: str, *, challenge: str) -> None:
        super().__init__("unauthenticated", "Sign in, and repeat the request.", headers={"WWW-Authenticate": challenge})
        self.status = status
        self.location = location


class IdentifyFailed(Placed):
    """The host's `identify` failed: nobody is let in, and the caller is told nothing of it."""


class Authenticator:
    """Asks the host's `identify` of each request. `challenge` is what a 401 says in WWW-Authenticate."""

    def __init__(self, identify: Identify, *, challenge: str = 'Bearer realm="outlast"') -> None:
        self._identify = identify
        self._is_async = any(map(inspect.iscoroutinefunction, (identify, type(identify).__call__)))
        self.challenge = challenge

    async def principal(self, request: Request) -> Principal:
        """Who calls; Problem 401 for nobody, or as the host refuses: SignInElsewhere where it redirects.

        What else the host's function raises goes through. A plain function runs in a thread: it may block. Errors of Outlast that it
        raises, for example for a subject that is no text, are its own failure, not the request's: IdentifyFailed; only StoreUnavailable
        goes through.
        """
        try:
            said = self._identify(request) if self._is_async else await run_in_threadpool(self._identify, request)
            found = cast("object", await said if inspect.isawaitable(said) else said)
        except HTTPException as error:
            raise self._refusal(error) from error
        except StoreUnavailable:
            raise
        except OutlastError as error:
            raise IdentifyFailed(f"identify: {place_of(error)}") from error
        if found is None:
            raise Problem("unauthenticated", "Sign in, and repeat the request.", headers={"WWW-Authenticate": self.challenge})
        if not isinstance(found, Principal):
            raise IdentifyFailed(f"identify must return a Principal or None, not {article(found)}")
        return found

    def _refusal(self, error: HTTPException) -> Exception:
        """The host's answer in our words. A 500, and what is no refusal, is its own failure."""
        said = {name.lower(): value for name, value in dict(error.headers or {}).items() if name.lower() in _PASSED_ON}
        status = error.status_code
        if status in _REDIRECTS and "location" in said:
            return SignInElsewhere(status, said["location"], challenge=self.challenge)
        if status == _UNAUTHORIZED:
            challenge = said.get("www-authenticate", self.challenge)
            return Problem("unauthenticated", "Sign in, and repeat the request.", headers={"WWW-Authenticate": challenge})
        if status == _NOT_FOUND:
            return Problem("not_found", "There is nothing here for you.")
        if status == _TOO_MANY or status > _DEFECT:
            headers = {"Retry-After": said["retry-after"]} if "retry-after" in said else None
            return Problem("unidentified", "It cannot be found out just now who you are. Nothing was done; try again.", headers=headers)
        if _UNAUTHORIZED - 1 <= status < _DEFECT:
            return Problem("forbidden", "You are not let in here.")
        return IdentifyFailed(f"identify: {place_of(error)}")
