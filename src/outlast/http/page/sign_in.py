"""Signing in and out where identities are for development. Elsewhere the application around this one does that, and nothing is here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from outlast.domain.access import OPERATOR
from outlast.domain.errors import Invalid
from outlast.domain.model import MAX_NAME
from outlast.domain.payload import check_text
from outlast.http.call import Call
from outlast.http.development import COOKIE, token_of
from outlast.http.page import messages
from outlast.http.page.forms import read_form
from outlast.http.page.frame import Frame, frame_of
from outlast.http.page.rendering import render, see_other
from outlast.http.problems import Problem

_INSIDE: Final = re.compile(
    r"/(?:jobs/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:/result(?:/[0-9]{1,9})?)?|problems)?(?:\?(?:needs|going|done)=[A-Za-z0-9_-]{1,200})?"
)
_REFUSED: Final = 422


def inside(path: str) -> str:
    """The address, if it is one of this page's own, from the mount on; else the page of all work. It leads nowhere else."""
    return path if _INSIDE.fullmatch(path) else "/"


async def sign_in(call: Call) -> Response:
    """The form."""
    frame = _in_development(call)
    return _form(frame, {"next": call.request.query_params.get("next", "")}, {})


async def signed_in(call: Call) -> Response:
    """Takes whoever they say they are, by a cookie, and leads on to where they wanted to be."""
    frame = _in_development(call)
    sent = await read_form(call, "tenant", "subject", "next", optional=("operator",))
    wrong = _wrong(sent)
    if wrong:
        return _form(frame, sent, wrong, _REFUSED)
    response = see_other(frame, inside(sent["next"]))
    token = token_of(sent["tenant"], sent["subject"], operator="operator" in sent)
    response.headers.append("Set-Cookie", frame.cookie(COOKIE, quote(token, safe=":")))
    return response


async def signed_out(call: Call) -> Response:
    """Forgets who it was."""
    frame = _in_development(call)
    await read_form(call)
    response = see_other(frame, "/sign-in")
    response.headers.append("Set-Cookie", frame.cookie(COOKIE, ""))
    return response


def _in_development(call: Call) -> Frame:
    if not call.service.development:
        raise Problem("not_found", "There is nothing at this address.")
    return frame_of(call)


def _wrong(sent: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with which field."""
    wrong: dict[str, str] = {}
    for name in ("tenant", "subject"):
        try:
            check_text(sent[name], what=name, limit=MAX_NAME)
        except Invalid:
            wrong[name] = messages.NEEDED
    if ":" in sent["tenant"]:
        wrong["tenant"] = messages.NO_COLON
    if sent["subject"].endswith(f":{OPERATOR}"):
        wrong["subject"] = messages.NOT_OPERATOR
    return wrong


def _form(frame: Frame, sent: Mapping[str, str], wrong: Mapping[str, str], status: int = 200) -> Response:
    return render(
        frame,
        "sign_in.html",
        status,
        tenant=sent.get("tenant", ""),
        subject=sent.get("subject", ""),
        operator="operator" in sent,
        following=inside(sent.get("next", "")),
        wrong=wrong,
    )
