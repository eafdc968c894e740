"""POST /v1/jobs: accepted durably, found again by its key, and refused without a trace."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psycopg
import pytest

from outlast.http.development import principal_of
from web.site import ANN, BOB, OTHER, Answer, Site, final


def body(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"kind": "note", "input": {"text": text}, **more}


async def post(site: Site, sent: Any, key: str | None = "k1", who: str | None = ANN, **more: Any) -> Answer:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await site.call("POST", "/v1/jobs", who, json_body=sent, headers={**headers, **more})


async def jobs_of(site: Site, who: str = ANN) -> list[Any]:
    listed: list[Any] = (await site.call("GET", "/v1/jobs?limit=200", who)).json["items"]
    return listed


async def test_accepted_means_stored_with_its_address_tag_and_when_to_ask_again(site: Site) -> None:
    answer = await post(site, body())
    assert answer.status == 202
    job = answer.json
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["etag"] == '"1.queued"'
    assert int(answer.headers["retry-after"]) >= 1
    assert "idempotency-replayed" not in answer.headers
    assert job["state"] == "queued"
    assert job["outcome"] is None
    assert job["progress"] == {"done": 0, "total": 2, "label": "Text"}
    assert job["cancel_note"] == "Printed copies stay printed."
    assert job["accepted_at"].endswith("Z")
    assert (await site.call("GET", answer.headers["location"])).json == job
    found = await site.jobs.get(job["id"], principal=principal(ANN))
    assert found.id == job["id"]


def principal(who: str) -> Any:
    return principal_of(f"dev:{who}")


async def test_the_same_key_and_request_give_the_same_job_as_it_stands_now(site: Site) -> None:
    first = (await post(site, body())).json
    again = await post(site, body())
    assert (again.status, again.json["id"], again.headers["idempotency-replayed"]) == (202, first["id"], "true")
    async with site.working():
        done = await site.until(first["id"], final)
    later = await post(site, body())
    assert (later.status, later.json) == (200, done)
    assert later.headers["idempotency-replayed"] == "true"
    assert "retry-after" not in later.headers
    assert len(await jobs_of(site)) == 1


@pytest.mark.parametrize("written", ['"k1"', " k1 ", '"k\\"1"'])
async def test_a_key_may_stand_in_quotes(small: Site, written: str) -> None:
    bare = written.strip().strip('"').replace("\\", "")
    first = (await post(small, body(), bare)).json
    assert (await post(small, body(), written)).json["id"] == first["id"]


async def test_members_in_another_order_and_other_blanks_are_the_same_request(small: Site) -> None:
    first = (await post(small, body())).json
    text = b'{ "input" : {"text":"hello"},\n"kind":"note" }'
    again = await small.call(
        "POST", "/v1/jobs", body=text, headers={"Idempotency-Key": "k1", "content-type": "application/json; charset=UTF-8"}
    )
    assert again.json["id"] == first["id"]


async def test_another_request_under_the_key_is_refused_and_stores_nothing(site: Site) -> None:
    await post(site, body())
    other = await post(site, body("other"))
    assert (other.status, other.code, other.json["retryable"]) == (422, "key_reused", False)
    assert len(await jobs_of(site)) == 1


async def test_defaults_written_out_are_another_request(small: Site) -> None:
    """The fingerprint is of the input as it was sent."""
    await post(small, body())
    spelt = await post(small, {"kind": "note", "input": {"text": "hello", "seconds": 0.0}})
    assert spelt.code == "key_reused"


async def test_keys_belong_to_their_owner(site: Site) -> None:
    ids = {(await post(site, body(), who=who)).json["id"] for who in (ANN, BOB, OTHER)}
    assert len(ids) == 3


async def test_a_refused_request_burns_no_key(site: Site) -> None:
    wrong = await post(site, {"kind": "note", "input": {"text": 7}})
    assert (wrong.status, wrong.code, wrong.json["pointers"]) == (422, "invalid", ["/input/text"])
    assert await jobs_of(site) == []
    assert (await post(site, body())).status == 202


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (None, "Send an Idempotency-Key"),
        ("", "1 to 255"),
        ("x" * 256, "1 to 255"),
        ("a b", "1 to 255"),
        ('"a', "1 to 255"),
        ("ä", "1 to 255"),
    ],
)
async def test_keys_that_are_none(small: Site, key: str | None, said: str) -> None:
    answer = await post(small, body(), key)
    assert (answer.status, answer.code) == (400, "invalid_key")
    assert said in answer.json["detail"]
    assert await jobs_of(small) == []


async def test_a_key_twice(small: Site) -> None:
    twice = [("idempotency-key", "a"), ("idempotency-key", "a")]
    answer = await small.call("POST", "/v1/jobs", json_body=body(), headers=twice)
    assert answer.code == "invalid_key"


@pytest.mark.parametrize(
    ("sent", "status", "code", "pointers"),
    [
        ({"kind": "nothing", "input": {}}, 422, "not_registered", ["/kind"]),
        ({"kind": "note", "input": {"text": "x"}, "schema_version": 2}, 422, "not_registered", ["/schema_version"]),
        ({"kind": "note"}, 422, "invalid", ["/input"]),
        ({"kind": "note", "input": {}}, 422, "invalid", ["/input/text"]),
        ({"kind": "note", "input": {"text": "x", "more": 1}}, 422, "invalid", ["/input/more"]),
        ({"kind": "note", "input": {"text": "x"}, "tenant": "globex"}, 422, "invalid", ["/tenant"]),
        ({"kind": "note", "input": {"text": "x"}, "target": {"ref": "a", "version": "1"}}, 422, "invalid", ["/target"]),
        ({"kind": "note", "input": {"text": "x"}, "not_before": "2030-01-01T00:00:00"}, 422, "invalid", ["/not_before"]),
        ({"kind": 7, "input": {"text": "x"}}, 422, "invalid", ["/kind"]),
        ([], 422, "invalid", [""]),
    ],
)
async def test_what_does_not_fit_is_named_by_its_place(small: Site, sent: Any, status: int, code: str, pointers: list[str]) -> None:
    answer = await post(small, sent)
    assert (answer.status, answer.code, answer.json.get("pointers", [])) == (status, code, pointers)
    assert await jobs_of(small) == []


async def test_an_input_of_an_earlier_version_is_brought_up(site: Site) -> None:
    old = {"kind": "postcard", "schema_version": 2, "input": {"body": "Dear Ann"}}
    first = await post(site, old, "k1")
    assert (first.status, first.json["kind"]) == (202, "postcard")
    again = await post(site, old, "k1")
    assert (again.json["id"], again.headers["idempotency-replayed"]) == (first.json["id"], "true")
    present = await post(site, {"kind": "postcard", "schema_version": 3, "input": {"text": "Dear Ann"}}, "k1")
    assert (present.status, present.code) == (422, "key_reused"), "what counts is what was sent"
    assert len(await jobs_of(site)) == 1


@pytest.mark.parametrize(
    ("version", "body", "code", "pointers"),
    [
        (1, {"body": "x"}, "not_registered", ["/schema_version"]),
        (4, {"body": "x"}, "not_registered", ["/schema_version"]),
        (2, {"body": "burst"}, "invalid", ["/input"]),
        (2, {"body": 7}, "invalid", ["/input"]),
        (2, {}, "invalid", ["/input"]),
        (2, ["body"], "invalid", ["/input"]),
        (3, {"body": "x"}, "invalid", ["/input/text"]),
    ],
)
async def test_an_old_input_that_cannot_be_brought_up_stores_nothing(
    small: Site, version: int, body: Any, code: str, pointers: list[str]
) -> None:
    answer = await post(small, {"kind": "postcard", "schema_version": version, "input": body})
    assert (answer.status, answer.code, answer.json["pointers"]) == (422, code, pointers)
    assert "MARKER" not in answer.body.decode()
    if code == "not_registered":
        assert "versions 2 to 3" in answer.json["detail"]
    assert await jobs_of(small) == []


async def test_only_some_roles_may_submit_some_kinds(small: Site) -> None:
    answer = await post(small, {"kind": "secret", "input": {"text": "x"}})
    assert (answer.status, answer.code) == (403, "forbidden")
    assert await jobs_of(small) == []


async def test_a_task_is_no_kind_for_callers(small: Site) -> None:
    """In a plan a check may come before it, and its kind may name roles: neither can be gone around."""
    ids = [entry for entry in small.jobs.registry.tasks if entry in small.jobs.registry.kinds]
    assert "write" in ids
    for name in ids:
        answer = await small.call("POST", "/v1/jobs", json_body={"kind": name, "input": {"text": "x"}}, headers={"Idempotency-Key": "k"})
        unknown = await small.call("POST", "/v1/jobs", json_body={"kind": "none", "input": {}}, headers={"Idempotency-Key": "k"})
        assert (answer.status, answer.code, answer.json["detail"]) == (422, "not_registered", unknown.json["detail"])
    assert (await small.call("GET", "/v1/jobs")).json["items"] == []


async def test_media_types(small: Site) -> None:
    sent = json.dumps(body()).encode()
    for headers in ({}, {"content-type": "text/plain"}, {"content-type": "application/json; charset=latin-1"}):
        answer = await small.call("POST", "/v1/jobs", body=sent, headers={"Idempotency-Key": "k", **headers})
        assert (answer.status, answer.code) == (415, "unsupported_media_type")


async def test_a_body_that_is_no_json(small: Site) -> None:
    answer = await small.call(
        "POST", "/v1/jobs", body=b'{"kind": MARKER', headers={"Idempotency-Key": "k", "content-type": "application/json"}
    )
    assert (answer.status, answer.code) == (400, "malformed_json")
    assert "MARKER" not in answer.body.decode()


async def test_a_large_body_is_refused_while_it_comes(small: Site) -> None:
    part = b" " * 65_536
    answer = await small.call("POST", "/v1/jobs", body=[part] * 10, headers={"Idempotency-Key": "k", "content-type": "application/json"})
    assert (answer.status, answer.code, answer.headers["connection"]) == (413, "too_large", "close")
    declared = await small.call(
        "POST", "/v1/jobs", body=b" " * 300_000, headers={"Idempotency-Key": "k", "content-type": "application/json"}
    )
    assert declared.code == "too_large"


async def test_an_input_over_the_limit_inside_a_body_under_it(small: Site) -> None:
    answer = await post(small, body("x" * 262_144))
    assert (answer.status, answer.code) == (422, "invalid")
    assert await jobs_of(small) == []


async def test_fifty_at_once_with_one_key_are_one_job(site: Site) -> None:
    answers = await asyncio.gather(*(post(site, body()) for _ in range(50)))
    assert {a.status for a in answers} == {202}
    assert len({a.json["id"] for a in answers}) == 1
    assert sum("idempotency-replayed" not in a.headers for a in answers) == 1
    assert len(await jobs_of(site)) == 1


async def test_a_job_of_later_waits(site: Site) -> None:
    answer = await post(site, body(not_before="2035-01-01T00:00:00+02:00"))
    assert answer.status == 202
    tasks = (await site.call("GET", f"/v1/jobs/{answer.json['id']}/tasks")).json["items"]
    assert tasks[0]["next_attempt_at"] == "2034-12-31T22:00:00Z"


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)  # SQLite has one writer at a time: nobody waits on a key there
async def test_a_key_whose_transaction_goes_on_elsewhere_is_answered_409(site: Site) -> None:
    """Somebody else's transaction has inserted the key and does not end: who repeats it is told to come again."""
    first = (await post(site, body(), "held")).json
    async with await psycopg.AsyncConnection.connect(site.jobs.url) as other:
        await other.execute("update outlast.submission set key = 'held2' where key = 'held'")
        answer = await post(site, body(), "held2")
        assert (answer.status, answer.code, answer.json["retryable"]) == (409, "still_admitting", True)
        assert int(answer.headers["retry-after"]) >= 1
        passes = await post(site, body(), "free")  # nobody else waits for it
        assert passes.status == 202
        await other.commit()
    assert (await post(site, body(), "held2")).json["id"] == first["id"]
