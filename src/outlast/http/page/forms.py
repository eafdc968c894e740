"""Reads what the page's forms send: bounded, in one encoding, and no other fields than the form has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from outlast.http import bodies
from outlast.http.call import Call, header
from outlast.http.page import messages
from outlast.http.page.frame import check_token
from outlast.http.problems import Problem

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
SMALL: Final = 8_192
TOKEN: Final = "token"  # noqa: S105 - the name of a field
_MOST_FIELDS: Final = 12
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PER_BYTE: Final = 3
"""Bytes that a byte takes where it is percent-encoded."""


async def read_form(call: Call, *fields: str, optional: tuple[str, ...] = (), text: int = 0) -> Mapping[str, str]:
    """The fields of a form with the right token; `text`: how many bytes a longer one may have. Problem for anything else."""
    _check_type(call)
    body = await bodies.read(call.request, limit=SMALL + text * _PER_BYTE)
    sent = _parsed(body)
    check_token(call.request, sent.pop(TOKEN, ""))
    if not sent.keys() <= {*fields, *optional} or not sent.keys() >= {*fields}:
        raise Problem("invalid", messages.FORM_BROKEN)
    return sent


def _check_type(call: Call) -> None:
    media_type, _, parameters = (header(call.request, "content-type") or "").partition(";")
    charset = parameters.replace(" ", "").lower()
    plain = (header(call.request, "content-encoding") or "identity").lower() == "identity"
    if media_type.strip().lower() != MEDIA_TYPE or charset not in ("", "charset=utf-8") or not plain:
        raise Problem("unsupported_media_type", f"Send the form as {MEDIA_TYPE}, in UTF-8.")


def _parsed(body: bytes) -> dict[str, str]:
    try:
        encoded = body.decode("ascii")
        if _ESCAPE.search(encoded):
            raise Problem("bad_request", "The form is not percent-encoded UTF-8.")
        pairs = parse_qsl(encoded, keep_blank_values=True, strict_parsing=bool(encoded), errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem("bad_request", "The form is not percent-encoded UTF-8.") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Problem("invalid", messages.FORM_BROKEN)
    return found
