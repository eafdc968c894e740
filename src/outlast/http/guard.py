"""Stands around everything: bounds of a request's head, correlation, headers of every answer, and an opaque answer to a defect."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from outlast.http.problems import Problem
from outlast.observe.correlation import correlation_id, traceparent
from outlast.observe.events import RequestEnded, RequestFailed, place_of, reason_of
from outlast.observe.hub import emit

MOST_TARGET: Final = 4_096
MOST_HEADERS: Final = 100
MOST_HEADER_BYTES: Final = 32_768
_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_ONCE: Final = frozenset(
    {"authorization", "content-type", "content-length", "host", "if-match", "if-none-match", "last-event-id", "origin"}
)
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_OWN_FAULT: Final = 500
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_SAME_SITE: Final = frozenset({"same-origin", "none"})

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """The outermost part of the application. `refuse` makes the answer to a request that is refused; base_url may name the origin."""

    def __init__(self, app: ASGIApp, *, refuse: Callable[[Problem, Scope], Response], base_url: str = "") -> None:
        self._app = app
        self._refuse = refuse
        self._origin = origin_of(base_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; lifespan and websocket are answered too."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        headers = Headers(scope=scope)
        given, trace = correlation_of(headers)
        tokens = (correlation_id.set(given), traceparent.set(trace))
        arriving = _Arriving(receive, headers)
        answer = _Answer(send, arriving, scope)
        started = time.monotonic()
        try:
            await self._guarded(scope, arriving, answer, headers)
        finally:
            with suppress(ValueError):  # a request that was left is ended anywhere, in a context of its own
                correlation_id.reset(tokens[0])
                traceparent.reset(tokens[1])
            route = scope.get("outlast.route", "")
            emit(RequestEnded(scope["method"], route, answer.status, time.monotonic() - started, given))

    async def _guarded(self, scope: Scope, receive: Receive, answer: _Answer, headers: Headers) -> None:
        try:
            try:
                _check_head(scope, headers)
                _check_site(scope, headers, self._origin)
                await self._app(scope, receive, answer)
            except Problem as refused:
                if refused.entry.status >= _OWN_FAULT:
                    emit(RequestFailed(scope.get("outlast.route", ""), reason_of(refused.__cause__ or refused), correlation_id.get() or ""))
                await self._refuse(refused, scope)(scope, receive, answer)
        except ClientDisconnect:
            pass  # nobody is there to be answered
        except Exception as error:
            emit(RequestFailed(scope.get("outlast.route", ""), place_of(error), correlation_id.get() or ""))
            if not answer.begun:
                problem = Problem("internal", "The application met an unexpected error. The correlation id finds it in the log.")
                await self._refuse(problem, scope)(scope, receive, answer)
            else:
                raise


class _Arriving:
    """What the client sends, and whether all of it has been read."""

    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self.unread = "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""

    async def __call__(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.unread = False
        return message


class _Answer:
    """Sends, with the headers that every answer has. A body that nobody reads ends its connection: it may have no end."""

    def __init__(self, send: Send, arriving: _Arriving, scope: Scope) -> None:
        self._send = send
        self._arriving = arriving
        self._may_close = scope.get("http_version", "1.1").startswith("1")
        self.begun = False
        self.status = 0

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = correlation_id.get() or ""
            if self._arriving.unread and self._may_close:
                headers["Connection"] = "close"
        await self._send(message)


def correlation_of(headers: Headers) -> tuple[str, str | None]:
    """The id under which the request is found in logs, and the trace it belongs to."""
    trace = headers.get("traceparent")
    found = None if trace is None or len(headers.getlist("traceparent")) > 1 else _TRACEPARENT.fullmatch(trace)
    wanted = headers.get("x-request-id")
    if wanted is not None and _REQUEST_ID.fullmatch(wanted):
        return wanted, None if found is None else trace
    return (uuid.uuid4().hex, None) if found is None else (found[1], trace)


def _check_head(scope: Scope, headers: Headers) -> None:
    raw: bytes = scope.get("raw_path") or b""
    query: bytes = scope.get("query_string") or b""
    if len(raw) + len(query) > MOST_TARGET:
        raise Problem("target_too_long", f"Path and query together may have {MOST_TARGET} bytes.")
    pairs = headers.raw
    if len(pairs) > MOST_HEADERS or sum(len(name) + len(value) for name, value in pairs) > MOST_HEADER_BYTES:
        raise Problem("headers_too_large", f"Send at most {MOST_HEADERS} header fields of {MOST_HEADER_BYTES} bytes together.")
    for part in (raw, query):
        if _ESCAPE.search(part) or not _is_text(unquote_to_bytes(part)):
            raise Problem("bad_request", "The address is not percent-encoded UTF-8.")
    for name in _ONCE:
        if len(headers.getlist(name)) > 1:
            raise Problem("bad_request", f"The header {name} stands there more than once; send it once.")
    if "content-length" in headers and "transfer-encoding" in headers:
        # Another reader in front may have taken the other one: what follows on this connection is in doubt (RFC 9112, 6.3).
        raise Problem("bad_request", "Send a Content-Length or a Transfer-Encoding, not both.", headers={"Connection": "close"})
    if _HOST.fullmatch(headers.get("host", "")) is None:
        raise Problem("bad_request", "The Host header names no host.")


def _is_text(decoded: bytes) -> bool:
    try:
        return "\x00" not in decoded.decode()
    except UnicodeDecodeError:
        return False


def origin_of(address: str) -> str | None:
    """Host and port of an absolute address as a browser writes them in Origin: in lower case, without the scheme's own port."""
    parts = urlsplit(address.lower())
    if not parts.scheme or not parts.netloc:
        return None
    return parts.netloc.removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, ":"))


def _check_site(scope: Scope, headers: Headers, own: str | None) -> None:
    """Refuses what a page of another site makes a browser send (the Fetch metadata, else the origin, say so)."""
    if scope["method"] in _SAFE:
        return
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    said = None if origin is None else origin_of(origin)
    here = "" if origin is None else origin_of(f"{origin.partition('://')[0]}://{headers.get('host', '')}")
    another = origin is not None and (said is None or said not in {own, here})
    if another if site is None else site not in _SAME_SITE:
        raise Problem("cross_site", "Pages of other sites may not do this. Send it from a page of this one, or without a browser.")


async def _lifespan(receive: Receive, send: Send) -> None:
    """For who runs this application by itself; a host that mounts it sends nothing here."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
