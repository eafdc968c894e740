"""What is no longer kept: 410 for its owner, nothing for everybody else, and a key that answers until its horizon is over."""

from __future__ import annotations

from typing import Any

import pytest

from outlast.http.development import principal_of
from outlast.store.programs import retention
from web.reading import Visitor
from web.site import ANN, BOB, OPS, OTHER, Answer, Site
from web.world import NOBODYS

HORIZON_MS = 86_400_000
ROUTES = (
    ("GET", "", {}),
    ("GET", "/events", {}),
    ("GET", "/tasks", {}),
    ("GET", "/result", {}),
    ("GET", "/result/0", {}),
    ("GET", "/recovery", {}),
    ("POST", "/cancel", {"If-Match": "*"}),
    ("POST", "/takeover", {"If-Match": "*"}),
    ("POST", "/rerun", {"Idempotency-Key": "again"}),
)
BODIES = (("/actions", {"attention_id": "0.1", "action": "dismiss"}), ("/attach", {"no": 0, "target_version": "1"}))


async def cancelled(site: Site, key: str = "k", who: str = ANN) -> dict[str, Any]:
    job = await site.submit(key=key, who=who)
    answer = await site.call("POST", f"/v1/jobs/{job['id']}/cancel", who, headers={"If-Match": "*"})
    found: dict[str, Any] = answer.json
    return found


async def purge(site: Site, job: dict[str, Any], *, horizon_ms: int = HORIZON_MS) -> None:
    gone = await site.jobs.store.run(retention.purge("acme", [job["id"]], horizon_ms=horizon_ms, older_ms=0))
    assert gone == [job["id"]]


async def again(site: Site, key: str = "k", *, text: str = "hello", who: str = ANN) -> Answer:
    sent = {"kind": "note", "input": {"text": text, "seconds": 0.0}}
    return await site.call("POST", "/v1/jobs", who, json_body=sent, headers={"Idempotency-Key": key})


async def test_its_owner_is_told_and_nobody_else_is(site: Site) -> None:
    job = await cancelled(site)
    await purge(site, job)
    asked = [(m, p, h, None) for m, p, h in ROUTES] + [("POST", p, {}, b) for p, b in BODIES]
    for method, path, headers, sent in asked:
        answer = await site.call(method, f"/v1/jobs/{job['id']}{path}", headers=headers, json_body=sent)
        assert (answer.status, answer.code) == (410, "expired"), path
        assert answer.headers["cache-control"] == "no-store"
        assert "This job was cancelled on 20" in answer.json["detail"]
        assert not answer.json["retryable"]
        for who in (BOB, OPS, OTHER):
            theirs = await site.call(method, f"/v1/jobs/{job['id']}{path}", who, headers=headers, json_body=sent)
            nobodys = await site.call(method, f"/v1/jobs/{NOBODYS}{path}", who, headers=headers, json_body=sent)
            assert (theirs.status, theirs.code) == (404, "not_found")
            assert plain(theirs) == plain(nobodys)
    assert (await site.call("GET", "/v1/jobs")).json["items"] == []


def plain(answer: Answer) -> bytes:
    return answer.body.replace(answer.headers["x-request-id"].encode(), b"")


async def test_a_key_answers_with_what_is_left(site: Site) -> None:
    job = await cancelled(site)
    await purge(site, job)
    for _ in range(2):
        answer = await again(site)
        assert (answer.status, answer.headers["idempotency-replayed"]) == (200, "true")
        assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
        assert answer.json == {
            "id": job["id"],
            "state": "cancelled",
            "outcome": "user",
            "finished_at": job["finished_at"],
            "expired": True,
        }
    other = await again(site, text="another")
    assert (other.status, other.code) == (422, "key_reused")
    mine = await again(site, who=BOB)
    assert (mine.status, "idempotency-replayed" in mine.headers) == (202, False)


async def test_after_the_horizon_it_is_as_if_it_had_never_been(site: Site) -> None:
    job = await cancelled(site)
    await purge(site, job, horizon_ms=0)
    assert (await site.call("GET", f"/v1/jobs/{job['id']}")).status == 404
    answer = await again(site)
    assert (answer.status, "idempotency-replayed" in answer.headers) == (202, False)
    assert answer.json["id"] != job["id"]


async def test_a_rerun_that_was_purged_answers_by_its_key(site: Site) -> None:
    job = await cancelled(site)
    headers = {"Idempotency-Key": "twice"}
    rerun = (await site.call("POST", f"/v1/jobs/{job['id']}/rerun", headers=headers)).json
    await site.call("POST", f"/v1/jobs/{rerun['id']}/cancel", headers={"If-Match": "*"})
    await purge(site, rerun)
    answer = await site.call("POST", f"/v1/jobs/{job['id']}/rerun", headers=headers)
    assert (answer.status, answer.json["id"], answer.json["expired"]) == (200, rerun["id"], True)
    await purge(site, job)
    answer = await site.call("POST", f"/v1/jobs/{job['id']}/rerun", headers=headers)
    assert (answer.status, answer.code) == (410, "expired")


async def test_a_stream_ends_with_its_job_and_does_not_come_again(small: Site) -> None:
    job = await small.submit(key="k")
    async with small.opened(f"/v1/jobs/{job['id']}/events") as stream:
        events = stream.events()
        assert (await anext(events))["id"] == "1.queued"
        await small.jobs.cancel(job["id"], principal=principal_of(f"dev:{ANN}"))
        assert (await anext(events))["id"] == "2.cancelled"
        with pytest.raises(StopAsyncIteration):
            await anext(events)
    await purge(small, job)
    answer = await small.call("GET", f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": "2.cancelled"})
    assert (answer.status, answer.code) == (410, "expired")


async def test_the_page_says_what_happened_to_it(small: Site) -> None:
    job = await cancelled(small)
    await purge(small, job)
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}", status=410)
    assert page.one("h1").text == "The job is no longer kept"
    said = page.one(id="refusal").text
    assert f"This job was cancelled on {job['finished_at'][:10]}, was kept until" in said
    assert "and then deleted with its results. To have it done once more, ask for it anew." in said
    assert [link.attrs["href"] for link in page.one("section", id="refusal").all("a")] == ["/"]
    stranger = await Visitor(small, BOB).get(f"/jobs/{job['id']}", status=404)
    assert "no longer kept" not in stranger.text
