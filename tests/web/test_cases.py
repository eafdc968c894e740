"""What other job systems were reported for, as far as it concerns HTTP (cases B03, B21, B32, B49)."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outlast.store.open import migrate
from servers.postgres import PostgresServer
from web.served import Client, Process, connect, request_bytes, serve, until, vanish, work
from web.shop import make
from web.site import Site

BODY = json.dumps({"kind": "rehearsal", "input": {"tasks": [{"label": "A"}]}}).encode()

HOST = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount
from outlast.http.development import identify
from outlast.rehearsal import app as jobs

jobs.use(sys.argv[1])

class Pass(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return await call_next(request)

host = Starlette(routes=[Mount("/a/jobs", jobs.asgi(identify=identify))], middleware=[Middleware(Pass), Middleware(Pass)])
config = uvicorn.Config(host, port=0, log_level="warning")
sock = config.bind_socket()
sock.listen(100)
print(f"listening on http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
uvicorn.Server(config).run(sockets=[sock])
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    return url


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_b03_a_client_that_goes_away_loses_no_job_and_makes_no_second(tmp_path: Path, file: str) -> None:
    """Behind middleware of the host: gone right after the request, and right after the status line."""
    (tmp_path / "host.py").write_text(HOST)
    with Process(tmp_path, ["host.py", file]) as host, work(tmp_path, file, "--lease", "1"):  # it is killed with what it holds
        port = host.port
        headers = {"Content_Type": "application/json"}
        for n in range(40):
            sock = connect(port)
            sock.sendall(request_bytes(port, "/a/jobs/v1/jobs", method="POST", body=BODY, Idempotency_Key=f"gone-{n}", **headers))
            if n % 2:
                assert sock.recv(12) == b"HTTP/1.1 202"
            (vanish if n % 4 < 2 else socket.socket.close)(sock)
    with Process(tmp_path, ["host.py", file]) as host, work(tmp_path, file), Client(host.port, prefix="/a/jobs") as again:
        ids = set()
        for n in range(40):
            status, headers_said, job = again.ask("POST", "/v1/jobs", json.loads(BODY), Idempotency_Key=f"gone-{n}")
            assert status in (200, 202)
            if n % 2:
                assert headers_said["idempotency-replayed"] == "true", "who saw the status line had a job"
            ids.add(job["id"])
        assert len(ids) == 40
        listed = again.ask("GET", "/v1/jobs?limit=200")[2]["items"]
        assert {job["id"] for job in listed} == ids
        until(lambda: not again.ask("GET", "/v1/jobs?state=active")[2]["items"], "all are done")
        assert {job["state"] for job in again.ask("GET", "/v1/jobs?limit=200")[2]["items"]} == {"completed"}


async def test_b21_fifty_at_once_whatever_isolation_the_database_is_set_to(postgres_server: PostgresServer) -> None:
    name = f"b21_{uuid.uuid4().hex[:8]}"
    url = postgres_server.create_database(name)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
    await asyncio.to_thread(migrate, url)
    sites = [Site(make(url)) for _ in range(3)]  # three processes' worth of applications
    for _ in range(5):
        key = uuid.uuid4().hex

        async def one(site: Site, key: str = key) -> Any:
            body = {"kind": "note", "input": {"text": "x"}}
            return await site.call("POST", "/v1/jobs", json_body=body, headers={"Idempotency-Key": key})

        answers = await asyncio.gather(*(one(sites[n % 3]) for n in range(50)))
        assert {answer.status for answer in answers} == {202}
        assert len({answer.json["id"] for answer in answers}) == 1
        assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert len((await sites[0].call("GET", "/v1/jobs")).json["items"]) == 5
    for site in sites:
        site.app.stop()
        await site.jobs.close()


class Load:
    """Steady submits and reads over HTTP; what was accepted, and what was refused how."""

    def __init__(self, port: int, *, seconds: float, rate: float) -> None:
        self.accepted: list[str] = []
        self.refused: list[tuple[int, Any]] = []
        self._port = port
        self._stop = time.monotonic() + seconds
        self._pause = 1 / rate

    def submit(self) -> None:
        with Client(self._port) as client:
            for n in itertools.count():
                if time.monotonic() > self._stop:
                    return
                status, job = client.submit(f"load-{n}")
                while status == 503:  # as the answer says: again, with the same key
                    self.refused.append((status, job))
                    time.sleep(0.2)
                    status, job = client.submit(f"load-{n}")
                assert status in (200, 202), job
                self.accepted.append(job["id"])
                time.sleep(self._pause)

    def read(self) -> None:
        with Client(self._port) as client:
            while time.monotonic() < self._stop:
                status, _, said = client.ask("GET", f"/v1/jobs/{self.accepted[-1]}" if self.accepted else "/v1/jobs")
                if status != 200:
                    self.refused.append((status, said))
                time.sleep(self._pause)


def write_and_copy(path: Path) -> None:
    """A program that holds a write transaction for 3 s, and a backup."""
    time.sleep(2)
    other = sqlite3.connect(path, timeout=10, isolation_level=None)
    other.execute("begin immediate")
    time.sleep(3)
    other.execute("rollback")
    copy = sqlite3.connect(path.with_name("copy.db"))
    other.backup(copy)
    assert copy.execute("pragma integrity_check").fetchone() == ("ok",)
    copy.close()
    other.close()


def at_once(*work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_b32_a_busy_sqlite_file_answers_nobody_with_locked(tmp_path: Path, file: str) -> None:
    """One API and four workers on one file, a second program that writes for 3 s, a backup, and steady submits and reads."""
    with serve(tmp_path, file) as server, work(tmp_path, file), work(tmp_path, file), work(tmp_path, file), work(tmp_path, file):
        load = Load(server.port, seconds=10, rate=25)
        at_once(load.submit, load.read, lambda: write_and_copy(tmp_path / "jobs.db"))
        assert len(load.accepted) > 10
        assert len(set(load.accepted)) == len(load.accepted)
        for status, said in load.refused:
            assert (status, said["code"], said["retryable"]) == (503, "store_unavailable", True)
        with Client(server.port) as client:
            until(lambda: not client.ask("GET", "/v1/jobs?state=active")[2]["items"], "all that were accepted are done", timeout=60)
            for job_id in load.accepted:
                assert client.ask("GET", f"/v1/jobs/{job_id}")[2]["state"] == "completed"
        assert "database is locked" not in server.log


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_b32_a_file_that_cannot_be_written_is_named_at_admission(tmp_path: Path, file: str) -> None:
    with serve(tmp_path, file) as server, Client(server.port) as client:
        assert client.submit("before")[0] == 202
        blocker = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
        blocker.execute("begin exclusive")
        status, headers, said = client.ask("POST", "/v1/jobs", json.loads(BODY), Idempotency_Key="held")
        assert (status, said["code"], said["retryable"]) == (503, "store_unavailable", True)
        assert int(headers["retry-after"]) >= 1
        blocker.execute("rollback")
        blocker.close()
        status, headers, _ = client.ask("POST", "/v1/jobs", json.loads(BODY), Idempotency_Key="held")
        assert status == 202
        assert "idempotency-replayed" not in headers, "nothing had been stored"


def submits_and_reads(port: int, who: str, keys: range) -> None:
    with Client(port, who) as client:
        for n in keys:
            status, job = client.submit(f"{n}")
            assert status == 202
            assert client.ask("GET", f"/v1/jobs/{job['id']}")[0] == 200


def readers(port: int, people: Sequence[str]) -> list[socket.socket]:
    """A stream for each, that has begun."""
    opened: list[socket.socket] = []
    for who in people:
        sock = connect(port)
        sock.sendall(request_bytes(port, "/v1/events", who=who))
        opened.append(sock)
    assert {sock.recv(15) for sock in opened} == {b"HTTP/1.1 200 OK"}
    return opened


@pytest.mark.slow
@pytest.mark.timeout(170)
def test_b49_nothing_is_left_of_requests_and_of_readers_that_vanish(tmp_path: Path, postgres_server: PostgresServer) -> None:
    """RSS at one third and at the end of many submits and reads; sockets and streams after 500 readers have gone without a word."""
    url = postgres_server.create_database(f"b49_{uuid.uuid4().hex[:8]}")
    migrate(url)
    with serve(tmp_path, url) as server:
        port = server.port
        at_once(*(partial(submits_and_reads, port, f"acme:p{n}", range(120)) for n in range(4)))
        third = server.memory
        at_once(*(partial(submits_and_reads, port, f"acme:p{n}", range(120, 360)) for n in range(4)))
        assert server.memory - third < 20 * 2**20

        idle = server.descriptors
        people = [f"acme:reader{n}" for n in range(500)]
        for n, sock in enumerate(readers(port, people)):
            (vanish if n % 2 else socket.socket.close)(sock)
        until(lambda: server.descriptors <= idle + 5, "the sockets of the vanished are gone", timeout=60)
        for who in people[::50]:  # and so are their places among the streams: each may open as many as ever
            for sock in readers(port, [who] * 8):
                sock.close()
        assert "Traceback" not in server.log
