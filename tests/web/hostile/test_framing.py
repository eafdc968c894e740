"""Bytes that are read in two ways, too long, too slow or without an end, sent to a server of its own over bare sockets."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from outlast.http.limits import STREAMS
from outlast.http.problems import CATALOGUE
from web.hostile.framing import Message, head, messages
from web.hostile.wire import Reply, replies, talk
from web.served import Client, Process, connect, request_bytes, until, vanish
from web.world import Books, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

BODY_SECONDS: Final = 2.0
MESSAGES: Final = tuple(messages())
_MIB: Final = 2**20


class Server:
    """A server on a world of its own."""

    def __init__(self, process: Process, path: Path) -> None:
        self.process = process
        self.port = process.port
        self.path = path


@pytest.fixture(scope="module")
def server(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    path = folder / "jobs.db"
    copied = world.copy(path)
    command = ["-m", "outlast", "serve", "web.hostile.target:jobs", "--store", copied.url, "--port", "0"]
    with Process(folder, command, BODY_SECONDS=str(BODY_SECONDS)) as process:
        yield Server(process, path)


def test_messages_are_all_different() -> None:
    assert len({message.why for message in MESSAGES}) == len({message.content for message in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("part", range(4))
def test_messages(server: Server, part: int) -> None:
    wrong: list[str] = []
    with Books(server.path) as books:
        for message in MESSAGES[part::4]:
            books.written()
            found = talk(server.port, message.content, seconds=0.3 if not message.wanted else 3.0)
            wrong += [f"{message.why}: {said}: {found}" for said in unfit(message, found)]
            if books.written() != any(reply.status == 202 for reply in found):
                wrong.append(f"{message.why}: something was written: {found}")
            if talk(server.port, b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")[0].status != 200:
                wrong.append(f"{message.why}: then nothing is served")
    assert not wrong, "\n".join(wrong)
    assert "Traceback" not in server.process.log


def unfit(message: Message, found: list[Reply]) -> Iterator[str]:
    """What is wrong with the answers."""
    if not message.wanted:
        if [reply for reply in found if reply.status < 400]:
            yield "it was served"
        return
    if not found or found[0].status not in message.wanted or len(found) > message.most:
        yield f"not one answer of {message.wanted}"
    for reply in found:
        if reply.ours and reply.status >= 400 and "json" in reply.headers["content-type"]:
            said = json.loads(reply.body)
            if CATALOGUE[said["code"]].status != reply.status:
                yield "a code of another status"
        if b"smuggled" in reply.body or (reply.ours and reply.headers.get("x-content-type-options") != "nosniff"):
            yield "a strange answer"


def test_a_head_has_no_body(server: Server) -> None:
    for path in (b"/v1/jobs", b"/v1/jobs/7", b"/openapi.json", b"/v1/events"):
        (reply,) = talk(server.port, head(b"HEAD", path, b"Connection: close\r\n"))
        assert reply.body == b""


def test_a_slow_body_ends_in_time(server: Server) -> None:
    """A byte a second; meanwhile others are served."""
    sent = request_bytes(
        server.port, "/v1/jobs", method="POST", Idempotency_Key="slow", Content_Type="application/json", Content_Length="36"
    )
    with Books(server.path) as books, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(server.port)) for _ in range(5)]
        for sock in slow:
            sock.sendall(sent)
        with Client(server.port) as client:
            for byte in b'{"kin':
                for sock in slow:
                    with contextlib.suppress(ConnectionError):
                        sock.sendall(bytes([byte]))
                assert client.ask("GET", "/v1/jobs")[0] == 200
                time.sleep(0.3)
        for sock in slow:
            (reply,) = replies(_all(sock))
            assert (reply.status, json.loads(reply.body)["code"]) == (408, "request_timeout")
            assert reply.headers["connection"] == "close"
        assert not books.written()


def _all(sock: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(65_536):
            received += part
    return received


@pytest.mark.parametrize("how", ["chunks", "a length"])
def test_a_body_without_an_end_is_refused_while_it_comes(server: Server, how: str) -> None:
    """A gibibyte, from several at once: it is not read to its end, and not kept."""
    gibibyte = 2**30
    framing = b"Transfer-Encoding: chunked\r\n" if how == "chunks" else b"Content-Length: %d\r\n" % gibibyte
    sent = head(b"POST", b"/v1/jobs", b"Idempotency-Key: k\r\nContent-Type: application/json\r\n", framing)
    part = b" " * _MIB
    piece = b"%x\r\n%s\r\n" % (len(part), part) if how == "chunks" else part
    before = server.process.memory
    highest = before

    def pour() -> tuple[int, bytes]:
        count = 0
        with connect(server.port) as sock:
            sock.sendall(sent)
            with contextlib.suppress(ConnectionError):
                while count < gibibyte:
                    sock.sendall(piece)
                    count += len(piece)
            return count, _all(sock)

    with Books(server.path) as books, ThreadPoolExecutor(8) as threads:
        running = [threads.submit(pour) for _ in range(8)]
        while not all(one.done() for one in running):
            highest = max(highest, server.process.memory)
            time.sleep(0.01)
        for count, received in [one.result() for one in running]:
            assert count < 64 * _MIB
            assert not received or received.startswith(b"HTTP/1.1 413 ")  # nothing, or a part, where a reset overtook it
        assert not books.written()
    assert highest - before < 64 * _MIB


def test_ten_bodies_at_the_limit_are_not_kept(server: Server) -> None:
    """What is refused after it was read whole leaves nothing behind either."""
    body = b'{"kind":"note","input":{"text":"' + b"\xc3(" * 130_000 + b'"}}'
    for _ in range(3):  # what Python and malloc keep for good
        _refused(server, body)
    before = server.process.memory
    for _ in range(40):
        _refused(server, body)
    assert server.process.memory - before < 32 * _MIB


def _refused(server: Server, body: bytes) -> None:
    with Client(server.port) as client:
        client._connection.request(
            "POST",
            "/v1/jobs",
            body,
            {"Authorization": "Bearer dev:acme:ann", "Content-Type": "application/json", "Idempotency-Key": "k"},
        )
        assert client._connection.getresponse().status == 400


def test_who_leaves_in_the_middle_of_a_body_stores_nothing(server: Server) -> None:
    body = b'{"kind":"note","input":{"text":"x"}}'
    sent = request_bytes(server.port, "/v1/jobs", method="POST", body=body, Idempotency_Key="gone", Content_Type="application/json")
    with Books(server.path) as books:
        for end in range(len(sent) - len(body) - 4, len(sent), 3):
            sock = connect(server.port)
            sock.sendall(sent[:end])
            vanish(sock)
        with Client(server.port) as client:
            assert client.ask("GET", "/v1/jobs")[0] == 200
        assert not books.written()
    assert "Traceback" not in server.process.log


def test_what_is_expected_is_said_before_the_body_is_sent(server: Server) -> None:
    body = b'{"kind":"note","input":{"text":"x"}}'
    sent = request_bytes(
        server.port,
        "/v1/jobs",
        method="POST",
        Idempotency_Key="expected",
        Content_Type="application/json",
        Content_Length=str(len(body)),
        Expect="100-continue",
        Connection="close",
    )
    with connect(server.port) as sock:
        sock.sendall(sent)
        first = sock.recv(65_536)
        assert first.startswith(b"HTTP/1.1 100 ")
        sock.sendall(body)
        assert [reply.status for reply in replies(first + _all(sock))] == [100, 202]


def test_who_may_not_submit_need_not_send_the_body(server: Server) -> None:
    """Refused by its head: the body is neither asked for nor waited for."""
    for media in (b"Content-Type: text/plain\r\n", b"Content-Type: application/json\r\nContent-Encoding: gzip\r\n"):
        sent = head(b"POST", b"/v1/jobs", b"Idempotency-Key: k\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n", media)
        with connect(server.port) as sock:
            sock.sendall(sent)
            assert sock.recv(65_536).startswith(b"HTTP/1.1 415 ")


def test_streams_are_counted_and_given_back_when_their_readers_vanish(server: Server, world: World) -> None:
    """Each principal has so many; others have their own; who goes away without a goodbye gives theirs back."""
    sent = request_bytes(server.port, "/v1/events", who="acme:bob")
    held = [connect(server.port) for _ in range(STREAMS)]
    for sock in held:
        sock.sendall(sent)
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 ")
    with connect(server.port) as sock:
        sock.sendall(request_bytes(server.port, "/v1/events", who="acme:bob", Connection="close"))
        (reply,) = replies(_all(sock))
    assert (reply.status, json.loads(reply.body)["code"], reply.headers["retry-after"]) == (429, "too_many_streams", "15")
    with connect(server.port) as sock:
        sock.sendall(request_bytes(server.port, "/v1/events", who="globex:bob"))
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 ")
    for sock in held:
        vanish(sock)

    def again() -> bool:
        with connect(server.port) as sock:
            sock.sendall(sent)
            return sock.recv(65_536).startswith(b"HTTP/1.1 200 ")

    until(again, "a stream for who had let all of theirs go")


def test_many_at_once_are_all_answered(server: Server) -> None:
    """Garbage from many, and good requests between them."""
    stop = threading.Event()

    def throw() -> None:
        while not stop.is_set():
            with connect(server.port) as sock:
                sock.sendall(b"\x00\xff garbage \r\n\r\n")
                _all(sock)

    throwers = [threading.Thread(target=throw) for _ in range(4)]
    for thread in throwers:
        thread.start()
    try:
        with Client(server.port) as client:
            assert {client.ask("GET", "/v1/jobs")[0] for _ in range(100)} == {200}
    finally:
        stop.set()
        for thread in throwers:
            thread.join()
