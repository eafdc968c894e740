"""Streams and waits: what they begin with, what they tell, how they end, and what one reader costs the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from outlast import Principal
from outlast.http import events
from outlast.http.development import identify as development
from outlast.http.limits import STREAMS, WAITS
from outlast.store.program import Operation
from web.site import BOB, OPS, OTHER, Open, Site, final, until


async def told(stream: Open, seconds: float = 8.0) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    async for event in stream.events(seconds):
        assert event["event"] == "job"
        job = json.loads(event["data"])
        assert event["id"] == f"{job['version']}.{job['state']}"
        yield event["id"], job


async def test_a_stream_begins_with_the_present_state_and_ends_after_the_final_one(site: Site) -> None:
    job = await site.submit()
    async with site.opened(f"/v1/jobs/{job['id']}/events") as stream, site.working():
        seen = [tag async for tag, _ in told(stream)]
    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "no-transform" in stream.headers["cache-control"]
    assert seen[0] == "1.queued"
    assert seen[-1].endswith(".completed")
    versions = [int(tag.partition(".")[0]) for tag in seen]
    assert versions == sorted(versions)
    assert len(set(seen)) == len(seen)


async def test_a_resumed_stream_tells_only_what_differs(site: Site) -> None:
    job = await site.submit()
    url = f"/v1/jobs/{job['id']}/events"
    async with site.opened(url, headers={"Last-Event-ID": "1.queued"}) as stream, site.working():
        seen = [tag async for tag, _ in told(stream)]
    assert "1.queued" not in seen
    last = seen[-1]
    answer = await site.call("GET", url, headers={"Last-Event-ID": last})
    assert (answer.status, answer.body) == (204, b"")
    for known in ("1.queued", "garbage", ""):
        async with site.opened(url, headers={"Last-Event-ID": known}) as stream:
            assert [tag async for tag, _ in told(stream)] == [last]
    assert (await site.call("GET", url, headers={"Last-Event-ID": "x" * 101})).code == "bad_request"


async def test_the_stream_of_all_jobs_begins_with_the_open_ones_and_tells_of_new_ones(site: Site) -> None:
    await site.submit(text="done before")
    async with site.working():
        before = (await site.call("GET", "/v1/jobs")).json["items"][0]["id"]
        await site.until(before, final)
    waiting = (await site.submit(text="open"))["id"]
    async with site.opened("/v1/events", headers={"Last-Event-ID": "5.completed"}) as stream:
        told_of = told(stream)
        tag, job = await anext(told_of)
        assert (job["id"], tag) == (waiting, "1.queued")
        new = (await site.submit(text="new"))["id"]
        foreign = (await site.submit(who=BOB))["id"]
        _, job = await anext(told_of)
        assert job["id"] == new
        ended: set[str] = set()
        async with site.working():
            while ended != {waiting, new}:
                _, job = await anext(told_of)
                assert job["id"] not in (foreign, before)
                if final(job):
                    ended.add(job["id"])
        quick = (await site.submit(text="quick"))["id"]  # the stream goes on after all were final
        _, job = await anext(told_of)
        assert job["id"] == quick


async def test_streams_of_others_and_nobody(site: Site) -> None:
    job = await site.submit()
    for who in (BOB, OTHER):
        assert (await site.call("GET", f"/v1/jobs/{job['id']}/events", who)).status == 404
    async with site.opened(f"/v1/jobs/{job['id']}/events", OPS) as stream:
        assert (await anext(told(stream)))[1]["id"] == job["id"]
    async with site.opened("/v1/events", OPS) as stream, asyncio.timeout(8):
        with pytest.raises(TimeoutError):  # an operator's own jobs, and there are none
            await anext(told(stream, 0.8))


async def test_a_stopping_job_is_followed_until_its_worker_has_stopped(site: Site) -> None:
    job = await site.submit(seconds=30)
    async with site.working():
        await site.until(job["id"], lambda j: j["state"] == "running")
        async with site.opened(f"/v1/jobs/{job['id']}/events") as stream:
            await site.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
            seen = [(job["state"], job["stopping"]) async for _, job in told(stream)]
    assert seen[-1] == ("cancelled", False)


async def test_each_principal_has_so_many_streams_and_gets_them_back(small: Site) -> None:
    job = await small.submit()
    async with AsyncExitStack() as stack:
        for n in range(STREAMS):
            await stack.enter_async_context(small.opened("/v1/events" if n % 2 else f"/v1/jobs/{job['id']}/events"))
        refused = await small.call("GET", "/v1/events")
        assert (refused.status, refused.code) == (429, "too_many_streams")
        assert int(refused.headers["retry-after"]) >= 1
        async with small.opened("/v1/events", BOB):
            pass
    assert small.app.service.limits.open("streams") == 0
    async with small.opened("/v1/events") as stream:
        assert stream.status == 200


async def test_all_streams_of_a_process_are_told_by_one_watcher(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [await small.submit() for _ in range(3)]
    people = [f"acme:p{n}" for n in range(20)]
    asked: list[str] = []
    store = small.jobs.store
    run = store.run

    async def counted(operation: Operation[Any]) -> Any:
        asked.append(operation.name)
        return await run(operation)

    async with AsyncExitStack() as stack:
        for who in people:
            await stack.enter_async_context(small.opened("/v1/events", who))
        for job in jobs:
            await stack.enter_async_context(small.opened(f"/v1/jobs/{job['id']}/events"))
        monkeypatch.setattr(store, "run", counted)
        rounds = small.app.service.watcher.rounds
        await until(lambda: small.app.service.watcher.rounds >= rounds + 3)
        took = small.app.service.watcher.rounds - rounds
    assert set(asked) == {"watched"}
    assert len(asked) <= took + 1, "one read a round, whatever the number of readers"


async def test_a_reader_that_takes_nothing_costs_the_others_nothing_and_is_given_up(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SEND_LIMIT", 0.5)
    job = await small.submit()
    url = f"/v1/jobs/{job['id']}/events"
    async with small.opened(url) as frozen, small.opened(url) as other:
        await anext(told(frozen))
        frozen.frozen.set()
        async with small.working():
            seen = [tag async for tag, _ in told(other)]
        assert seen[-1].endswith(".completed")
        await until(lambda: not subscribed(small))
        await asyncio.sleep(0.5)
        assert small.app.service.limits.open("streams") == 1, "its connection is open: its place stays taken"
    await until(lambda: small.app.service.limits.open("streams") == 0)


def subscribed(site: Site) -> int:
    """How many are told what changes."""
    return sum(len(watch.subscriptions) for watch in site.app.service.watcher._watches.values())


async def test_a_frozen_reader_does_not_hold_a_process_that_stops(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SEND_LIMIT", 0.2)
    job = await small.submit()
    async with small.opened(f"/v1/jobs/{job['id']}/events") as frozen:
        await anext(told(frozen))
        frozen.frozen.set()
        await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
        await until(lambda: not subscribed(small))
        small.app.stop()
        await until(lambda: small.app.service.limits.open("streams") == 0)


async def test_a_reader_that_goes_away_leaves_nothing_behind(small: Site) -> None:
    job = await small.submit()
    for _ in range(50):
        async with small.opened(f"/v1/jobs/{job['id']}/events"):
            pass
    assert small.app.service.limits.open("streams") == 0
    watches = list(small.app.service.watcher._watches.values())
    assert [watch.subscriptions for watch in watches] == [set()]


class Revocable:
    """Signs people in until it is told otherwise."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Any = development

    async def __call__(self, request: Any) -> Principal | None:
        self.asked += 1
        found: Principal | None = self.answer(request)
        return found


def _other_role(_request: Any) -> Principal:
    return Principal("acme", "ann", roles=["operator"])


def _other_person(_request: Any) -> Principal:
    return Principal("acme", "bob")


def _raises(_request: Any) -> Principal:
    raise RuntimeError("the session store is away")


@pytest.mark.parametrize("then", [lambda _request: None, _other_person, _other_role, _raises])
async def test_a_stream_is_authorised_again_at_each_heartbeat(small: Site, monkeypatch: pytest.MonkeyPatch, then: Any) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.3)
    who = Revocable()
    site = Site(small.jobs, small.jobs.asgi(identify=who))
    job = await site.submit()
    async with site.opened(f"/v1/jobs/{job['id']}/events") as stream:
        await anext(told(stream))
        beat = await asyncio.wait_for(stream.parts.get(), 8)
        assert beat == b": \n\n"
        who.answer = then
        while await asyncio.wait_for(stream.parts.get(), 8) is not None:
            pass
    assert who.asked >= 3
    site.app.stop()


async def test_a_stop_of_the_server_ends_streams_and_waits(small: Site) -> None:
    job = await small.submit()
    async with small.opened("/v1/events") as stream:
        waiting = asyncio.create_task(small.call("GET", f"/v1/jobs/{job['id']}?wait=25", headers={"If-None-Match": '"1.queued"'}))
        await until(lambda: small.app.service.limits.open("waits") > 0)
        small.app.stop()
        seen = [tag async for tag, _ in told(stream)]
        assert seen == ["1.queued"]
        assert (await asyncio.wait_for(waiting, 8)).status == 304
    async with small.opened("/v1/events") as late:
        assert [tag async for tag, _ in told(late)] == ["1.queued"]


# -- waits ----------------------------------------------------------------------------------------------------------


async def test_a_wait_answers_at_the_change(site: Site) -> None:
    job = await site.submit()
    waiting = asyncio.create_task(site.call("GET", f"/v1/jobs/{job['id']}?wait=25", headers={"If-None-Match": '"1.queued"'}))
    await until(lambda: site.app.service.limits.open("waits") > 0)
    await site.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    answer = await asyncio.wait_for(waiting, 10)
    assert (answer.status, answer.json["state"]) == (200, "cancelled")


async def test_a_wait_ends_unchanged_at_its_limit(site: Site) -> None:
    job = await site.submit()
    answer = await site.call("GET", f"/v1/jobs/{job['id']}?wait=1", headers={"If-None-Match": '"1.queued"'})
    assert (answer.status, answer.body) == (304, b"")


async def test_a_wait_answers_at_once_when_there_is_news_or_nothing_to_wait_for(small: Site) -> None:
    job = await small.submit()
    for headers in ({}, {"If-None-Match": '"0.queued"'}):
        answer = await asyncio.wait_for(small.call("GET", f"/v1/jobs/{job['id']}?wait=25", headers=headers), 5)
        assert answer.status == 200
    await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    done = await asyncio.wait_for(small.call("GET", f"/v1/jobs/{job['id']}?wait=25", headers={"If-None-Match": '"2.cancelled"'}), 5)
    assert done.status == 304
    for wait in ("x", "-1", "1.5", ""):
        assert (await small.call("GET", f"/v1/jobs/{job['id']}?wait={wait}")).code == "invalid_query"


async def test_a_wait_is_authorised_again_before_it_answers(small: Site) -> None:
    who = Revocable()
    site = Site(small.jobs, small.jobs.asgi(identify=who))
    job = await site.submit()
    waiting = asyncio.create_task(site.call("GET", f"/v1/jobs/{job['id']}?wait=25", headers={"If-None-Match": '"1.queued"'}))
    await until(lambda: site.app.service.limits.open("waits") > 0)
    who.answer = lambda _request: None
    await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    assert (await asyncio.wait_for(waiting, 10)).status == 401
    site.app.stop()


async def test_each_principal_has_so_many_waits(small: Site) -> None:
    job = await small.submit()
    url = f"/v1/jobs/{job['id']}?wait=25"
    tasks = [asyncio.create_task(small.call("GET", url, headers={"If-None-Match": '"1.queued"'})) for _ in range(WAITS)]
    await until(lambda: small.app.service.limits.open("waits") == WAITS)
    refused = await small.call("GET", url, headers={"If-None-Match": '"1.queued"'})
    assert (refused.status, refused.code) == (429, "too_many_waits")
    await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    assert {answer.status for answer in await asyncio.wait_for(asyncio.gather(*tasks), 10)} == {200}
    assert small.app.service.limits.open("waits") == 0
