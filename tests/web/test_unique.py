"""`unique` over HTTP: one active job for a key, and what each policy answers while there is one."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import Any

import psycopg
import pytest

from outlast.store.open import migrate
from servers.postgres import PostgresServer
from web.shop import make
from web.site import ANN, BOB, OTHER, Answer, Site, final

OLGA = "acme:olga:operator"


def body(policy: str, *, key: str = "u", kind: str = "note", text: str = "hello") -> dict[str, Any]:
    return {"kind": kind, "input": {"text": text}, "unique": {"key": key, "policy": policy}}


async def post(site: Site, sent: Any, key: str, who: str = ANN) -> Answer:
    return await site.call("POST", "/v1/jobs", who, json_body=sent, headers={"Idempotency-Key": key})


async def jobs_of(site: Site, who: str = ANN) -> list[Any]:
    listed: list[Any] = (await site.call("GET", "/v1/jobs?limit=200", who)).json["items"]
    return listed


async def test_existing_answers_with_the_active_job_as_a_replay_does(site: Site) -> None:
    first = await post(site, body("existing"), "k1")
    assert (first.status, "idempotency-replayed" in first.headers) == (202, False)
    second = await post(site, body("existing", text="other"), "k2")
    assert (second.status, second.json, second.headers["idempotency-replayed"]) == (202, first.json, "true")
    assert second.headers["location"] == first.headers["location"]
    async with site.working():
        done = await site.until(first.json["id"], final)
    again = await post(site, body("existing", text="other"), "k2")
    assert (again.status, again.json) == (200, done), "the key stands for that job, whatever became of it"
    new = await post(site, body("existing"), "k3")
    assert (new.status, new.json["id"] == first.json["id"]) == (202, False)


async def test_reject_shows_the_active_job_and_burns_no_key(site: Site) -> None:
    first = (await post(site, body("reject"), "k1")).json
    for _ in range(2):
        refused = await post(site, body("reject", text="other"), "k2")
        assert (refused.status, refused.code, refused.json["retryable"]) == (409, "unique_active", False)
        assert refused.json["job"] == first
    await site.call("POST", f"/v1/jobs/{first['id']}/cancel", headers={"If-Match": "*"})
    new = await post(site, body("reject", text="other"), "k2")
    assert (new.status, "idempotency-replayed" in new.headers) == (202, False)
    assert len(await jobs_of(site)) == 2


async def test_replace_ends_the_active_job_and_repeats_give_the_new_one(site: Site) -> None:
    first = (await post(site, body("replace"), "k1")).json
    new = await post(site, body("replace", text="other"), "k2")
    assert (new.status, "idempotency-replayed" in new.headers) == (202, False)
    old = (await site.call("GET", f"/v1/jobs/{first['id']}")).json
    assert (old["state"], old["outcome"]) == ("cancelled", "superseded")
    again = await post(site, body("replace", text="other"), "k2")
    assert (again.json["id"], again.headers["idempotency-replayed"]) == (new.json["id"], "true")
    before = await post(site, body("replace"), "k1")
    assert (before.status, before.json["id"], before.json["outcome"]) == (200, first["id"], "superseded")
    assert len(await jobs_of(site)) == 2


async def test_a_job_that_needs_its_owner_is_active(site: Site) -> None:
    async with site.working():
        first = (await post(site, body("reject", kind="question"), "k1")).json
        await site.until(first["id"], lambda job: job["state"] == "needs_attention")
        refused = await post(site, body("reject", kind="question"), "k2")
        assert (refused.code, refused.json["job"]["state"]) == ("unique_active", "needs_attention")
        replaced = await post(site, body("replace", kind="question"), "k3")
        assert replaced.status == 202
        assert (await site.call("GET", f"/v1/jobs/{first['id']}")).json["attention"] is None


async def test_the_unique_key_is_part_of_the_request(site: Site) -> None:
    await post(site, body("existing"), "k1")
    for other in (body("reject"), body("existing", key="v"), {"kind": "note", "input": {"text": "hello"}}):
        answer = await post(site, other, "k1")
        assert (answer.status, answer.code) == (422, "key_reused")


async def test_owners_and_tenants_have_keys_of_their_own(site: Site) -> None:
    ids = {(await post(site, body("reject"), "k", who)).json["id"] for who in (ANN, BOB, OTHER)}
    assert len(ids) == 3


@pytest.mark.parametrize("who", [BOB, OLGA])
@pytest.mark.parametrize("policy", ["existing", "reject", "replace"])
async def test_a_key_of_the_tenant_shows_nobody_anothers_job(site: Site, policy: str, who: str) -> None:
    """Not to operators either: what a submit answers is its owner's own."""
    theirs = (await post(site, body(policy, kind="shared"), "k", ANN)).json
    refused = await post(site, body(policy, kind="shared"), "k", who)
    assert (refused.status, refused.code) == (409, "unique_active")
    assert "job" not in refused.json
    assert theirs["id"] not in refused.body.decode()
    assert await jobs_of(site, who) == []
    assert (await site.call("GET", f"/v1/jobs/{theirs['id']}")).json["state"] == "queued"
    elsewhere = await post(site, body(policy, kind="shared"), "k", OTHER)
    assert elsewhere.status == 202


@pytest.mark.parametrize(
    ("unique", "pointers"),
    [
        ({"key": "a"}, ["/unique/policy"]),
        ({"policy": "reject"}, ["/unique/key"]),
        ({"key": "a", "policy": "ignore"}, ["/unique/policy"]),
        ({"key": "a", "policy": "reject", "scope": "tenant"}, ["/unique/scope"]),
        ({"key": "", "policy": "reject"}, ["/unique/key"]),
        ({"key": "a b", "policy": "reject"}, ["/unique/key"]),
        ({"key": "ä", "policy": "reject"}, ["/unique/key"]),
        ({"key": "a\n", "policy": "reject"}, ["/unique/key"]),
        ({"key": "x" * 256, "policy": "reject"}, ["/unique/key"]),
        ({"key": 7, "policy": "reject"}, ["/unique/key"]),
        ("a", ["/unique"]),
        ([], ["/unique"]),
    ],
)
async def test_keys_that_are_none_are_named_by_their_place(small: Site, unique: Any, pointers: list[str]) -> None:
    answer = await post(small, {"kind": "note", "input": {"text": "x"}, "unique": unique}, "k")
    assert (answer.status, answer.code, answer.json["pointers"]) == (422, "invalid", pointers)
    assert await jobs_of(small) == []


async def test_null_is_none(small: Site) -> None:
    for key in "ab":
        assert (await post(small, {"kind": "note", "input": {"text": "x"}, "unique": None}, key)).status == 202
    assert len(await jobs_of(small)) == 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize("policy", ["existing", "replace"])
async def test_fifty_at_once_whatever_isolation_the_database_is_set_to(postgres_server: PostgresServer, policy: str) -> None:
    name = f"unique_{uuid.uuid4().hex[:8]}"
    url = postgres_server.create_database(name)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
    await asyncio.to_thread(migrate, url)
    sites = [Site(make(url)) for _ in range(3)]
    answers = await asyncio.gather(*(post(sites[n % 3], body(policy, text=f"{n}"), f"k{n}") for n in range(50)))
    assert {answer.status for answer in answers} == {202}
    assert len([job for job in await jobs_of(sites[0]) if job["state"] == "queued"]) == 1
    for site in sites:
        site.app.stop()
        await site.jobs.close()


async def test_a_winner_that_rolls_back_leaves_the_key_to_the_next(postgres_server: PostgresServer) -> None:
    """Nobody is told of a job that is not there: who waited for a transaction that came to nothing makes the job itself."""
    url = postgres_server.create_database(f"unique_{uuid.uuid4().hex[:8]}")
    await asyncio.to_thread(migrate, url)
    site = Site(make(url))
    model = (await post(site, body("existing", key="other"), "k0")).json["id"]
    with psycopg.connect(url) as winner:
        winner.execute(
            "insert into outlast.job select (jsonb_populate_record(j, jsonb_build_object('id', gen_random_uuid(), 'active_key', 'u'))).* "
            "from outlast.job j where id = %s",
            (model,),
        )
        waiting = [asyncio.create_task(post(site, body("existing"), f"k{n}")) for n in range(1, 4)]
        async with asyncio.timeout(10):
            while not await asyncio.to_thread(_waits, url):  # noqa: ASYNC110 - another session's locks tell nobody
                await asyncio.sleep(0.02)
        winner.rollback()
    answers = await asyncio.gather(*waiting)
    assert {answer.status for answer in answers} == {202}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 2
    site.app.stop()
    await site.jobs.close()


def _waits(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        ).fetchone()
    return row is not None and row[0] > 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("policy", ["existing", "reject", "replace"])
async def test_fifty_at_once_leave_one_active_job(site: Site, policy: str) -> None:
    answers = await asyncio.gather(*(post(site, body(policy, text=f"{n}"), f"k{n}") for n in range(50)))
    kinds = Counter((answer.status, "idempotency-replayed" in answer.headers) for answer in answers)
    jobs = await jobs_of(site)
    active = [job for job in jobs if job["state"] == "queued"]
    assert len(active) == 1, kinds
    if policy == "replace":
        assert kinds == {(202, False): 50}
        assert Counter(job["outcome"] for job in jobs) == {"superseded": 49, None: 1}
    else:
        assert len(jobs) == 1
        assert kinds[202, False] == 1
        assert kinds == ({(202, False): 1, (202, True): 49} if policy == "existing" else {(202, False): 1, (409, False): 49})
    named = {(answer.json.get("job") or answer.json)["id"] for answer in answers}
    assert named == {job["id"] for job in jobs}, "each was told a job that there is"
