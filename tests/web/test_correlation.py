"""One id for a request, its job, and every line that is logged about it."""

from __future__ import annotations

import json
import logging
import re

import pytest

from outlast.observe.logging import JsonFormatter
from web.site import Site, final

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"X-Request-Id": "req-7"}, "req-7"),
        ({"traceparent": TRACEPARENT}, TRACE),
        ({"traceparent": TRACEPARENT, "X-Request-Id": "req-7"}, "req-7"),
    ],
)
async def test_the_id_of_the_request_is_on_the_job(site: Site, headers: dict[str, str], expected: str) -> None:
    answer = await site.call(
        "POST", "/v1/jobs", json_body={"kind": "note", "input": {"text": "x"}}, headers={"Idempotency-Key": "k", **headers}
    )
    assert answer.headers["x-request-id"] == expected
    job = answer.json
    assert job["correlation_id"] == expected
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/recovery")).json["correlation_id"] == expected
    problem = await site.call("GET", "/v1/nothing", headers=headers)
    assert problem.json["correlation_id"] == expected


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Request-Id": "two words"},
        {"X-Request-Id": "x" * 129},
        {"X-Request-Id": "<script>"},
        {"traceparent": "00-0-0-01"},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": f"ff-{TRACE}-00f067aa0ba902b7-01"},
    ],
)
async def test_what_is_no_id_is_replaced(small: Site, headers: dict[str, str]) -> None:
    answer = await small.call("GET", "/v1/jobs", headers=headers)
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


async def test_every_line_about_a_job_has_its_id_and_no_payload(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = await site.call(
        "POST",
        "/v1/jobs",
        json_body={"kind": "print", "input": {"text": "SECRET-PAYLOAD"}},
        headers={"Idempotency-Key": "k", "traceparent": TRACEPARENT},
    )
    job = made.json
    async with site.working():
        await site.until(job["id"], lambda j: j["state"] == "needs_attention")
    await site.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    await site.until(job["id"], final)
    about = [r for r in caplog.records if getattr(r, "outlast_job_id", None) == job["id"]]
    kinds = {str(r.__dict__["event"]) for r in about}
    assert {"JobAdmitted", "AttemptStarted", "AttemptEnded", "JobControlled"} <= kinds
    assert {r.__dict__["outlast_correlation_id"] for r in about} == {TRACE}
    formatter = JsonFormatter()
    for record in caplog.records:
        line = formatter.format(record)
        assert "\n" not in line
        assert "SECRET-PAYLOAD" not in line + record.getMessage()
        said = json.loads(line)
        assert said["time"].endswith("Z")
        if record in about:
            assert said["job_id"] == job["id"]
            assert said["correlation_id"] == TRACE


def test_a_line_of_json_names_the_exception_and_not_its_text(caplog: pytest.LogCaptureFixture) -> None:
    try:
        int("SECRET")
    except ValueError:
        logging.getLogger("host").exception("it failed: %s", "why")
    (record,) = caplog.records
    said = json.loads(JsonFormatter().format(record))
    assert said["message"] == "it failed: why"
    assert said["exception"]["type"] == "ValueError"
    assert any("test_correlation.py" in frame for frame in said["exception"]["frames"])
    assert "SECRET" not in json.dumps(said)
