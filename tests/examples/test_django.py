"""The example starts with one command, takes an order over HTTP, and fulfils it though its worker is killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
from pathlib import Path
from urllib.parse import urlencode

import pytest

from web.served import Process, until

pytest.importorskip("django", reason="NOT TESTED: Django is not installed (pip install 'outlast[django]')")
ROOT = Path(__file__).resolve().parents[2]


class Browser:
    """Somebody with cookies."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cookies: dict[str, str] = {}

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        more = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(method, path, body, {"Cookie": cookie, **more, **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self._cookies[key] = rest.partition(";")[0]
        connection.close()
        return answer.status, text


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_an_order_outlasts_its_worker(tmp_path: Path) -> None:
    command = ["-m", "examples.django", "--port", "0", "--data", str(tmp_path)]
    with Process(tmp_path, command, PYTHONPATH=str(ROOT)) as example:
        worker = int(re.search(r"pid (\d+)", example.line("worker started"))[1])  # type: ignore[index]
        port = int(example.line("shop on").rpartition(":")[2].strip("/"))
        ann = Browser(port)
        assert ann.ask("GET", "/sign-in/ann")[0] == 302
        _, form = ann.ask("GET", "/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
        assert token is not None
        status, answer = ann.ask(
            "POST", "/orders", urlencode({"what": "A canoe", "csrfmiddlewaretoken": token[1]}), Accept="application/json"
        )
        assert status == 202
        job = json.loads(answer)
        until(lambda: seen(ann, job["url"])["state"] == "running", "the order is worked on")
        os.kill(worker, signal.SIGKILL)
        done = until(
            lambda: (found := seen(ann, job["url"])) and found["state"] == "completed" and found, "the order is fulfilled", timeout=60
        )
        assert done["progress"]["done"] == 2
        assert len(re.findall(r"^worker started", example.said, re.MULTILINE)) == 2
        _, recovery = ann.ask("GET", f"{job['url']}/recovery")
        assert "worker_lost" in [attempt["code"] for attempt in json.loads(recovery)["attempts"]]
        _, page = ann.ask("GET", "/")
        assert f"INV-{job['id'][:13]}" in page
        component = re.search(r'src="([^"]+)"', page)
        assert component is not None
        assert ann.ask("GET", component[1])[0] == 200
        _, jobs = ann.ask("GET", "/jobs/", Accept="text/html")
        assert "Your order" in jobs
        bob = Browser(port)
        bob.ask("GET", "/sign-in/bob")
        assert bob.ask("GET", job["url"])[0] == 404
        os.killpg(example.process.pid, signal.SIGTERM)
        assert example.process.wait(30) in (0, -signal.SIGTERM)


def seen(person: Browser, url: str) -> dict[str, object]:
    status, text = person.ask("GET", url)
    assert status == 200, text
    found: dict[str, object] = json.loads(text)
    return found
