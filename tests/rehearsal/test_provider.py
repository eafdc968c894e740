"""The fake provider over its wire, and how the rehearsal's handlers read what it answers."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

from outlast import Confirmed, Permanent, Refused, Retry
from outlast.domain.retry import MAX_SECONDS
from outlast.rehearsal import outside
from outlast.rehearsal.provider import MODES, serve


class Wire:
    """Requests as they are sent."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
            connection.request(method, path, sent, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def fails(self, **fault: object) -> None:
        assert self.ask("POST", "/faults", fault)[0] == 200


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    server = serve(0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    port = server.server_address[1]
    monkeypatch.setenv(outside.ADDRESS, f"http://127.0.0.1:{port}")
    yield Wire(port)
    server.shutdown()
    server.server_close()


def test_a_key_is_one_effect(wire: Wire) -> None:
    first = wire.ask("POST", "/effects", {"n": 1}, Idempotency_Key="k")
    again = wire.ask("POST", "/effects", {"n": 1}, Idempotency_Key="k")
    other = wire.ask("POST", "/effects", {"n": 1}, Idempotency_Key="j")
    assert (first[0], again[0], other[0]) == (201, 200, 201)
    assert first[1] == again[1] != other[1]
    (item,) = wire.ask("GET", "/effects?key=k")[1]["items"]
    assert (item["id"], item["key"], item["calls"], item["body"]) == (first[1]["id"], "k", 2, {"n": 1})
    assert wire.ask("GET", "/effects?key=none")[1] == {"items": []}
    assert [i["key"] for i in wire.ask("GET", "/effects")[1]["items"]] == ["k", "j"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_a_key_that_is_none_is_refused(wire: Wire, key: str) -> None:
    assert wire.ask("POST", "/effects", {}, Idempotency_Key=key)[0] == 400
    assert wire.ask("GET", "/effects")[1] == {"items": []}


def test_documents_change_by_version(wire: Wire) -> None:
    assert wire.ask("GET", "/documents/d%201")[0] == 404
    assert wire.ask("PUT", "/documents/d%201", {"text": "a", "version": None}) == (201, {"ref": "d 1", "version": "1", "text": "a"})
    assert wire.ask("PUT", "/documents/d%201", {"text": "b", "version": None})[0] == 409
    assert wire.ask("PUT", "/documents/d%201", {"text": "b", "version": "1"}) == (200, {"ref": "d 1", "version": "2", "text": "b"})
    assert wire.ask("PUT", "/documents/d%201", {"text": "c", "version": "1"})[0] == 409
    assert wire.ask("GET", "/documents/d%201")[1]["text"] == "b"
    for body in ({"text": 1, "version": "2"}, {"text": "a", "version": 2}, {"text": "a", "more": 1}, [], "x"):
        assert wire.ask("PUT", "/documents/d%201", body)[0] == 422


@pytest.mark.parametrize(
    "fault",
    [
        [],
        {"mode": "explode"},
        {"mode": "status", "status": 200},
        {"mode": "status", "status": "500"},
        {"mode": "status", "times": 1.5},
        {"mode": "timeout_after", "seconds": 3600},
        {"mode": "status", "retry_after": "1\r\nX-More: 1"},
        {"mode": "status", "more": 1},
        {"mode": "status", "match": 1},
    ],
)
def test_a_fault_that_cannot_be_is_refused(wire: Wire, fault: object) -> None:
    assert wire.ask("POST", "/faults", fault)[0] == 422
    assert wire.ask("POST", "/effects", {}, Idempotency_Key="k")[0] == 201


def test_what_is_no_request_of_its_own_is_told_so(wire: Wire) -> None:
    assert wire.ask("GET", "/nothing")[0] == 404
    assert wire.ask("POST", "/nothing", {})[0] == 404
    assert wire.ask("PUT", "/nothing", {})[0] == 404
    assert wire.ask("POST", "/effects", b"{", Idempotency_Key="k")[0] == 400


def test_each_call_meets_the_fault_that_matches_it_and_what_was_met_is_counted(wire: Wire) -> None:
    wire.fails(mode="status", status=503, match="ann", times=2)
    wire.fails(mode="status", status=422, match="bob")
    wire.fails(mode="status", status=429)
    wire.fails(mode="status", status=500, match="eve")
    answers = [wire.ask("POST", "/effects", {"to": to}, Idempotency_Key=f"{to}{no}")[0] for no in (1, 2) for to in ("bob", "ann", "cid")]
    assert answers == [422, 503, 429, 201, 503, 201]
    said = wire.ask("GET", "/faults")[1]["items"]
    assert [(fault["status"], fault["met"], fault["times"]) for fault in said] == [(503, 2, 0), (422, 1, 0), (429, 1, 0), (500, 0, 1)]


def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "outlast.rehearsal.provider", "--port"]
        done = subprocess.run([*command, port], capture_output=True, text=True, check=False)
        beyond = subprocess.run([*command, "70000"], capture_output=True, text=True, check=False)
    for said, no in ((done, port), (beyond, "70000")):
        assert said.returncode == 2
        assert f"it cannot listen on port {no} (" in said.stderr
        assert "Traceback" not in said.stderr


def test_a_fault_is_over_after_so_many_times_and_each_mode_is_known(wire: Wire) -> None:
    wire.fails(mode="status", status=503, times=2)
    assert [wire.ask("POST", "/effects", {}, Idempotency_Key="k")[0] for _ in range(3)] == [503, 503, 201]
    for mode in MODES:
        wire.fails(mode=mode)
    wire.fails(mode="none")


def test_a_charge_and_what_is_found_of_it(wire: Wire) -> None:
    with pytest.raises(Refused):
        outside.find("k")
    made = outside.charge("k", {"n": 1})
    assert outside.charge("k", {"n": 1}) == made
    assert outside.find("k") == Confirmed(made)


@pytest.mark.parametrize(
    ("retry_after", "after"),
    [
        (1.5, 1.5),
        ("3", 3.0),
        ("-3", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("99999999999", float(MAX_SECONDS)),
        ("soon", None),
        (None, None),
    ],
)
def test_f2_a_busy_provider_is_a_retry_after_what_it_says(wire: Wire, retry_after: object, after: float | None) -> None:
    wire.fails(mode="status", status=429, retry_after=retry_after)
    with pytest.raises(Retry) as busy:
        outside.charge("k", {})
    assert (busy.value.code, busy.value.after) == ("provider_busy", after)


def test_f2_a_date_that_lies_ahead_is_seconds_from_now(wire: Wire) -> None:
    wire.fails(mode="status", status=429, retry_after=formatdate(time.time() + 60, usegmt=True))
    with pytest.raises(Retry) as busy:
        outside.charge("k", {})
    assert busy.value.after is not None
    assert 0 < busy.value.after <= 60


def test_what_it_refuses_surely_did_not_happen(wire: Wire) -> None:
    wire.fails(mode="status", status=402)
    with pytest.raises(Refused):
        outside.charge("k", {})


@pytest.mark.parametrize(
    "fault",
    [
        {"mode": "status", "status": 500},
        {"mode": "status_after", "status": 500},
        {"mode": "drop_after"},
        {"mode": "timeout_after", "seconds": 4},
        {"mode": "drip_after", "seconds": 6},
        {"mode": "huge_after"},
    ],
)
def test_whatever_else_goes_wrong_says_neither(wire: Wire, fault: dict[str, object]) -> None:
    wire.fails(**fault)
    with pytest.raises((OSError, http.client.HTTPException)):
        outside.charge("k", {})
    assert len(wire.ask("GET", "/effects")[1]["items"]) == (fault["mode"] != "status")


def test_without_an_address_the_task_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(outside.ADDRESS, raising=False)
    with pytest.raises(Permanent, match=outside.ADDRESS) as missing:
        outside.charge("k", {})
    assert missing.value.code == "provider_missing"
