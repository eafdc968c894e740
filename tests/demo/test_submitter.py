"""The client that dies: after the first byte of its answer has come, and not before."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

ORDER = b'{"kind":"book","input":{}}'


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken.settimeout(15)
        yield taken


@pytest.fixture
def client(listening: socket.socket) -> Iterator[subprocess.Popen[str]]:
    arguments = [str(listening.getsockname()[1]), "demo", "reader", "key-1", ORDER.decode()]
    with subprocess.Popen([sys.executable, "-m", "outlast.demo.submitter", *arguments], stderr=subprocess.PIPE, text=True) as started:
        yield started
        started.kill()


def received(connection: socket.socket) -> bytes:
    """The whole request."""
    connection.settimeout(15)
    sent = b""
    while not sent.endswith(ORDER):
        part = connection.recv(65_536)
        assert part, sent
        sent += part
    return sent


def test_it_lives_until_its_answer_begins_and_dies_without_reading_it(listening: socket.socket, client: subprocess.Popen[str]) -> None:
    connection, _ = listening.accept()
    with connection:
        head = received(connection).split(b"\r\n\r\n")[0].split(b"\r\n")
        assert head[0] == b"POST /v1/jobs HTTP/1.1"
        assert {b"Idempotency-Key: key-1", b"Authorization: Bearer dev:demo:reader", b"Content-Type: application/json"} <= set(head)
        assert client.poll() is None
        connection.send(b"H")
        assert client.wait(15) == -signal.SIGKILL
        with pytest.raises(ConnectionResetError):  # and not the end of the connection: the byte was there, unread
            connection.recv(1)


def test_it_does_not_die_of_a_server_that_goes_away(listening: socket.socket, client: subprocess.Popen[str]) -> None:
    connection, _ = listening.accept()
    with connection:
        received(connection)
    assert client.communicate(timeout=15)[1] == "The API did not answer.\n"
    assert client.returncode == 1
