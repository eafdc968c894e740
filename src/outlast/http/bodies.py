"""Reads bodies: bounded while they come in, in size and in time, and parsed by the one strict parser."""

from __future__ import annotations

import asyncio
import re
from typing import Final, TypeVar, cast

import msgspec
from starlette.requests import Request

from outlast.domain import msgspec_bridge
from outlast.domain.errors import Invalid
from outlast.domain.payload import JSON, parse
from outlast.domain.refusal import Misfit
from outlast.http.call import header
from outlast.http.problems import Problem

T = TypeVar("T", bound=msgspec.Struct)

SECONDS: Final = 15.0
"""How long a whole body may take."""
ENVELOPE: Final = 16_384
"""Bytes that a request may have beside the largest input."""
_CLOSE: Final = {"Connection": "close"}
_DIGITS: Final = re.compile(r"[0-9]+")
_LONG: Final = 18
"""Digits of a length that no limit reaches; Python refuses to read some thousands of them."""


async def read(request: Request, *, limit: int) -> bytes:
    """The body; Problem 413 as soon as it is known to be larger, 408 when it does not end in time."""
    declared = header(request, "content-length")
    if declared is not None and _DIGITS.fullmatch(declared) is None:
        raise Problem("bad_request", "The Content-Length is no number.", headers=_CLOSE)
    if declared is not None and (len(declared) > _LONG or int(declared) > limit):
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
    except TimeoutError:
        raise Problem("request_timeout", f"Send the whole body within {SECONDS:.0f} seconds.", headers=_CLOSE) from None
    return b"".join(parts)


async def read_json(request: Request, wanted: type[T], *, limit: int) -> T:
    """The body as this wire type: 415 for another media type, 400 for what is no JSON, Invalid for what does not fit."""
    media_type, _, parameters = (header(request, "content-type") or "").partition(";")
    charset = parameters.replace(" ", "").lower()
    if media_type.strip().lower() != "application/json" or charset not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise Problem("unsupported_media_type", "Send the body as application/json, in UTF-8.")
    if (header(request, "content-encoding") or "identity").lower() != "identity":
        raise Problem("unsupported_media_type", "Send the body without a Content-Encoding.")
    return fit(_parsed(await read(request, limit=limit), limit), wanted)


def fit(data: JSON, wanted: type[T]) -> T:
    """The value as this wire type; Invalid, with the places, if it does not fit."""
    try:
        return cast("T", msgspec_bridge.load(data, wanted, forbid_unknown=True))
    except Misfit as error:
        misfit = error
    raise misfit.invalid("body", "what is asked for here")


def _parsed(body: bytes, limit: int) -> JSON:
    try:
        return parse(body, limit=limit, what="body")
    except Invalid as error:
        if error.pointers:  # it is JSON, of a kind that cannot be stored, and this says where
            raise
        refused = error
    if _is_json(body):
        raise refused
    raise Problem("malformed_json", refused.message)


def _is_json(body: bytes) -> bool:
    """Whether the text is JSON, only too deep, too long or not storable."""
    try:
        msgspec.json.decode(body.decode(), type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    except RecursionError:  # so deep that it cannot even be told
        return True
    return True


def _too_large(limit: int) -> Problem:
    return Problem("too_large", f"The body is larger than {limit} bytes; store the data elsewhere and send a reference.", headers=_CLOSE)
