"""Quotas over HTTP: 429 with when to come again, nothing stored, and no more than allowed however many ask at once."""

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
from web.site import ANN, BOB, OPS, OTHER, Answer, Site, final


async def post(site: Site, key: str, who: str = ANN, *, kind: str = "few", **more: Any) -> Answer:
    sent = {"kind": kind, "input": {"text": "x"}, **more}
    return await site.call("POST", "/v1/jobs", who, json_body=sent, headers={"Idempotency-Key": key})


async def open_jobs(site: Site, who: str = ANN) -> list[Any]:
    listed: list[Any] = (await site.call("GET", "/v1/jobs?state=active&limit=200", who)).json["items"]
    return listed


async def test_one_more_is_429_until_one_has_ended_and_burns_no_key(site: Site) -> None:
    first = (await post(site, "k1")).json
    await post(site, "k2")
    for _ in range(2):
        refused = await post(site, "k3")
        assert (refused.status, refused.code, refused.json["retryable"]) == (429, "quota_exceeded", True)
        assert refused.headers["retry-after"] == "5", "an eighth of what the kind promises"
        assert "2 unfinished jobs of the kind 'few'" in refused.json["detail"]
    again = await post(site, "k1")
    assert (again.status, again.json["id"], again.headers["idempotency-replayed"]) == (202, first["id"], "true")
    assert (await post(site, "k3", kind="note")).status == 202, "the key is free, also for another request"
    await site.call("POST", f"/v1/jobs/{first['id']}/cancel", headers={"If-Match": "*"})
    assert (await post(site, "k4")).status == 202
    assert (await post(site, "k5")).status == 429


async def test_owners_and_tenants_have_quotas_of_their_own(small: Site) -> None:
    for who in (ANN, BOB, OTHER):
        assert [(await post(small, f"k{n}", who)).status for n in range(3)] == [202, 202, 429]


async def test_work_that_ends_makes_room(site: Site) -> None:
    made = [(await post(site, f"k{n}")).json["id"] for n in range(2)]
    async with site.working():
        for one in made:
            await site.until(one, final)
    assert [(await post(site, f"k{n}")).status for n in (2, 3, 4)] == [202, 202, 429]


async def test_the_active_job_of_a_unique_key_is_shown_and_what_is_replaced_makes_room(small: Site) -> None:
    unique = {"key": "u", "policy": "existing"}
    first = (await post(small, "k1", unique=unique)).json
    await post(small, "k2")
    found = await post(small, "k3", unique=unique)
    assert (found.status, found.json["id"]) == (202, first["id"])
    replaced = await post(small, "k4", unique={"key": "u", "policy": "replace"})
    assert (replaced.status, replaced.json["id"] == first["id"]) == (202, False)
    assert (await post(small, "k5")).status == 429


async def test_a_rerun_counts_for_its_owner_whoever_asks(small: Site) -> None:
    first = (await post(small, "k1")).json["id"]
    await small.call("POST", f"/v1/jobs/{first}/cancel", headers={"If-Match": "*"})
    rerun = f"/v1/jobs/{first}/rerun"
    assert [(await small.call("POST", rerun, who, headers={"Idempotency-Key": f"r{who}"})).status for who in (ANN, OPS)] == [202, 202]
    refused = await small.call("POST", rerun, OPS, headers={"Idempotency-Key": "r3"})
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "quota_exceeded", "5")
    assert (await small.call("POST", rerun, ANN, headers={"Idempotency-Key": f"r{ANN}"})).status == 202
    assert len(await open_jobs(small)) == 2


@pytest.mark.timeout(60)
async def test_forty_at_once_are_as_many_as_the_quota_and_hold_up_nobody_else(site: Site) -> None:
    asked = [post(site, f"k{n}") for n in range(40)]
    others = [post(site, f"b{n}", BOB, kind="note") for n in range(10)]
    answers = await asyncio.gather(*asked, *others)
    assert Counter(answer.status for answer in answers[:40]) == {202: 2, 429: 38}
    assert {answer.status for answer in answers[40:]} == {202}
    assert len(await open_jobs(site)) == 2


@pytest.mark.timeout(60)
async def test_several_processes_do_not_overshoot_whatever_isolation_the_database_is_set_to(postgres_server: PostgresServer) -> None:
    name = f"quotas_{uuid.uuid4().hex[:8]}"
    url = postgres_server.create_database(name)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'".encode())
    await asyncio.to_thread(migrate, url)
    sites = [Site(make(url)) for _ in range(3)]
    answers = await asyncio.gather(*(post(sites[n % 3], f"k{n}") for n in range(30)))
    assert Counter(answer.status for answer in answers) == {202: 2, 429: 28}
    for site in sites:
        site.app.stop()
        await site.jobs.close()
