"""Cancel, actions, rerun: the order of the checks, repeats, and what a stale page is told."""

from __future__ import annotations

import asyncio
from typing import Any

from web.site import ANN, BOB, OPS, OTHER_OPS, Answer, Site, final


async def cancel(site: Site, job_id: str, who: str = ANN, *, match: str | None = "*") -> Answer:
    return await site.call("POST", f"/v1/jobs/{job_id}/cancel", who, headers={} if match is None else {"If-Match": match})


async def act(site: Site, job_id: str, attention_id: str, action: str, who: str = ANN, **more: Any) -> Answer:
    return await site.call("POST", f"/v1/jobs/{job_id}/actions", who, json_body={"attention_id": attention_id, "action": action, **more})


async def asking(site: Site, kind: str) -> dict[str, Any]:
    job = await site.submit(kind)
    async with site.working():
        return await site.until(job["id"], lambda j: j["state"] == "needs_attention")


async def test_a_cancel_needs_a_version_and_takes_tag_number_or_star(site: Site) -> None:
    for match in ('"1.queued"', '"1"', "*", '"7", "1.running"'):
        job = await site.submit()
        without = await cancel(site, job["id"], match=None)
        assert (without.status, without.code, without.json["job"]["state"]) == (428, "precondition_required", "queued")
        stale = await cancel(site, job["id"], match='"9.queued"')
        assert (stale.status, stale.code, stale.json["job"]["version"]) == (412, "stale_version", 1)
        for never in ('W/"1.queued"', '"one"', '"1.queued.x"'):
            assert (await cancel(site, job["id"], match=never)).status == 412
        for malformed in ("1", "1.queued", '"1', ""):
            assert (await cancel(site, job["id"], match=malformed)).status == 400
        done = await cancel(site, job["id"], match=match)
        assert (done.status, done.json["state"], done.json["outcome"]) == (200, "cancelled", "user")
        assert done.headers["etag"] == '"2.cancelled"'


async def test_a_repeated_cancel_succeeds_whatever_version_it_names(site: Site) -> None:
    job = await site.submit()
    first = await cancel(site, job["id"], match='"1.queued"')
    for match in ('"1.queued"', '"99"', None, "*"):
        again = await cancel(site, job["id"], match=match)
        assert (again.status, again.json) == (200, first.json)


async def test_a_completed_job_cannot_be_cancelled(site: Site) -> None:
    job = await site.submit()
    async with site.working():
        await site.until(job["id"], final)
    for match in ("*", '"1.queued"', None):
        answer = await cancel(site, job["id"], match=match)
        assert (answer.status, answer.code, answer.json["job"]["state"]) == (409, "already_completed", "completed")


async def test_who_may_cancel(site: Site) -> None:
    job = await site.submit()
    assert (await cancel(site, job["id"], BOB)).status == 404
    assert (await cancel(site, job["id"], OTHER_OPS)).status == 404
    assert (await site.call("POST", f"/v1/jobs/{job['id']}/cancel", None)).status == 401
    assert (await site.call("GET", f"/v1/jobs/{job['id']}")).json["state"] == "queued"
    assert (await cancel(site, job["id"], OPS)).status == 200


async def test_a_cancel_while_a_worker_holds_the_task_says_that_it_is_stopping(site: Site) -> None:
    job = await site.submit(seconds=30)
    async with site.working():
        await site.until(job["id"], lambda j: j["state"] == "running")
        answer = await cancel(site, job["id"])
        assert (answer.status, answer.json["state"], answer.json["stopping"]) == (200, "cancelled", True)
        ended = await site.until(job["id"], lambda j: not j["stopping"])
        assert ended["version"] > answer.json["version"]


async def test_an_answer_is_taken_once(site: Site) -> None:
    job = await asking(site, "question")
    question = job["attention"]
    answer, dismiss = question["actions"]
    assert (answer["action"], answer["label"]) == ("answer", "Answer")
    assert answer["input"]["properties"] == {"colour": {"type": "string"}}
    assert dismiss == {"action": "dismiss", "label": "Give up this job"}
    taken = await act(site, job["id"], question["id"], "answer", input={"colour": "green"})
    assert taken.status == 202
    assert taken.json["version"] == job["version"] + 1
    assert taken.json["attention"] is None
    again = await act(site, job["id"], question["id"], "answer", input={"colour": "green"})
    assert again.status == 200
    other = await act(site, job["id"], question["id"], "answer", input={"colour": "red"})
    assert (other.status, other.code, other.json["job"]["id"]) == (409, "attention_superseded", job["id"])
    async with site.working():
        await site.until(job["id"], final)
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/result")).json == "green"


async def test_a_question_says_what_an_answer_looks_like_and_takes_no_other(site: Site) -> None:
    job = await asking(site, "question")
    answer, dismiss = job["attention"]["actions"]
    assert "input" not in dismiss
    shape = answer["input"]
    assert (shape["type"], shape["properties"], shape["required"], shape["additionalProperties"]) == (
        "object",
        {"colour": {"type": "string"}},
        ["colour"],
        False,
    )
    for given, pointers in (
        ({}, ["/input/colour"]),
        ({"colour": 7}, ["/input/colour"]),
        ({"colour": "red", "shade": "dark"}, ["/input/shade"]),
        ("red", ["/input"]),
        (None, ["/input"]),
    ):
        refused = await act(site, job["id"], job["attention"]["id"], "answer", input=given)
        assert (refused.status, refused.code, refused.json["pointers"]) == (422, "invalid", pointers)
        assert "red" not in refused.body.decode()
    assert (await site.call("GET", f"/v1/jobs/{job['id']}")).json == job, "nothing was written"
    assert (await act(site, job["id"], job["attention"]["id"], "answer", input={"colour": "red"})).status == 202
    late = await act(site, job["id"], job["attention"]["id"], "answer", input={"colour": 7})
    assert late.status == 422, "what does not fit is said before what became of the question"


async def test_nobody_else_learns_what_an_answer_looks_like(site: Site) -> None:
    job = await asking(site, "question")
    for who, status in ((BOB, 404), (OPS, 403)):
        refused = await act(site, job["id"], job["attention"]["id"], "answer", who, input={"colour": 7})
        assert refused.status == status


async def test_a_question_is_settled_by_one_of_two_at_once(site: Site) -> None:
    job = await asking(site, "print")
    question = job["attention"]["id"]
    answers = await asyncio.gather(*(act(site, job["id"], question, action) for action in ("retry", "dismiss")))
    assert sorted(a.status for a in answers) == [202, 409]


async def test_skip_goes_on_without_optional_work(site: Site) -> None:
    job = await asking(site, "extra")
    skipped = await act(site, job["id"], job["attention"]["id"], "skip")
    assert (skipped.status, skipped.json["state"], skipped.json["outcome"]) == (202, "completed", "succeeded_with_problems")


async def test_dismiss_ends_the_job(site: Site) -> None:
    job = await asking(site, "print")
    done = await act(site, job["id"], job["attention"]["id"], "dismiss")
    assert (done.status, done.json["state"], done.json["outcome"]) == (202, "cancelled", "abandoned")
    assert done.json["usable_at"] is not None, "what was usable stays so"


async def test_actions_that_are_not_offered_or_not_known(site: Site) -> None:
    job = await asking(site, "print")
    question = job["attention"]["id"]
    for action in ("answer", "skip"):
        refused = await act(site, job["id"], question, action, **({"input": 1} if action == "answer" else {}))
        assert (refused.status, refused.code) == (422, "not_offered")
    assert (await act(site, job["id"], question, "explode")).code == "invalid"
    assert (await act(site, job["id"], "none", "retry")).code == "attention_superseded"
    assert (await act(site, job["id"], question, "retry", input=1)).code == "invalid"
    assert (await act(site, job["id"], question, "retry", BOB)).status == 404


async def test_an_operator_may_retry_and_not_decide_for_the_owner(site: Site) -> None:
    job = await asking(site, "print")
    question = job["attention"]["id"]
    refused = await act(site, job["id"], question, "dismiss", OPS)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await act(site, job["id"], question, "retry", OPS)).status == 202


async def test_a_retry_keeps_the_job_and_runs_what_failed_only(site: Site) -> None:
    job = await asking(site, "print")
    assert (await act(site, job["id"], job["attention"]["id"], "retry")).status == 202
    async with site.working():
        again = await site.until(job["id"], lambda j: j["state"] == "needs_attention")
    assert again["id"] == job["id"]
    assert again["attention"]["id"] != job["attention"]["id"]
    past = (await site.call("GET", f"/v1/jobs/{job['id']}/recovery")).json
    assert [a["task"] for a in past["attempts"]] == ["Text", "Paper", "Paper"]


async def test_a_rerun_is_a_new_job_that_names_the_old_one(site: Site) -> None:
    job = await site.submit()
    key = {"Idempotency-Key": "again"}
    early = await site.call("POST", f"/v1/jobs/{job['id']}/rerun", headers=key)
    assert (early.status, early.code, early.json["job"]["state"]) == (409, "not_final", "queued")
    await cancel(site, job["id"])
    assert (await site.call("POST", f"/v1/jobs/{job['id']}/rerun")).code == "invalid_key"
    first = await site.call("POST", f"/v1/jobs/{job['id']}/rerun", headers=key)
    assert (first.status, first.json["rerun_of"], first.json["state"]) == (202, job["id"], "queued")
    assert first.headers["location"].endswith(first.json["id"])
    again = await site.call("POST", f"/v1/jobs/{job['id']}/rerun", headers=key)
    assert (again.status, again.json["id"], again.headers["idempotency-replayed"]) == (202, first.json["id"], "true")
    assert (await site.call("POST", f"/v1/jobs/{job['id']}/rerun", BOB, headers=key)).status == 404
    submitted = await site.call("POST", "/v1/jobs", json_body={"kind": "note", "input": {"text": "hello", "seconds": 0.0}}, headers=key)
    assert (submitted.status, submitted.code) == (422, "key_reused"), "one key space with submits"


async def test_pages_of_other_sites_are_refused(small: Site) -> None:
    job = await small.submit()
    foreign: list[dict[str, str]] = [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://testserver.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"},
    ]
    for headers in foreign:
        for path in ("/v1/jobs", f"/v1/jobs/{job['id']}/cancel", f"/v1/jobs/{job['id']}/actions", f"/v1/jobs/{job['id']}/rerun"):
            answer = await small.call("POST", path, headers={"If-Match": "*", "Idempotency-Key": "k", **headers})
            assert (answer.status, answer.code) == (403, "cross_site")
    assert (await small.call("GET", f"/v1/jobs/{job['id']}", headers=foreign[0])).json["state"] == "queued"
    for own in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "http://testserver"}):
        assert (await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*", **own})).status == 200
