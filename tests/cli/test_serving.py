"""`serve` and `dev`: what they refuse, the line they print, what they answer, and how they end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cli.conftest import Shell, Working, until

ANYWHERE = "0.0.0.0"  # noqa: S104 - it is refused
ANN = {"Authorization": "Bearer dev:acme:ann"}


def port_of(working: Working) -> int:
    def listening() -> int:
        assert working.process.poll() is None, f"it ended with {working.process.returncode}: {working.log}"
        lines = [line for line in working.said.splitlines() if line.startswith("listening on http://127.0.0.1:")]
        return int(lines[0].rpartition(":")[2]) if lines else 0

    return until(listening, "it listens")


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    try:
        sent = None if body is None else json.dumps(body)
        media = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, sent, {**ANN, **media, **{name.replace("_", "-"): value for name, value in headers.items()}})
        answer = connection.getresponse()
        text = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(text) if "json" in found.get("content-type", "") else text
    finally:
        connection.close()


def submit(port: int, seconds: float = 0, key: str = "k") -> dict[str, Any]:
    body = {"kind": "rehearsal", "input": {"tasks": [{"label": "A", "seconds": seconds}]}}
    status, _, job = ask(port, "POST", "/v1/jobs", body, Idempotency_Key=key)
    assert status == 202, job
    found: dict[str, Any] = job
    return found


@contextmanager
def reading(port: int, path: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    connection.request("GET", path, headers=ANN)
    yield connection.getresponse()
    connection.close()


SERVE = ("serve", "shop:jobs", "--port", "0", "--dev-identities")
REHEARSAL = ("serve", "outlast.rehearsal:app", "--port", "0", "--dev-identities")


@pytest.mark.parametrize("more", [(), ("--host", ANYWHERE)])
def test_a_target_without_an_authenticator_is_not_served(shell: Shell, more: tuple[str, ...]) -> None:
    result = shell.run("serve", "shop:jobs", "--port", "0", *more, code=2)
    assert "jobs.asgi(identify=...)" in result.stderr
    assert "--dev-identities" in result.stderr
    assert result.stdout == ""


def test_identities_for_development_are_for_this_machine_only(shell: Shell) -> None:
    for host in (ANYWHERE, "192.0.2.1", "::"):
        result = shell.run(*SERVE, "--host", host, code=2)
        assert "loopback only" in result.stderr


def test_a_store_that_is_not_migrated_is_refused_in_words(bare: Shell) -> None:
    assert "outlast migrate" in bare.run(*SERVE, code=6).stderr


def test_a_port_that_is_taken_is_named(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = shell.run("serve", "shop:jobs", "--dev-identities", "--port", str(port), code=2)
    assert f"Port {port} on 127.0.0.1" in result.stderr
    assert "--port" in result.stderr


def test_a_target_with_an_authenticator_is_served_with_it(shell: Shell) -> None:
    (shell.folder / "guarded.py").write_text(
        "from outlast import Outlast, Principal\n"
        "jobs = Outlast('sqlite:///shop.db', base_url='/team/jobs')\n"
        "def who(request):\n"
        "    return Principal('acme', request.headers['x-user']) if 'x-user' in request.headers else None\n"
        "asgi = jobs.asgi(identify=who)\n"
    )
    server = shell.start("serve", "guarded:jobs", "--port", "0")
    port = port_of(server)
    assert ask(port, "GET", "/team/jobs/v1/jobs")[0] == 401, "the identities of development are not known here"
    assert ask(port, "GET", "/team/jobs/v1/jobs", X_User="ann")[2] == {"items": [], "next": None}
    assert ask(port, "GET", "/v1/jobs")[0] == 404
    assert ask(port, "GET", "/healthz")[0] == 200
    assert ask(port, "GET", "/")[:2][0] == 307
    server.signal()
    assert server.ended() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_streams_and_lets_requests_end(either: Shell, number: signal.Signals) -> None:
    server = either.start(*REHEARSAL)
    port = port_of(server)
    job = submit(port)
    with reading(port, "/v1/events") as stream, reading(port, f"/v1/jobs/{job['id']}/events") as other:
        waited: list[int] = []

        def wait() -> None:
            waited.append(ask(port, "GET", f"/v1/jobs/{job['id']}?wait=25", If_None_Match='"1.queued"')[0])

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.5)  # it is under way; no harm if not
        server.signal(number)
        assert server.ended(within=10) == 0
        assert b"data: " in stream.read(), "it ended as a whole answer does"
        assert b"data: " in other.read()
        waiting.join()
        assert waited == [304]
    assert "Traceback" not in server.log


@pytest.mark.slow
def test_a_killed_server_loses_no_accepted_job(either: Shell) -> None:
    server = either.start(*REHEARSAL)
    port = port_of(server)
    job = submit(port)
    server.signal(signal.SIGKILL)
    server.ended()
    again = either.start("serve", "outlast.rehearsal:app", "--port", str(port), "--dev-identities")
    assert port_of(again) == port
    assert ask(port, "GET", f"/v1/jobs/{job['id']}")[2] == job
    status, headers, found = ask(
        port, "POST", "/v1/jobs", {"kind": "rehearsal", "input": {"tasks": [{"label": "A", "seconds": 0}]}}, Idempotency_Key="k"
    )
    assert (status, headers["idempotency-replayed"], found["id"]) == (202, "true", job["id"])


@pytest.mark.slow
def test_dev_has_api_and_worker_in_one_process_and_goes_on_after_a_kill(either: Shell) -> None:
    dev = either.start("dev", "outlast.rehearsal:app", "--port", "0", OUTLAST_REHEARSAL_LEDGER=str(either.folder / "ledger"))
    port = port_of(dev)
    dev.ready()
    job = submit(port, seconds=2)
    until(lambda: ask(port, "GET", f"/v1/jobs/{job['id']}")[2]["state"] == "running", "it runs")
    dev.signal(signal.SIGKILL)
    dev.ended()
    again = either.start("dev", "outlast.rehearsal:app", "--port", "0", OUTLAST_REHEARSAL_LEDGER=str(either.folder / "ledger"))
    port = port_of(again)
    until(lambda: ask(port, "GET", f"/v1/jobs/{job['id']}")[2]["state"] == "completed", "it is completed", timeout=18)
    again.signal()
    assert again.ended() == 0


@pytest.mark.slow
def test_a_handler_that_blocks_the_loop_does_not_freeze_the_api(shell: Shell) -> None:
    dev = shell.start("dev", "outlast.rehearsal:app", "--port", "0", OUTLAST_REHEARSAL_LEDGER=str(shell.folder / "ledger"))
    port = port_of(dev)
    body = {"kind": "rehearsal", "input": {"tasks": [{"label": "A", "block_seconds": 4}]}}
    job = ask(port, "POST", "/v1/jobs", body, Idempotency_Key="k")[2]
    answered = 0
    while ask(port, "GET", f"/v1/jobs/{job['id']}")[2]["state"] != "completed":
        answered += 1
    assert answered > 5, "it was answered while the handler blocked"


def test_dev_without_a_worker_serves_only(shell: Shell) -> None:
    dev = shell.start("dev", "outlast.rehearsal:app", "--port", "0", "--no-worker")
    port = port_of(dev)
    assert submit(port)["state"] == "queued"
    assert ask(port, "GET", "/readyz")[0] == 200
    dev.signal()
    assert dev.ended() == 0
    assert " ready" not in dev.said


@pytest.mark.slow
def test_lines_of_json(shell: Shell) -> None:
    dev = shell.start("dev", "outlast.rehearsal:app", "--port", "0", "--log-format", "json", "--log", "debug")
    port = port_of(dev)
    body = {"kind": "rehearsal", "input": {"tasks": [{"label": "A"}], "note": "SECRET-NOTE"}}
    job = ask(port, "POST", "/v1/jobs", body, Idempotency_Key="k", X_Request_Id="req-1")[2]
    until(lambda: ask(port, "GET", f"/v1/jobs/{job['id']}")[2]["state"] == "completed", "it is completed")
    dev.signal()
    assert dev.ended() == 0
    lines = [json.loads(line) for line in dev.log.splitlines() if line.startswith("{")]
    about = [line for line in lines if line.get("job_id") == job["id"]]
    assert {"JobAdmitted", "AttemptStarted", "AttemptEnded"} <= {line["event"] for line in about}
    assert {line["correlation_id"] for line in about} == {"req-1"}
    assert "SECRET-NOTE" not in dev.log


def test_a_forked_server_opens_its_own_connections(either: Shell) -> None:
    """As a pre-loading server does: the application is made, and used, before the fork; then children serve (B34)."""
    (either.folder / "preload.py").write_text(
        "import os, sys\n"
        "from outlast import Principal\n"
        "from outlast.rehearsal import app\n"
        "from outlast.rehearsal.model import Part, Rehearsal\n"
        "from outlast.http.app import build\n"
        "from outlast.http.development import identify\n"
        "import uvicorn\n"
        "kind = app.registry.kinds['rehearsal']\n"
        "ann = Principal('acme', 'ann')\n"
        "app.use(os.environ['OUTLAST_STORE'])\n"
        "app.sync.submit(kind, Rehearsal(tasks=(Part(label='A'),)), owner=ann, key='parent')\n"
        "asgi = build(app.desk, identify, development=True)\n"
        "config = uvicorn.Config(asgi, port=0, log_level='warning')\n"
        "sock = config.bind_socket()\n"
        "sock.listen(2048)  # not only when a child begins\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        uvicorn.Server(config).run(sockets=[sock])\n"
        "        os._exit(0)\n"
        "print(f'listening on http://127.0.0.1:{sock.getsockname()[1]}', flush=True)\n"
        "for n in range(50):\n"
        "    app.sync.submit(kind, Rehearsal(tasks=(Part(label='A'),)), owner=ann, key=f'parent-{n}')\n"
        "sys.stdin.read()\n"
        "import time; time.sleep(60)\n"
    )
    server = either.start_script("preload.py")
    port = port_of(server)
    ids: set[str] = set()
    lock = threading.Lock()

    def client(number: int) -> None:
        for n in range(50):
            job = submit(port, key=f"c{number}-{n}")
            assert ask(port, "GET", f"/v1/jobs/{job['id']}")[0] == 200
            with lock:
                ids.add(job["id"])

    clients = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert len(ids) == 200
    until(
        lambda: int(json.loads(either.run("queues", "--json").stdout)["items"][0]["ready"]) == 251, "all that were accepted, and no other"
    )
    os.killpg(server.process.pid, signal.SIGKILL)


def test_with_identities_for_development_only_names_of_this_machine_are_answered(shell: Shell) -> None:
    """A page of elsewhere whose name was made to point here must not speak to it."""
    server = shell.start(*SERVE)
    port = port_of(server)
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert ask(port, "GET", "/v1/jobs", Host=host)[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.1"):
        assert ask(port, "GET", "/v1/jobs", Host=host)[0] == 421
