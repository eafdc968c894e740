"""What is read: one job, lists, tasks, results, the past; with tags, and nothing of others."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from web.reading import Visitor
from web.site import ANN, BOB, OPS, OTHER, OTHER_OPS, Site, final

RANDOM = "01a22e54-c2df-7e37-903a-12cb95425edc"


async def test_a_job_has_a_strong_tag_and_304_while_nothing_changed(site: Site) -> None:
    job = await site.submit()
    answer = await site.call("GET", f"/v1/jobs/{job['id']}")
    assert answer.headers["etag"] == '"1.queued"'
    assert answer.headers["cache-control"] == "private, no-cache"
    for known in ('"1.queued"', 'W/"1.queued"', '"0.x", "1.queued"', "*"):
        same = await site.call("GET", f"/v1/jobs/{job['id']}", headers={"If-None-Match": known})
        assert (same.status, same.body, same.headers["etag"]) == (304, b"", '"1.queued"')
        assert int(same.headers["retry-after"]) >= 1
    async with site.working():
        done = await site.until(job["id"], final)
    changed = await site.call("GET", f"/v1/jobs/{job['id']}", headers={"If-None-Match": '"1.queued"'})
    assert (changed.status, changed.headers["etag"]) == (200, f'"{done["version"]}.completed"')
    assert "retry-after" not in changed.headers
    assert (done["outcome"], done["progress"]) == ("succeeded", {"done": 2, "total": 2, "label": None})
    assert datetime.fromisoformat(done["usable_at"]) <= datetime.fromisoformat(done["finished_at"])


async def test_the_state_alone_changes_the_tag(site: Site) -> None:
    """A claim writes no job: the version stays, and the shown state says that it runs."""
    job = await site.submit(seconds=2)
    async with site.working():
        running = await site.until(job["id"], lambda j: j["state"] == "running")
        assert running["version"] == 1
        assert (await site.call("GET", f"/v1/jobs/{job['id']}", headers={"If-None-Match": '"1.queued"'})).status == 200
        await site.until(job["id"], final)


async def test_head_is_get_without_a_body(small: Site) -> None:
    job = await small.submit()
    head = await small.call("HEAD", f"/v1/jobs/{job['id']}")
    assert (head.status, head.headers["etag"]) == (200, '"1.queued"')


@pytest.mark.parametrize("path", ["", "/tasks", "/events", "/result", "/result/0", "/recovery"])
async def test_unknown_malformed_and_foreign_are_the_same_404(site: Site, path: str) -> None:
    job = await site.submit(who=BOB)
    other = await site.submit(who=OTHER)
    bodies = set()
    for named in (job["id"], other["id"], RANDOM, "7", "x" * 36, "%00".replace("%00", "zero"), job["id"].upper()):
        answer = await site.call("GET", f"/v1/jobs/{named}{path}", ANN)
        assert (answer.status, answer.code) == (404, "not_found")
        said = answer.json
        for name in ("instance", "correlation_id"):
            del said[name]
        bodies.add(str(said))
    assert len(bodies) == 1


async def test_an_operator_of_the_tenant_sees_the_job_and_not_what_it_made(site: Site) -> None:
    job = await site.submit()
    assert (await site.call("GET", f"/v1/jobs/{job['id']}", OPS)).status == 200
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/tasks", OPS)).status == 200
    for path in ("result", "result/0", "recovery"):
        answer = await site.call("GET", f"/v1/jobs/{job['id']}/{path}", OPS)
        assert (answer.status, answer.code) == (403, "forbidden")
        assert (await site.call("GET", f"/v1/jobs/{job['id']}/{path}", OTHER_OPS)).status == 404


async def test_lists_hold_own_jobs_newest_first_in_pages(site: Site) -> None:
    made = [(await site.submit(text=str(n)))["id"] for n in range(5)]
    await site.submit(who=BOB)
    found: list[str] = []
    cursor = ""
    while True:
        page = (await site.call("GET", f"/v1/jobs?limit=2{cursor}")).json
        found += [job["id"] for job in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert sorted(found) == sorted(made)
    assert found == sorted(made, reverse=True)
    assert (await site.call("GET", "/v1/jobs", OPS)).json["items"] == []


async def test_lists_are_filtered(site: Site) -> None:
    note = (await site.submit())["id"]
    question = (await site.submit("question"))["id"]
    async with site.working():
        await site.until(note, final)
        await site.until(question, lambda j: j["state"] == "needs_attention")

    async def ids(query: str) -> list[str]:
        return [job["id"] for job in (await site.call("GET", f"/v1/jobs?{query}")).json["items"]]

    assert await ids("state=completed") == [note]
    assert await ids("state=active") == [question]
    assert await ids("state=needs_attention") == [question]
    assert await ids("kind=note") == [note]
    assert await ids("kind=note&state=active") == []


@pytest.mark.parametrize(
    "query",
    [
        "state=done",
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=1&limit=2",
        "limit=",
        "cursor=abc",
        "page=2",
        "kind=%20",
        "limit=-1",
        "limit=1e3",
    ],
)
async def test_queries_that_cannot_be_used(small: Site, query: str) -> None:
    answer = await small.call("GET", f"/v1/jobs?{query}")
    assert (answer.status, answer.code) == (400, "invalid_query")


async def test_a_cursor_is_for_one_person_and_one_filter(small: Site) -> None:
    for _ in range(3):
        await small.submit()
    cursor = (await small.call("GET", "/v1/jobs?limit=1")).json["next"]
    assert (await small.call("GET", f"/v1/jobs?limit=1&cursor={cursor}")).status == 200
    for who, query in ((BOB, ""), (OTHER, ""), (ANN, "&state=active"), (ANN, "&kind=note")):
        answer = await small.call("GET", f"/v1/jobs?cursor={cursor}{query}", who)
        assert (answer.status, answer.code) == (400, "invalid_query")


async def test_tasks_have_labels_states_and_a_weak_tag(site: Site) -> None:
    job = await site.submit()
    answer = await site.call("GET", f"/v1/jobs/{job['id']}/tasks")
    items = answer.json["items"]
    assert [(t["no"], t["label"], t["state"], t["required"], t["usable"]) for t in items] == [
        (0, "Text", "queued", True, True),
        (1, "Polish", "blocked", False, False),
    ]
    tag = answer.headers["etag"]
    assert tag.startswith('W/"')
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/tasks", headers={"If-None-Match": tag})).status == 304
    async with site.working():
        await site.until(job["id"], final)
    later = await site.call("GET", f"/v1/jobs/{job['id']}/tasks", headers={"If-None-Match": tag})
    assert (later.status, [t["state"] for t in later.json["items"]]) == (200, ["completed", "completed"])


async def test_a_result_can_be_read_before_the_job_completed(site: Site) -> None:
    job = await site.submit("print")
    early = await site.call("GET", f"/v1/jobs/{job['id']}/result")
    assert (early.status, early.code, early.json["retryable"]) == (409, "not_ready", True)
    assert early.json["job"]["id"] == job["id"]
    assert int(early.headers["retry-after"]) >= 1
    async with site.working():
        stuck = await site.until(job["id"], lambda j: j["state"] == "needs_attention")
    assert stuck["usable_at"] is not None
    answer = await site.call("GET", f"/v1/jobs/{job['id']}/result")
    assert (answer.status, answer.json) == (200, "hello")
    assert answer.headers["cache-control"] == "private, no-cache"
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/result", headers={"If-None-Match": answer.headers["etag"]})).status == 304
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/result/0")).json == "hello"
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/result/1")).code == "not_ready"
    for no in ("2", "-1", "x", "1e3", "99999999999999999999"):
        assert (await site.call("GET", f"/v1/jobs/{job['id']}/result/{no}")).code == "not_found"


async def test_a_result_that_will_never_be(site: Site) -> None:
    job = await site.submit()
    await site.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    answer = await site.call("GET", f"/v1/jobs/{job['id']}/result")
    assert (answer.status, answer.code, answer.json["retryable"]) == (409, "not_ready", False)
    assert "retry-after" not in answer.headers


async def test_the_past_is_for_the_owner(site: Site) -> None:
    job = await site.submit("print")
    async with site.working():
        await site.until(job["id"], lambda j: j["state"] == "needs_attention")
    answer = await site.call("GET", f"/v1/jobs/{job['id']}/recovery")
    assert answer.headers["cache-control"] == "no-store"
    past: dict[str, Any] = answer.json
    assert past["stored"] == ["Text"]
    assert [(a["task"], a["attempt"], a["code"]) for a in past["attempts"]] == [("Text", 1, None), ("Paper", 1, "no_paper")]
    (question,) = past["attention"]
    assert (question["code"], question["message"], question["task"]) == ("no_paper", "The printer has no paper.", "Paper")
    assert [a["action"] for a in question["actions"]] == ["retry", "dismiss"]
    assert past["job"]["attention"] == question
    assert past["correlation_id"] == job["correlation_id"]


async def test_the_past_names_what_may_have_happened_outside(site: Site) -> None:
    job = await site.submit("charge")
    address = f"/v1/jobs/{job['id']}"
    async with site.working():
        asked = await site.until(job["id"], lambda j: j["state"] == "needs_attention")
        assert asked["attention"]["code"] == "effect_unknown"
        assert [a["action"] for a in asked["attention"]["actions"]] == ["retry", "answer", "dismiss"]
        past: dict[str, Any] = (await site.call("GET", f"{address}/recovery")).json
        (effect,) = past["effects"]
        assert (effect["task"], effect["name"], effect["state"]) == ("Card", "card <charge>", "unknown")
        assert [a["code"] for a in past["attempts"]] == ["outcome_unknown", "effect_unknown"]
        page = await Visitor(site).get(f"/jobs/{job['id']}")
        assert "card <charge> (Card)" in page.one("details", id="past-details").one("ul", id="past-effects").text
        decision = {"attention_id": asked["attention"]["id"], "action": "answer"}
        repeated = {**decision, "action": "retry"}
        operators = await site.call("POST", f"{address}/actions", who=OPS, json_body=repeated)
        assert (operators.status, operators.code) == (403, "forbidden"), "who chooses that it may happen twice is the owner"
        assert 'value="retry"' not in (await site.call("GET", f"/jobs/{job['id']}", who=OPS)).body.decode()
        refused = await site.call("POST", f"{address}/actions", json_body={**decision, "input": "yes"})
        assert (refused.status, refused.code) == (422, "invalid")
        given = {"happened": True, "outcome": "c-7"}
        assert (await site.call("POST", f"{address}/actions", json_body={**decision, "input": given})).status == 202
        await site.until(job["id"], lambda j: j["state"] == "completed")
    assert (await site.call("GET", f"{address}/result")).json == "c-7"
    assert (await site.call("GET", f"{address}/recovery")).json["effects"] == []


async def test_links_lie_where_the_host_mounts_the_application(small: Site) -> None:
    answer = await small.call(
        "POST", "/v1/jobs", json_body={"kind": "note", "input": {"text": "x"}}, headers={"Idempotency-Key": "k"}, root="/a/b"
    )
    job = answer.json
    assert answer.headers["location"] == f"/a/b/v1/jobs/{job['id']}"
    assert job["events_url"] == f"/a/b/v1/jobs/{job['id']}/events"
    missing = await small.call("GET", "/v1/nothing", root="/a/b")
    assert (missing.status, missing.json["type"]) == (404, "/a/b/problems#not_found")
    assert missing.json["instance"] == f"urn:outlast:request:{missing.headers['x-request-id']}"


async def test_nobody_gets_anything(small: Site) -> None:
    job = await small.submit()
    for path in ("/v1/jobs", "/v1/events", f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/result"):
        answer = await small.call("GET", path, None)
        assert (answer.status, answer.code) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_other_methods_are_told_which_there_are(small: Site) -> None:
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        answer = await small.call(method, "/v1/jobs")
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD, POST")


async def test_alive_and_ready(site: Site) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await site.call("GET", path, None)
        assert (answer.status, answer.json) == (200, {"status": "ok"})
    site.app.stop()
    answer = await site.call("GET", "/readyz", None)
    assert (answer.status, answer.json["code"]) == (503, "stopping")
    assert (await site.call("GET", "/healthz", None)).status == 200
