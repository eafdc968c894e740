"""Servers as processes of their own, and clients that speak to them over sockets, politely or not."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

T = TypeVar("T")
PATIENCE = 20.0
TESTS = Path(__file__).parent.parent


def until(ask: Callable[[], T], what: str, *, timeout: float = PATIENCE) -> T:
    """The first true answer; AssertionError when none comes in time."""
    end = time.monotonic() + timeout
    while not (answer := ask()):
        assert time.monotonic() < end, f"never: {what} (last answer: {answer!r})"
        time.sleep(0.03)
    return answer


class Process:
    """A command of Outlast, or a script, as a process that ends with the block."""

    def __init__(self, folder: Path, command: Sequence[str], **env: str) -> None:
        name = f"{time.monotonic_ns()}"
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "OUTLAST_REHEARSAL_LEDGER": str(folder / "ledger"), **env}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def said(self) -> str:
        return self._out.read_text()

    @property
    def log(self) -> str:
        return self._err.read_text()

    def line(self, beginning: str) -> str:
        """The first line of its standard output that begins so, once it is there."""

        def found() -> str:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.log}"
            return next((line for line in self.said.splitlines() if line.startswith(beginning)), "")

        return until(found, beginning)

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return int(self.line("listening on http://").rpartition(":")[2])

    @property
    def memory(self) -> int:
        """Bytes of its memory that are in use."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def serve(folder: Path, url: str, **env: str) -> Process:
    """`outlast serve` with the rehearsal app."""
    return Process(folder, ["-m", "outlast", "serve", "outlast.rehearsal:app", "--store", url, "--port", "0", "--dev-identities"], **env)


def work(folder: Path, url: str, *more: str) -> Process:
    """`outlast worker` with the rehearsal app."""
    return Process(folder, ["-m", "outlast", "worker", "outlast.rehearsal:app", "--store", url, *more])


class Client:
    """One person at a server, over a connection that is kept."""

    def __init__(self, port: int, who: str = "acme:ann", prefix: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._who = who
        self._prefix = prefix

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """Status, headers, and the body, parsed where it is JSON."""
        sent = None if body is None else json.dumps(body)
        media = {} if body is None else {"Content-Type": "application/json"}
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, self._prefix + path, sent, {"Authorization": f"Bearer dev:{self._who}", **media, **more})
        answer = self._connection.getresponse()
        text = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(text) if "json" in found.get("content-type", "") else text

    def submit(self, key: str, **part: Any) -> tuple[int, dict[str, Any]]:
        """A rehearsal of one task."""
        body = {"kind": "rehearsal", "input": {"tasks": [{"label": "A", **part}]}}
        status, _, job = self.ask("POST", "/v1/jobs", body, Idempotency_Key=key)
        return status, job


def request_bytes(port: int, path: str, *, method: str = "GET", body: bytes = b"", who: str = "acme:ann", **headers: str) -> bytes:
    """A request as it goes over the wire."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer dev:{who}\r\n{more}{length}\r\n"
    return head.encode() + body


def connect(port: int) -> socket.socket:
    """A bare connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def vanish(sock: socket.socket) -> None:
    """Goes away without a goodbye: the other side hears of it by a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    sock.close()
