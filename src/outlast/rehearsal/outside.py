"""Calls to the fake provider, as a handler of an application would make them: what surely did not happen is told apart from the rest."""

from __future__ import annotations

import http.client
import json
import os
import time
from typing import Any, Final
from urllib.parse import quote, urlsplit

from outlast.domain.effects import Confirmed
from outlast.domain.failures import Permanent, Refused, Retry
from outlast.domain.retry import parse_retry_after

ADDRESS: Final = "OUTLAST_REHEARSAL_PROVIDER"
TIMEOUT: Final = 2.0
_MOST: Final = 65_536
_BUSY: Final = 429
_CONFLICT: Final = 409


def charge(key: str, what: dict[str, object]) -> str:
    """The id of the one effect that the provider has under this key."""
    status, headers, body = _ask("POST", "/effects", key, what)
    if status in (200, 201):
        return str(body["id"])
    if status == _BUSY:
        wait_ms = parse_retry_after(headers.get("Retry-After"), now_ms=round(time.time() * 1000))
        raise Retry("provider_busy", "The provider is busy.", after=None if wait_ms is None else wait_ms / 1000)
    if status < 500:  # noqa: PLR2004 - it understood, and did not
        raise Refused("provider_refused", "The provider refused it.")
    raise ConnectionError(f"the provider answered {status}: it may have done it, or not")


def find(key: str) -> Confirmed[str]:
    """What the provider has under this key; Refused: nothing."""
    status, _, body = _ask("GET", f"/effects?key={quote(key)}", key, None)
    if status != 200:  # noqa: PLR2004 - only a plain answer is one
        raise ConnectionError(f"the provider answered {status}")
    if not body["items"]:
        raise Refused("not_found", "The provider has no such effect.")
    return Confirmed(str(body["items"][0]["id"]))


def put_document(ref: str, expected: str, text: str) -> str | None:
    """The document's new version; None: it is at another one."""
    status, _, answer = _ask("PUT", f"/documents/{quote(ref, safe='')}", "", {"text": text, "version": expected})
    if status == _CONFLICT:
        return None
    if status not in (200, 201):
        raise ConnectionError(f"the provider answered {status}")
    return str(answer["version"])


def _ask(method: str, path: str, key: str, what: dict[str, object] | None) -> tuple[int, http.client.HTTPMessage, dict[str, Any]]:
    address = os.environ.get(ADDRESS)
    if not address:
        raise Permanent("provider_missing", f"Name the provider's address in {ADDRESS}: python -m outlast.rehearsal.provider starts one.")
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname or "127.0.0.1", url.port, timeout=TIMEOUT)
    end = time.monotonic() + TIMEOUT
    try:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json", "Connection": "close"}
        connection.request(method, path, None if what is None else json.dumps(what), headers)
        answer = connection.getresponse()
        read = b""
        while part := answer.read1(_MOST):
            read += part
            if len(read) > _MOST or time.monotonic() > end:
                raise ConnectionError("the provider's answer is too long, or takes too long")
        return answer.status, answer.headers, json.loads(read)
    finally:
        connection.close()
