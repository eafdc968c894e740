"""Under a WSGI host, through the adapter that the documentation names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from a2wsgi import ASGIMiddleware

from outlast.http.development import identify
from outlast.store.open import migrate
from web.served import Client
from web.shop import make


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A WSGI server whose application hands everything below /jobs on."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    jobs = make(url)
    adapted = ASGIMiddleware(jobs.asgi(identify=identify))  # type: ignore[arg-type]  # its own words for the same protocol

    def host(environ: WSGIEnvironment, start_response: StartResponse) -> object:
        if not environ["PATH_INFO"].startswith("/jobs"):
            start_response("404 Not Found", [])
            return [b""]
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = "/jobs", environ["PATH_INFO"].removeprefix("/jobs")
        return adapted(environ, start_response)  # type: ignore[arg-type]

    with make_server("127.0.0.1", 0, host, handler_class=Silent) as server:  # type: ignore[arg-type]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
    jobs.sync.close()


def test_the_api_answers_with_links_below_its_prefix(port: int) -> None:
    def ask(method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        with Client(port, prefix="/jobs") as client:  # that server closes after each answer
            return client.ask(method, path, body, **headers)

    status, headers, job = ask("POST", "/v1/jobs", {"kind": "note", "input": {"text": "x"}}, Idempotency_Key="k")
    assert (status, headers["location"]) == (202, f"/jobs/v1/jobs/{job['id']}")
    assert ask("GET", f"/v1/jobs/{job['id']}")[2]["state"] == "queued"
    status, _, cancelled = ask("POST", f"/v1/jobs/{job['id']}/cancel", If_Match="*")
    assert (status, cancelled["state"]) == (200, "cancelled")
    assert ask("GET", "/v1/nothing")[0] == 404
    status, _, stream = ask("GET", f"/v1/jobs/{job['id']}/events")
    assert status == 200
    assert b"event: job" in stream
