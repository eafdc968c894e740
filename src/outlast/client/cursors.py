"""Cursors of lists: where the next page begins, bound to the principal and the filter."""

from __future__ import annotations

import base64
import binascii
import hashlib

from outlast.domain.errors import Invalid
from outlast.domain.ids import is_job_id

_MARK = 8


def write(before: str, bound: str) -> str:
    """An opaque cursor."""
    return base64.urlsafe_b64encode(_mark(bound) + before.encode()).decode().rstrip("=")


def read(cursor: str, bound: str) -> str:
    """Where the page begins; Invalid for a cursor of another principal or filter, or none of ours."""
    if not isinstance(cursor, str):
        raise Invalid("cursor= takes what `next` of the page before was.")
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        before = raw[_MARK:].decode("ascii")
    except (binascii.Error, ValueError, UnicodeError) as error:
        raise Invalid("The cursor is none of ours. Begin the list anew.") from error
    if raw[:_MARK] != _mark(bound) or not is_job_id(before):
        raise Invalid("The cursor belongs to another list. Begin the list anew.")
    return before


def _mark(bound: str) -> bytes:
    return hashlib.sha256(bound.encode()).digest()[:_MARK]
