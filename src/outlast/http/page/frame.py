"""What stands around every page: where it is mounted, who looks at it, and the token that its forms carry."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from starlette.requests import Request

from outlast.domain.model import Principal
from outlast.http.call import Call
from outlast.http.problems import Problem

COOKIE: Final = "outlast_form"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_PATH: Final = "/%:@!$&'()*+,=~-._"


@dataclass(frozen=True, slots=True)
class Frame:
    """`mount` is the path under which all of the page's addresses lie. `fresh`: the token was made for this answer."""

    mount: str
    development: bool
    secure: bool = False
    caller: Principal | None = None
    token: str = ""
    fresh: bool = False

    def cookie(self, name: str, value: str) -> str:
        """A Set-Cookie header's value: for this mount only, for no script, and never sent from another site. Empty: forget it."""
        age = "" if value else "; Max-Age=0"
        return f"{name}={value}; Path={self.mount or '/'}; HttpOnly; SameSite=Strict{age}{'; Secure' if self.secure else ''}"


def frame_of(call: Call) -> Frame:
    """The frame of an answer to this request."""
    known = _token_of(call.request)
    return Frame(
        mount=quote(call.path, safe=_PATH),
        development=call.service.development,
        secure=call.request.url.scheme == "https" or call.base.startswith("https:"),
        caller=call.caller,
        token=known or secrets.token_urlsafe(32),
        fresh=known is None,
    )


def check_token(request: Request, sent: str) -> None:
    """Refuses a form that does not carry what this browser's cookie says: it may come from another page than ours."""
    known = _token_of(request)
    if known is None or not hmac.compare_digest(known.encode(), sent.encode()):
        raise Problem("stale_form", "The form's token is missing or old. Nothing was done. Reload the page and try again.")


def _token_of(request: Request) -> str | None:
    said = request.cookies.get(COOKIE, "")
    return said if _TOKEN.fullmatch(said) else None
