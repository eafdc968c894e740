"""The fake provider: a small HTTP server that honours idempotency keys, and misbehaves on request.

    python -m outlast.rehearsal.provider --port 8700

It keeps everything in memory and listens on the loopback address only.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
import uuid
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast
from urllib.parse import parse_qs, unquote, urlsplit

MAX_BODY: Final = 1_048_576
MODES: Final = ("none", "status", "status_after", "timeout_after", "drop_after", "drip_after", "huge_after")
_KEY: Final = re.compile(r"[!-~]{1,255}")
_HUGE: Final = 16_000_000
_HELD: Final = 5.0


class Wrong(Exception):
    """A request that is answered with this status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(slots=True)
class Fault:
    """What goes wrong at the next calls, with `match` at those whose body has that text. `after`: once the effect is recorded."""

    mode: str = "none"
    status: int = 500
    retry_after: float | str | None = None
    seconds: float = _HELD
    times: int = 0
    match: str = ""
    met: int = 0


@dataclass(slots=True)
class Book:
    """What happened: effects by key, documents by reference."""

    effects: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    documents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    faults: dict[str, Fault] = field(default_factory=dict[str, Fault])  # by what they match
    past: list[Fault] = field(default_factory=list[Fault])  # all that were armed, in order
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, key: str, body: object) -> tuple[int, dict[str, Any]]:
        """201 for what is new, 200 with the same for a key that is known."""
        known = self.effects.get(key)
        if known is not None:
            known["calls"] += 1
            return 200, {"id": known["id"]}
        made = {"id": uuid.uuid4().hex, "key": key, "body": body, "calls": 1, "at": time.time()}
        self.effects[key] = made
        return 201, {"id": made["id"]}

    def arm(self, fault: Fault) -> None:
        """In place of the one that matches the same."""
        self.faults[fault.match] = fault
        self.past.append(fault)

    def next_fault(self, body: object) -> Fault:
        """What goes wrong now; each time once. One that matches this call goes before the one for any."""
        text = json.dumps(body, ensure_ascii=False)
        for match in sorted(self.faults, key=len, reverse=True):
            fault = self.faults[match]
            if match in text and fault.times > 0:
                fault.times -= 1
                fault.met += 1
                return fault
        return Fault()

    def put(self, ref: str, text: object, version: object) -> tuple[int, dict[str, Any]]:
        """Changes a document whose version is the one that was named; None makes one."""
        known = self.documents.get(ref)
        if not isinstance(text, str) or not (version is None or isinstance(version, str)):
            raise Wrong(422, "text is a string, version a string or null")
        if (known["version"] if known else None) != version:
            raise Wrong(409, "the document has another version")
        made = {"ref": ref, "version": str(int(known["version"]) + 1) if known else "1", "text": text}
        self.documents[ref] = made
        return (200 if known else 201), made


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    book: Book

    def setup(self) -> None:
        """Begins with no further headers."""
        super().setup()
        self._more: dict[str, str] = {}

    def do_GET(self) -> None:
        """Effects, one by its key or all, and documents."""
        self._answered(self._get)

    def do_POST(self) -> None:
        """An effect, or a fault to be armed."""
        self._answered(self._post)

    def do_PUT(self) -> None:
        """A document's new text."""
        self._answered(self._put)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: what was done is asked for."""

    # -- routes -------------------------------------------------------------------------------------------------

    def _get(self) -> tuple[int, object]:
        url = urlsplit(self.path)
        with self.book.lock:
            if url.path == "/faults":
                return 200, {"items": [asdict(fault) for fault in self.book.past]}
            if url.path == "/effects":
                keys = parse_qs(url.query).get("key")
                found = self.book.effects
                items = list(found.values()) if keys is None else [found[key] for key in keys if key in found]
                return 200, {"items": [dict(item) for item in items]}
            ref = _document(url.path)
            if ref in self.book.documents:
                return 200, dict(self.book.documents[ref])
        raise Wrong(404, "there is no such thing")

    def _post(self) -> tuple[int, object] | None:
        path, body = urlsplit(self.path).path, self._body()
        if path == "/faults":
            fault = _fault(body)
            with self.book.lock:
                self.book.arm(fault)
            return 200, {"mode": fault.mode, "times": fault.times}
        if path != "/effects":
            raise Wrong(404, "there is no such thing")
        key = self.headers.get("Idempotency-Key", "")
        if not _KEY.fullmatch(key):
            raise Wrong(400, "the header Idempotency-Key is 1 to 255 visible ASCII characters")
        with self.book.lock:
            fault = self.book.next_fault(body)
            if fault.mode == "status":
                return self._broken(fault)
            status, made = self.book.record(key, body)
        return self._after(fault, status, made)

    def _put(self) -> tuple[int, object]:
        ref, body = _document(urlsplit(self.path).path), self._body()
        if ref is None:
            raise Wrong(404, "there is no such thing")
        members = _members(body, {"text", "version"}, "a document is changed by text and version")
        with self.book.lock:
            return self.book.put(ref, members.get("text"), members.get("version"))

    # -- faults -------------------------------------------------------------------------------------------------

    def _after(self, fault: Fault, status: int, made: dict[str, Any]) -> tuple[int, object] | None:
        match fault.mode:
            case "status_after":
                return self._broken(fault)
            case "timeout_after":
                time.sleep(fault.seconds)
            case "drop_after":
                self.close_connection = True
                return None
            case "drip_after":
                self._drip(json.dumps(made).encode(), fault.seconds)
                return None
            case "huge_after":
                return status, {**made, "padding": "x" * _HUGE}
            case _:
                pass
        return status, made

    def _broken(self, fault: Fault) -> tuple[int, object]:
        if fault.retry_after is not None:
            self._more["Retry-After"] = str(fault.retry_after)
        return fault.status, {"error": "asked for"}

    def _drip(self, body: bytes, seconds: float) -> None:
        self.close_connection = True
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(len(body)):
            self.wfile.write(body[at : at + 1])
            time.sleep(seconds / len(body))

    # -- wire ---------------------------------------------------------------------------------------------------

    def _body(self) -> Any:  # noqa: ANN401 - whatever JSON was sent
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            raise Wrong(413 if length.isdigit() else 411, f"a body has a Content-Length of at most {MAX_BODY}")
        try:
            return json.loads(self.rfile.read(int(length)))
        except ValueError:
            raise Wrong(400, "the body is no JSON") from None

    def _answered(self, route: Any) -> None:  # noqa: ANN401 - one of the methods above
        self._more.clear()
        try:
            answer = route()
        except OSError:
            self.close_connection = True  # whoever asked has gone
            return
        except Wrong as wrong:
            answer = wrong.status, {"error": wrong.detail}
        if answer is None:
            return
        status, value = answer
        body = json.dumps(value).encode()
        try:
            self.send_response(status)
            for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **self._more}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # whoever asked has gone


def _document(path: str) -> str | None:
    found = re.fullmatch(r"/documents/([^/]{1,1000})", path)
    return unquote(found[1]) if found else None


def _members(body: object, known: set[str], advice: str) -> dict[str, Any]:
    members = cast("dict[str, Any]", body) if isinstance(body, dict) else None
    if members is None or set(members) - known:
        raise Wrong(422, advice)
    return members


def _fault(body: object) -> Fault:
    made = Fault(times=1)
    known = {"mode", "status", "retry_after", "seconds", "times", "match"}
    for name, value in _members(body, known, "a fault has mode, status, retry_after, seconds, times and match").items():
        setattr(made, name, value)
    number = (int, float)
    if (
        made.mode not in MODES
        or type(made.status) is not int
        or not 400 <= made.status <= 599  # noqa: PLR2004 - what says that something went wrong
        or type(made.times) is not int
        or not isinstance(made.match, str)
        or isinstance(made.seconds, bool)
        or not isinstance(made.seconds, number)
        or not 0 <= made.seconds <= 60  # noqa: PLR2004 - a minute is long enough for any time-out
        or not (made.retry_after is None or isinstance(made.retry_after, (*number, str)))
        or "\n" in str(made.retry_after)
        or "\r" in str(made.retry_after)
    ):
        raise Wrong(422, f"mode is one of {', '.join(MODES)}; status 400 to 599; seconds 0 to 60; times a whole number; match text")
    return made


def serve(port: int) -> ThreadingHTTPServer:
    """A provider with an empty book, not yet running."""
    handler = type("BookHandler", (Handler,), {"book": Book()})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    return server


def main() -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser(prog="python -m outlast.rehearsal.provider", description="A provider that misbehaves on request.")
    parser.add_argument("--port", type=int, default=8700, help="0 takes a free one")
    port = parser.parse_args().port
    try:
        server = serve(port)
    except (OSError, OverflowError) as error:
        parser.error(
            f"it cannot listen on port {port} ({getattr(error, 'strerror', None) or error}); name another one, or 0 for a free one"
        )
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
