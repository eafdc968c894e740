"""`make hosts`: API, two workers and the database at addresses of their own; one worker loses its way to the database alone.

    python -m rehearsals.hosts

Each host is a network namespace of Linux (`ip netns`, which needs root), joined by a bridge that leads nowhere else. The worker that holds
a task still reaches the provider that the task calls, and nothing of what it sends reaches the database: no error, no answer. It has to
make no call any more before another worker may begin, to come back when the way is there again, and to write nothing of what it had.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg

from crash.stage import Process, Stage, until
from invariants import check
from outlast.store.open import migrate
from rehearsals.hosts_app import PROVIDER
from servers.postgres import PostgresServer

NET = "10.213.77"
HUB, DATABASE, API, FIRST, SECOND = (f"{NET}.{n}" for n in range(1, 6))
NOBODY = "02:00:00:00:00:01"
"""A hardware address that no host has: what is sent there is lost without a word."""
LEASE = 3.0
INSIDE = "--inside"
PATIENCE = 60.0
TESTS = Path(__file__).parent.parent


class CannotRehearse(Exception):
    """This machine does not let namespaces be made; the text says why."""


@dataclass(frozen=True)
class Host:
    """A namespace with one address."""

    name: str
    address: str

    def command(self, *arguments: str) -> list[str]:
        """The command, run on this host."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def cut(self, address: str) -> None:
        """What this host sends to that address is lost from now on."""
        _ip("-n", self.name, "neigh", "replace", address, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0")

    def mend(self, address: str) -> None:
        """It arrives again."""
        _ip("-n", self.name, "neigh", "del", address, "dev", "eth0")


@dataclass
class Figures:
    """What came of it, in seconds from the cut."""

    last_call: float = 0.0
    first_call_of_other: float = 0.0
    back: float = 0.0
    calls: dict[int, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"calls by fence                    {self.calls}",
            f"the last call of the one cut off  {self.last_call:.1f} s after the cut (lease {LEASE:.0f} s)",
            f"the first call of its replacement {self.first_call_of_other:.1f} s after the cut",
            f"the one cut off works again       {self.back:.1f} s after the way was mended",
        ]


class Database(PostgresServer):
    """PostgreSQL at an address of its own, for the hosts of the bridge."""

    def __init__(self) -> None:
        super().__init__(settings={"listen_addresses": f"127.0.0.1,{DATABASE}"})

    def _initdb(self) -> None:
        super()._initdb()
        with (self._home() / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NET}.0/24 trust\n")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotRehearse(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@contextmanager
def network() -> Generator[str]:
    """The hub's namespace, with a bridge, and the three hosts beside it; nothing of it is left."""
    if shutil.which("ip") is None:
        raise CannotRehearse("iproute2 is not installed")
    tag = f"ol{secrets.token_hex(3)}"
    made: list[str] = []
    try:
        for part in ("hub", "api", "w1", "w2"):
            _ip("netns", "add", f"{tag}-{part}")
            made.append(f"{tag}-{part}")
            _ip("-n", f"{tag}-{part}", "link", "set", "lo", "up")
        hub = f"{tag}-hub"
        _ip("-n", hub, "link", "add", "br0", "type", "bridge")
        for address in (HUB, DATABASE):
            _ip("-n", hub, "addr", "add", f"{address}/24", "dev", "br0")
        _ip("-n", hub, "link", "set", "br0", "up")
        for part, address in (("api", API), ("w1", FIRST), ("w2", SECOND)):
            host = f"{tag}-{part}"
            _ip("-n", hub, "link", "add", f"to-{part}", "type", "veth", "peer", "name", "eth0", "netns", host)
            _ip("-n", hub, "link", "set", f"to-{part}", "master", "br0", "up")
            _ip("-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", host, "link", "set", "eth0", "up")
        yield tag
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


class Provider:
    """Notes who called, and when."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, dict[str, Any]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.calls.append((time.monotonic(), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer((HUB, 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://{HUB}:{self._server.server_port}/"

    def of(self, job: str, fence: int | None = None) -> list[float]:
        """When a job called, or one claim of it."""
        return [at for at, body in list(self.calls) if body["job"] == job and fence in (None, body["fence"])]

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


def rehearse(tag: str, *, say: Callable[[str], None] = print) -> Figures:
    """The whole, in the hub's namespace; AssertionError for whatever should not be."""
    api, first, second = Host(f"{tag}-api", API), Host(f"{tag}-w1", FIRST), Host(f"{tag}-w2", SECOND)
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="outlast-hosts-") as folder, Database() as server:
        server.create_database("shop")
        url = f"postgresql://outlast@{DATABASE}:{server.port}/shop"
        migrate(url)
        stage = Stage(url, Path(folder))
        provider = Provider()
        try:
            environment = {PROVIDER: provider.url, "OUTLAST_STORE": url}
            web = stage.start(api.command(*_outlast("serve", "--host", API, "--port", "8000")), env=environment, wait=False)
            until(lambda: "listening on" in web.said, "the API listening")
            one = _worker(stage, first, environment)
            job = _submit(60)
            until(lambda: len(provider.of(job, 1)) > 3, "the first worker calling")
            two = _worker(stage, second, environment)
            say("API, two workers, database and provider have addresses of their own; the first worker calls the provider")

            first.cut(DATABASE)
            cut = time.monotonic()
            say("nothing that it sends reaches the database any more; the provider it still reaches")
            until(lambda: provider.of(job, 2), "the second worker calling", timeout=PATIENCE)
            until(lambda: _state(job) == "completed", "the job completed", timeout=PATIENCE)
            mine, theirs = provider.of(job, 1), provider.of(job, 2)
            assert mine[-1] < theirs[0], "both called at once"
            assert len(theirs) == 60
            figures.last_call, figures.first_call_of_other = mine[-1] - cut, theirs[0] - cut
            figures.calls = {1: len(mine), 2: len(theirs)}
            assert _kept(server, job) == [(2, "2")]

            first.mend(DATABASE)
            mended = time.monotonic()
            two.terminate()
            assert two.ended() == 0
            again = _submit(2)
            until(lambda: _state(again) == "completed", "the first worker at work again", timeout=PATIENCE)
            figures.back = time.monotonic() - mended
            assert one.alive, one.log
            assert _kept(server, job) == [(2, "2")], "it came back and wrote"
            check(server.dsn("shop"))
        finally:
            stage.close()
            provider.close()
    return figures


def _outlast(command: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "outlast", command, "rehearsals.hosts_app:jobs", *arguments]


def _worker(stage: Stage, host: Host, environment: dict[str, str]) -> Process:
    return stage.start(host.command(*_outlast("worker", "--lease", str(LEASE), "--grace", "3")), env=environment, wait=True)


def _ask(method: str, path: str, body: object = None, **headers: str) -> Any:
    connection = http.client.HTTPConnection(API, 8000, timeout=30)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"X-User": "ann", "Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        read = json.loads(answer.read())
        assert answer.status in (200, 202), read
        return read
    finally:
        connection.close()


def _submit(count: int) -> str:
    job: dict[str, str] = _ask(
        "POST", "/v1/jobs", {"kind": "calls", "input": {"count": count}}, **{"Idempotency-Key": secrets.token_hex(8)}
    )
    return job["id"]


def _state(job: str) -> str:
    return str(_ask("GET", f"/v1/jobs/{job}")["state"])


def _kept(server: PostgresServer, job: str) -> list[tuple[int, str]]:
    """The claims whose results are stored: the fence of the task, and what it returned."""
    with psycopg.connect(server.dsn("shop")) as connection:
        return connection.execute(
            "select t.fence, o.body::text from outlast.output o join outlast.task t using (tenant, job_id, no) where job_id = %s", [job]
        ).fetchall()


def rehearse_elsewhere() -> str:
    """The rehearsal in a namespace that reaches nothing of this machine; what it printed."""
    with network() as tag:
        command = ["ip", "netns", "exec", f"{tag}-hub", sys.executable, "-m", "rehearsals.hosts", INSIDE, tag]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def main() -> None:
    """The command."""
    if INSIDE in sys.argv:
        for line in rehearse(sys.argv[-1]).lines():
            print(line)
        print("It made no call once another might begin, came back by itself, and wrote nothing.")
        return
    try:
        print(rehearse_elsewhere(), end="")
    except CannotRehearse as error:
        sys.exit(f"NOT REHEARSED: this needs network namespaces, which only root may make ({error}).")


if __name__ == "__main__":
    main()
