"""Bytes sent to a server as they are, and what comes back until it closes or has nothing more to say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from web.served import connect

_HEAD: Final = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer on a connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def ours(self) -> bool:
        """Whether the application answered, and not the server in front of it."""
        return "x-request-id" in self.headers


def talk(port: int, sent: bytes, *, seconds: float = 10.0) -> list[Reply]:
    """All answers to what was sent. The connection is ended by the server, or by us after so many seconds without a byte."""
    received = b""
    with connect(port) as sock:
        sock.settimeout(seconds)
        try:
            sock.sendall(sent)
            while part := sock.recv(65_536):
                received += part
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            pass
    return replies(received, to_head=sent.startswith(b"HEAD "))


def replies(received: bytes, *, to_head: bool = False) -> list[Reply]:
    """The answers in what was received; a part of one at the end fails."""
    found: list[Reply] = []
    while received:
        head = _HEAD.match(received)
        assert head is not None, received[:200]
        headers = {name.decode().lower(): value.decode() for name, _, value in (line.partition(b": ") for line in head[2].splitlines())}
        received = received[head.end() :]
        body, received = _body(int(head[1]), headers, received, to_head=to_head)
        found.append(Reply(int(head[1]), headers, body))
    return found


def _body(status: int, headers: dict[str, str], rest: bytes, *, to_head: bool) -> tuple[bytes, bytes]:
    if to_head or status < 200 or status in (204, 304):
        return b"", rest
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            count = int(size, 16)
            body, rest = body + rest[:count], rest[count + 2 :]
            if not count:
                break
        return body, rest
    if "content-length" not in headers:  # it goes on to the end of the connection
        return rest, b""
    length = int(headers["content-length"])
    assert len(rest) >= length, "half an answer"
    return rest[:length], rest[length:]
