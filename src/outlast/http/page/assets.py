"""Scripts and style of the page, and the component for pages of others: served under names that say their content, and stable ones."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from starlette.responses import Response

from outlast.http import etags
from outlast.http.call import Call, header
from outlast.http.problems import Problem

FOREVER: Final = "public, max-age=31536000, immutable"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".d.ts": "text/plain; charset=utf-8",
}
_COMPONENT: Final = "component.js"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file; `name` changes with its content."""

    name: str
    body: bytes
    media_type: str


@functools.cache
def assets() -> Mapping[str, Asset]:
    """All of them by the names that they have in the package, which is read once."""
    folder = files("outlast.http.page").joinpath("static")
    bodies = {place.name: place.read_bytes() for place in folder.iterdir() if _type_of(place.name)}
    found = {name: _named(name, body) for name, body in bodies.items()}
    if _COMPONENT in found:
        # A script names the component by its content too, so that a new one is never mixed with an old one from a cache.
        exact = f'"./{found[_COMPONENT].name}"'.encode()
        for name, body in bodies.items():
            if name != _COMPONENT:
                found[name] = _named(name, body.replace(f'"./{_COMPONENT}"'.encode(), exact))
    return found


def _named(name: str, body: bytes) -> Asset:
    stem, dot, ending = name.partition(".")
    return Asset(f"{stem}.{hashlib.sha256(body).hexdigest()[:16]}{dot}{ending}", body, _type_of(name))


def _type_of(name: str) -> str:
    return _TYPES.get(name[name.find(".") :], "")


async def hashed(call: Call) -> Response:
    """A file by the name of its content: it never changes."""
    wanted = call.request.path_params["name"]
    for asset in assets().values():
        if asset.name == wanted:
            return Response(asset.body, headers={"Cache-Control": FOREVER}, media_type=asset.media_type)
    raise Problem("not_found", "There is nothing at this address.")


async def component(call: Call) -> Response:
    """The component by its stable name, for pages of the application around this one."""
    return _stable(call, _COMPONENT)


async def declarations(call: Call) -> Response:
    """The component's types."""
    return _stable(call, "component.d.ts")


def _stable(call: Call, name: str) -> Response:
    asset = assets().get(name)
    if asset is None:
        raise Problem("not_found", "There is nothing at this address.")
    tag = etags.of_bytes(asset.body, weak=False)
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if etags.matches(header(call.request, "if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)
