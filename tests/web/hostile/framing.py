"""Messages that two readers could read in two ways, and what is no message at all: as bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

SMUGGLED: Final = b"GET /v1/jobs?smuggled HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer dev:acme:bob\r\n\r\n"
_AUTH: Final = b"Authorization: Bearer dev:acme:ann\r\n"
_JOB: Final = b'{"kind":"note","input":{"text":"x"}}'
_CLOSE: Final = b"Connection: close\r\n"
_MEDIA: Final = b"Content-Type: application/json\r\n"
_numbers: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes, the statuses that the first answer may have, and how many answers there may be. No status: the connection just ends."""

    why: str
    sent: bytes | Callable[[], bytes]
    wanted: tuple[int, ...]
    most: int = 1

    @property
    def content(self) -> bytes:
        """What goes over the wire."""
        return self.sent if isinstance(self.sent, bytes) else self.sent()


def head(method: bytes, target: bytes, *lines: bytes, host: bytes = b"Host: a\r\n", version: bytes = b"HTTP/1.1") -> bytes:
    """The head of a request, with lines as they are."""
    return method + b" " + target + b" " + version + b"\r\n" + host + _AUTH + b"".join(lines) + b"\r\n"


def look(*lines: bytes, host: bytes = b"Host: a\r\n", target: bytes = b"/v1/jobs", version: bytes = b"HTTP/1.1") -> bytes:
    """A GET of the list, after which the connection ends."""
    return head(b"GET", target, _CLOSE, *lines, host=host, version=version)


def submit(*lines: bytes, body: bytes) -> bytes:
    """A POST of a job with framing of its own."""
    return head(b"POST", b"/v1/jobs", b"Idempotency-Key: framed-%d\r\n" % next(_numbers), _MEDIA, *lines) + body


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """A body in chunks."""
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


def _length(count: int) -> bytes:
    return b"Content-Length: %d\r\n" % count


_TE: Final = b"Transfer-Encoding: chunked\r\n"


def messages() -> Iterator[Message]:
    """All of them."""
    yield from _two_lengths()
    yield from _chunks()
    yield from _lines()
    yield from _targets()
    yield from _no_requests()


def _two_lengths() -> Iterator[Message]:
    both = chunked(_JOB) + SMUGGLED
    yield Message("a length and chunks", submit(_length(len(both)), _TE, body=both), (400,))
    yield Message("chunks and a length", submit(_TE, _length(4), body=both), (400,))
    yield Message("a short length and chunks", submit(_length(3), _TE, _CLOSE, body=chunked(_JOB)), (400,))
    yield Message("two lengths that differ", submit(_length(len(_JOB)), _length(3), body=_JOB), (400,))
    yield Message("two lengths that differ, the short one first", submit(_length(0), _length(len(_JOB)), body=_JOB + SMUGGLED), (400,))
    yield Message("two equal lengths", submit(_length(len(_JOB)), _length(len(_JOB)), _CLOSE, body=_JOB), (202, 400))
    yield Message("a list of lengths", submit(b"Content-Length: %d, %d\r\n" % (len(_JOB), len(_JOB)), _CLOSE, body=_JOB), (202, 400))
    yield Message("a list of lengths that differ", submit(b"Content-Length: 36, 3\r\n", body=_JOB), (400,))
    yield Message("a length with a plus", submit(b"Content-Length: +36\r\n", body=_JOB), (400,))
    yield Message("a negative length", submit(b"Content-Length: -1\r\n", body=_JOB), (400,))
    yield Message("a length in hexadecimal", submit(b"Content-Length: 0x24\r\n", body=_JOB), (400,))
    yield Message("a length with a blank inside", submit(b"Content-Length: 3 6\r\n", body=_JOB), (400,))
    yield Message("a length with a point", submit(b"Content-Length: 36.0\r\n", body=_JOB), (400,))
    yield Message("a length of 5,000 digits", submit(b"Content-Length: %s\r\n" % (b"9" * 5_000), body=_JOB), (400, 413))
    yield Message("a length beyond 64 bit", submit(b"Content-Length: 18446744073709551652\r\n", body=_JOB), (400, 413))
    yield Message("no length", submit(_CLOSE, body=b""), (400,))
    yield Message("a length of nothing, and a body", submit(_length(0), _CLOSE, body=_JOB), (400,))
    yield Message("a body that a GET has, with a request in it", look(_length(len(SMUGGLED))) + SMUGGLED, (200,))


def _chunks() -> Iterator[Message]:
    good = chunked(_JOB[:10], _JOB[10:])
    yield Message("chunks", submit(_TE, _CLOSE, body=good), (202,))
    yield Message("chunks, with an extension", submit(_TE, _CLOSE, body=b"24;a=1\r\n" + _JOB + b"\r\n0\r\n\r\n"), (202,))
    for why, line in {
        "a blank before the colon": b"Transfer-Encoding : chunked\r\n",
        "another word": b"Transfer-Encoding: xchunked\r\n",
        "a longer word": b"Transfer-Encoding: chunkedx\r\n",
        "two words": b"Transfer-Encoding: chunked, chunked\r\n",
        "identity": b"Transfer-Encoding: identity\r\n",
        "gzip first": b"Transfer-Encoding: gzip, chunked\r\n",
        "gzip last": b"Transfer-Encoding: chunked, gzip\r\n",
        "a control before it": b"Transfer-Encoding: \x0bchunked\r\n",
        "quotes": b'Transfer-Encoding: "chunked"\r\n',
        "nothing": b"Transfer-Encoding:\r\n",
        "two fields": _TE + b"Transfer-Encoding: identity\r\n",
        "a folded line": b"Transfer-Encoding:\r\n x\r\n",
    }.items():
        yield Message(f"coding: {why}", submit(line, body=good + SMUGGLED), (400, 501))
    underscored = submit(b"Transfer_Encoding: chunked\r\n", _length(5), body=good)
    yield Message("coding: an underscore, which a gateway may turn, and garbage behind the body", underscored, (400,), most=2)
    for why, body in {
        "a size that is none": b"xyz\r\n",
        "a negative size": b"-1\r\nx\r\n0\r\n\r\n",
        "a size with 0x": b"0x24\r\n" + _JOB + b"\r\n0\r\n\r\n",
        "a size with an underscore": b"2_4\r\n" + _JOB + b"\r\n0\r\n\r\n",
        "a size with a plus": b"+24\r\n" + _JOB + b"\r\n0\r\n\r\n",
        "a size with a blank first": b" 24\r\n" + _JOB + b"\r\n0\r\n\r\n",
        "no size": b"\r\n" + _JOB + b"\r\n0\r\n\r\n",
        "a chunk longer than its size": b"3\r\n" + _JOB + b"\r\n0\r\n\r\n",
        "a chunk without an end": b"24\r\n" + _JOB + b"0\r\n\r\n",
        "other bytes at a chunk's end": b"24\r\n" + _JOB + b"XX0\r\n\r\n",
    }.items():
        yield Message(f"chunks: {why}", submit(_TE, _CLOSE, body=body), (400,))
    yield Message("chunks: a size beyond 64 bit", submit(_TE, _CLOSE, body=b"fffffffffffffffff\r\n" + _JOB), (400, 408, 413))
    extended = b"24;" + b"a" * 70_000 + b"\r\n" + _JOB + b"\r\n0\r\n\r\n"
    yield Message("chunks, with an extension of 70 KB", submit(_TE, _CLOSE, body=extended), (202, 400))
    yield Message(
        "chunks, then a trailer that signs in as another",
        submit(_TE, _CLOSE, body=chunked(_JOB, end=b"0\r\n" + _AUTH.replace(b"ann", b"bob") + b"\r\n")),
        (202, 400),
    )
    yield Message(
        "chunks, then a trailer with a length", submit(_TE, _CLOSE, body=chunked(_JOB, end=b"0\r\nContent-Length: 3\r\n\r\n")), (202, 400)
    )
    yield Message(
        "chunks in HTTP/1.0",
        head(b"POST", b"/v1/jobs", b"Idempotency-Key: k\r\nContent-Type: application/json\r\n", _TE, version=b"HTTP/1.0") + good,
        (400, 202),
    )


def _lines() -> Iterator[Message]:
    folded = b"Authorization: Bearer\r\n dev:acme:ann\r\n"
    yield Message("a folded line", b"GET /v1/jobs HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + folded + b"\r\n", (200, 400))
    yield Message("a folded line of our own", look(b"X-A: 1\r\n\t2\r\n"), (200, 400))
    yield Message("a first line that is folded", b"GET /v1/jobs HTTP/1.1\r\n X: 1\r\nHost: a\r\n\r\n", (400,))
    yield Message("line feeds alone", look().replace(b"\r\n", b"\n"), (200, 400))
    yield Message("carriage returns alone", look().replace(b"\r\n", b"\r"), ())
    yield Message("a carriage return in a value", look(b"X-A: 1\rX-B: 2\r\n"), (400,))
    yield Message("two carriage returns", look(b"X-A: 1\r\r\n"), (200, 400))
    yield Message("NUL in a value", look(b"X-A: a\x00b\r\n"), (400,))
    yield Message("NUL in a name", look(b"X\x00A: 1\r\n"), (400,))
    yield Message("NUL in a credential", look(b"X-A: 1\r\n").replace(b"dev:acme:ann", b"dev:acme:ann\x00"), (400,))
    yield Message("a control in a value", look(b"X-A: a\x08b\r\n"), (200, 400))
    yield Message("an escape in a value", look(b"X-A: \x1b[31m\r\n"), (200, 400))
    yield Message("a blank before a colon", look(b"X-A : 1\r\n"), (400,))
    yield Message("a blank in a name", look(b"X A: 1\r\n"), (400,))
    yield Message("no name", look(b": 1\r\n"), (400,))
    yield Message("no colon", look(b"X-A\r\n"), (400,))
    yield Message("a name in another script", look("É: 1\r\n".encode()), (400,))
    yield Message("a name of HTTP/2", look(b":authority: a\r\n"), (400,))
    yield Message("a name with brackets", look(b"X[A]: 1\r\n"), (400,))
    yield Message("two credentials", look(_AUTH), (400,))
    yield Message("a credential of two lines", look().replace(b"dev:acme:ann", b"dev:acme:ann\nX-A: 1"), (200, 400))
    yield Message("70 KB in a field", look(b"X-A: %s\r\n" % (b"x" * 70_000)), (400, 431))
    yield Message("40 KB in a field", look(b"X-A: %s\r\n" % (b"x" * 40_000)), (431,))
    yield Message("200 fields", look(*[b"X-%d: 1\r\n" % n for n in range(200)]), (431,))
    yield Message("20,000 fields", look(*[b"A: \r\n"] * 20_000), (400, 431))
    yield Message("no host", look(host=b""), (400,))
    yield Message("two hosts", look(host=b"Host: a\r\nHost: b\r\n"), (400,))
    yield Message("two equal hosts", look(host=b"Host: a\r\nHost: a\r\n"), (400,))
    for host in (b"a b", b"a/b", b"a@b", b"a:80:80", b"<script>", b"[::1", b"http://a", b"a?b", b"a#b", b"a,b", b'"a"', b"\xff"):
        yield Message(f"host {host!r}", look(host=b"Host: " + host + b"\r\n"), (400,))
    yield Message("no host, as HTTP/1.0 has none", look(host=b"", version=b"HTTP/1.0"), (200,))


def _targets() -> Iterator[Message]:
    yield Message("an absolute target", look(target=b"http://a/v1/jobs"), (200, 404))
    yield Message("an absolute target elsewhere", look(target=b"http://evil.example/v1/jobs"), (400, 404))
    yield Message("an absolute target with a user", look(target=b"http://ann:b@a/v1/jobs"), (400, 404))
    yield Message("a target of another scheme", look(target=b"file:///etc/passwd"), (400, 404))
    yield Message("a target without a slash", look(target=b"v1/jobs"), (400, 404))
    yield Message("a target of two slashes", look(target=b"//evil.example/v1/jobs"), (404,))
    yield Message("an authority for a CONNECT", head(b"CONNECT", b"evil.example:443", _CLOSE), (400, 404, 405))
    yield Message("a star for OPTIONS", head(b"OPTIONS", b"*", _CLOSE), (400, 404, 405))
    yield Message("a star for GET", look(target=b"*"), (400, 404))
    yield Message("a fragment", look(target=b"/v1/jobs#x"), (400, 404))
    yield Message("a raw blank", look(target=b"/v1/jobs?a= b"), (400,))
    yield Message("a raw NUL", look(target=b"/v1/jobs\x00"), (400,))
    yield Message("a raw control", look(target=b"/v1/jobs\x01"), (400,))
    yield Message("a raw byte that is no ASCII", look(target=b"/v1/jobs/\xff"), (400,))
    yield Message("raw UTF-8", look(target="/v1/jobs/é".encode()), (400,))
    yield Message("a raw quote", look(target=b'/v1/jobs/"'), (400, 404))
    yield Message("half an escape", look(target=b"/v1/jobs/%"), (400,))
    yield Message("no digits in an escape", look(target=b"/v1/jobs/%zz"), (400,))
    yield Message("an escaped NUL", look(target=b"/v1/jobs/%00"), (400,))
    yield Message("an overlong escape", look(target=b"/v1/jobs/%c0%af"), (400,))
    yield Message("escaped line ends", look(target=b"/v1/jobs/%0d%0aSet-Cookie:%20a=b"), (404,))
    yield Message("an address of 5 KB", look(target=b"/" + b"x" * 5_000), (414,))
    yield Message("an address of 70 KB", look(target=b"/" + b"x" * 70_000), (400, 414))
    yield Message("a trace", head(b"TRACE", b"/v1/jobs", _CLOSE, b"X-A: MARKER\r\n"), (405,))
    yield Message("a method of 10 KB", head(b"M" * 10_000, b"/v1/jobs", _CLOSE), (400, 405))
    yield Message("a method in lower case", head(b"get", b"/v1/jobs", _CLOSE), (400, 405))
    yield Message("a method with a blank", head(b"GE T", b"/v1/jobs", _CLOSE), (400,))
    yield Message("a method that is none", head(b"G(T", b"/v1/jobs", _CLOSE), (400,))
    yield Message(
        "an upgrade to a socket",
        look(b"Upgrade: websocket\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n").replace(
            b"close", b"Upgrade"
        ),
        (200, 400, 426),
    )
    yield Message("an upgrade to HTTP/2", look(b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"), (200, 400))
    yield Message("two requests on one connection", head(b"GET", b"/healthz") + look(), (200,), most=2)
    yield Message("a good one, then garbage", head(b"GET", b"/healthz") + b"\x00\x01\x02\r\n\r\n", (200,), most=2)


def _no_requests() -> Iterator[Message]:
    for why, sent in {
        "nothing but line ends": b"\r\n\r\n\r\n",
        "a word": b"hello\r\n\r\n",
        "a method": b"GET\r\n\r\n",
        "no version": b"GET /v1/jobs\r\n\r\n",
        "a version in lower case": b"GET /v1/jobs http/1.1\r\nHost: a\r\n\r\n",
        "something behind the version": b"GET /v1/jobs HTTP/1.1 x\r\nHost: a\r\n\r\n",
        "a blank first": b" GET /v1/jobs HTTP/1.1\r\nHost: a\r\n\r\n",
        "tabs between": b"GET\t/v1/jobs\tHTTP/1.1\r\nHost: a\r\n\r\n",
        "a hello of TLS": bytes.fromhex("16030100a5010000a10303") + bytes(range(160)) + b"\r\n\r\n",
        "a banner of SSH": b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        "a mail": b"EHLO evil.example\r\n\r\n",
        "a query of a database": b"*1\r\n$4\r\nPING\r\n\r\n",
        "an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "a proxy's line": b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET /v1/jobs HTTP/1.1\r\nHost: a\r\n\r\n",
        "noise": bytes(range(256)) * 20 + b"\r\n\r\n",
        "zeros": bytes(70_000),
        "a line without an end": b"GET /" + b"x" * 70_000,
    }.items():
        yield Message(f"no request: {why}", sent, () if why == "nothing but line ends" else (400, 505))
    # Of a version that h11 does not know it reads the rest as it reads 1.1; nobody is signed in.
    for version in (b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9.9"):
        sent = b"GET /v1/jobs %s\r\nHost: a\r\nConnection: close\r\n\r\n" % version
        yield Message(f"version {version.decode()}", sent, (400, 401, 505))
    yield Message("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 404, 505), most=2)
