"""The mail provider, as an application calls it: what surely did not happen is told apart from what may have happened."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import quote

from outlast import Confirmed, Refused, Retry

TIMEOUT: Final = 2.0
_BUSY, _SERVER = 429, 500


def send(key: str, message: dict[str, Any]) -> str:
    """The provider's id of the mail. Refused, Retry: it was not sent; whatever else is raised: who knows."""
    request = urllib.request.Request(_address("/effects"), json.dumps(message).encode(), {"Idempotency-Key": key}, method="POST")  # noqa: S310
    try:
        return str(_answer(request)["id"])
    except urllib.error.HTTPError as error:
        if error.code == _BUSY:
            raise Retry("mail_busy", "The mail provider is busy.", after=error.headers.get("Retry-After") or 1) from error
        if error.code < _SERVER:
            raise Refused("mail_refused", "The mail provider refused the mail.") from error
        raise


def find(key: str) -> Confirmed[str]:
    """The mail that was sent under this key; Refused: none was."""
    items = _answer(urllib.request.Request(_address(f"/effects?key={quote(key)}")))["items"]  # noqa: S310
    if not items:
        raise Refused("mail_not_sent", "The mail was not sent.")
    return Confirmed(str(items[0]["id"]))


def sent() -> list[dict[str, Any]]:
    """Every mail, from the provider's own list."""
    items: list[dict[str, Any]] = _answer(urllib.request.Request(_address("/effects")))["items"]  # noqa: S310
    return items


def failures() -> list[dict[str, Any]]:
    """Every failure that was asked for, with how often a call met it."""
    items: list[dict[str, Any]] = _answer(urllib.request.Request(_address("/faults")))["items"]  # noqa: S310
    return items


def fail(mode: str, **more: object) -> None:
    """Lets the provider fail at the next call, or the next whose body has the text `match`: see docs/rehearsal.md."""
    _answer(urllib.request.Request(_address("/faults"), json.dumps({"mode": mode, **more}).encode(), method="POST"))  # noqa: S310


def _address(path: str) -> str:
    return os.environ["REPORT_MAIL"] + path


def _answer(request: urllib.request.Request) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 - the address is the operator's
        return json.load(answer)
