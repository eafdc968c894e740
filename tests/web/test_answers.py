"""Answers over the API: what does not fit is refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from web.site import Site, final


async def test_smoke(site: Site) -> None:
    async with site.working():
        job = await site.submit()
        done = await site.until(job["id"], final)
        assert done["state"] == "completed"
        assert (await site.call("GET", f"/v1/jobs/{job['id']}/result")).json == "hello"


@pytest.mark.parametrize(
    ("kind", "sent", "pointers", "said"),
    [
        ("name", {}, ["/input"], "needs an input"),
        ("name", {"input": None}, ["/input"], "is null, not text"),
        ("name", {"input": 42}, ["/input"], "is a whole number, not text"),
        ("count", {}, ["/input"], "needs an input"),
        ("count", {"input": "42"}, ["/input"], "is text, not a whole number"),
        ("question", {"input": "red"}, ["/input"], "is text, not an object"),
        ("question", {"input": {}}, ["/input/colour"], "missing"),
    ],
)
async def test_an_answer_that_does_not_fit(small: Site, kind: str, sent: dict[str, Any], pointers: list[str], said: str) -> None:
    job = await small.submit(kind)
    async with small.working():
        job = await small.until(job["id"], lambda j: j["state"] == "needs_attention")
    body = {"attention_id": job["attention"]["id"], "action": "answer", **sent}
    answer = await small.call("POST", f"/v1/jobs/{job['id']}/actions", json_body=body)
    assert (answer.status, answer.json["code"], answer.json["pointers"]) == (422, "invalid", pointers)
    assert said in answer.json["detail"]
    assert (await small.call("GET", f"/v1/jobs/{job['id']}")).json["version"] == job["version"]
