"""Templates to answers, with the headers that every page has."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from outlast.http.page import messages, moments
from outlast.http.page.assets import assets
from outlast.http.page.frame import COOKIE, Frame
from outlast.http.page.references import reference_of

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_OK: Final = 200


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("outlast.http.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    known: dict[str, Any] = {"words": messages, "reference_of": reference_of}
    made.globals.update(known)
    made.filters.update(machine=moments.machine, human=moments.human)
    return made


def render(frame: Frame, template: str, status: int = _OK, headers: Mapping[str, str] | None = None, /, **values: object) -> Response:
    """A page as an answer. What is shown is private, so no cache keeps it, the browser's own neither."""
    names = {name: asset.name for name, asset in assets().items()}
    text = _environment().get_template(template).render(frame=frame, assets=names, now=datetime.now(UTC), **values)
    response = Response(text, status, headers, media_type="text/html")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-store"
    if frame.fresh:
        response.headers.append("Set-Cookie", frame.cookie(COOKIE, frame.token))
    return response


def see_other(frame: Frame, path: str) -> Response:
    """303 to another page of this mount, so that a reload does not send a form again."""
    return Response(status_code=303, headers={"Location": f"{frame.mount}{path}", "Cache-Control": "no-store"})
