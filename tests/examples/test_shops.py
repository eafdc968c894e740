"""The shops on FastAPI and Flask, as they are started: over HTTP, with a worker that is killed, to the end of the work."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from web.served import PATIENCE, Process, until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


@pytest.fixture(scope="module", params=["fastapi", "flask"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp(request.param)
    command = ["-W", "ignore", "-m", f"examples.{request.param}", "--port", "0", "--db", str(folder / "shop.db")]
    with Process(folder, command, PYTHONPATH=str(ROOT), SHOP_PACE="0.5") as process:
        yield process
        with Browser(process.port, "ann").stream():  # somebody still looks; it does not hold the server up
            process.process.send_signal(signal.SIGTERM)
            process.process.wait(PATIENCE)
        last = workers(process)[-1]
        assert not Path(f"/proc/{last}").exists(), "its worker ends with it"


def workers(shop: Process) -> list[int]:
    """All that it has started so far."""
    return [int(pid) for pid in re.findall(r"worker started \(pid (\d+)\)", shop.said)]


class Browser:
    """A person's cookies at a shop."""

    def __init__(self, port: int, name: str = "") -> None:
        self._port = port
        self._cookie = ""
        if name:
            self.ask("POST", f"/sign-in?name={name}")

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Events arrive while the block lasts."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.request("GET", "/jobs/v1/events", headers={"Cookie": self._cookie})
        with closing(connection), closing(connection.getresponse()) as answer:
            assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            yield

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        headers = {"Cookie": self._cookie, "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        self._cookie = found.get("set-cookie", self._cookie).partition(";")[0]
        connection.close()
        return answer.status, found, json.loads(text) if "json" in found.get("content-type", "") else text.decode()


def test_an_order_outlasts_its_worker(shop: Process) -> None:
    ann, bob = Browser(shop.port, "ann"), Browser(shop.port, "bob")
    status, headers, job = ann.ask("POST", "/orders", {"item": "a chair"})
    assert (status, headers["location"]) == (202, job["url"])
    until(lambda: ann.ask("GET", job["url"])[2]["state"] != "queued", "a worker has it")
    victim = workers(shop)[-1]
    os.kill(victim, signal.SIGKILL)

    until(lambda: ann.ask("GET", job["url"])[2]["state"] == "completed", "another worker went on", timeout=60)
    until(lambda: workers(shop)[-1] != victim, "another worker started")
    assert [order["state"] for order in ann.ask("GET", "/orders")[2]] == ["confirmed"]
    assert ann.ask("GET", f"{job['url']}/result")[2] == "Invoice 1: a chair"
    assert bob.ask("GET", job["url"])[0] == 404
    assert bob.ask("GET", "/orders")[2] == []


def test_its_pages_answer(shop: Process) -> None:
    nobody, ann = Browser(shop.port), Browser(shop.port, "ann")
    assert "Who are you?" in nobody.ask("GET", "/")[2]
    assert nobody.ask("GET", "/jobs/v1/jobs")[0] == 401
    front = ann.ask("GET", "/")[2]
    for address in re.findall(r' (?:src|href)="(/[^"]*)"', front):
        assert ann.ask("GET", address)[0] == 200, address
    assert "Your work" in ann.ask("GET", "/jobs/")[2]
