"""Who calls is what the host's function says: nothing else in a request names a tenant, an owner or a role."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from outlast.http.app import build
from outlast.http.routes import ROUTES
from web.exchange import bearer, exchange
from web.matrix.cells import Stage
from web.world import Person, World, people

ANN, BOB = people("acme")["owner"], people("acme")["peer"]
THERE: Final = people("globex")["owner"]
OPERATOR: Final = people("acme")["operator"]

CLAIMS: Final = {
    "x-tenant": "acme",
    "x-tenant-id": "acme",
    "x-outlast-tenant": "acme",
    "x-owner": "ann",
    "x-user": "ann",
    "x-forwarded-user": "ann",
    "x-remote-user": "ann",
    "remote-user": "ann",
    "x-auth-request-user": "ann",
    "x-authenticated-userid": "ann",
    "x-webauth-user": "ann",
    "x-principal": "acme:ann",
    "x-roles": "operator",
    "x-role": "operator",
    "x-forwarded-groups": "operator",
    "x-real-ip": "127.0.0.1",
    "x-forwarded-for": "127.0.0.1",
    "forwarded": "for=127.0.0.1;by=ann",
    "x-original-url": "/healthz",
    "x-rewrite-url": "/healthz",
    "from": "ann@acme.example",
    "proxy-authorization": "Bearer dev:acme:ann",
    "x-authorization": "Bearer dev:acme:ann",
    "cookie": "outlast_dev=dev:acme:ann",
}
by_claim = pytest.mark.parametrize("name", CLAIMS)


@pytest.fixture
async def stage(world: World, tmp_path: Path) -> AsyncIterator[Stage]:
    one = Stage.on(world, tmp_path / "jobs.db")
    yield one
    await one.close()


@by_claim
async def test_a_header_opens_no_job(stage: Stage, name: str) -> None:
    claim = (name.encode(), CLAIMS[name].encode())
    for who, other in ((BOB, ANN), (THERE, ANN)):
        for rest in ("", "/tasks", "/result", "/recovery", "/events"):
            answer = await exchange(stage.site, "GET", f"/v1/jobs/{stage.world.id(other, 'completed')}{rest}", [*bearer(who.who), claim])
            assert answer.status == 404
        listed = (await exchange(stage.site, "GET", "/v1/jobs", [*bearer(who.who), claim])).json["items"]
        assert {job["id"] for job in listed} == stage.world.ids(who)


@by_claim
async def test_a_header_is_no_sign_in(stage: Stage, name: str) -> None:
    if name == "cookie":  # the one thing beside Authorization that signs in here, and only where there is no Authorization
        stage.site.app = build(stage.site.app.service.desk, lambda request: None)
    claim = (name.encode(), CLAIMS[name].encode())
    for path in ("/v1/jobs", "/v1/events", f"/v1/jobs/{stage.world.id(ANN, 'completed')}"):
        assert (await exchange(stage.site, "GET", path, [claim])).status == 401


@by_claim
@pytest.mark.parametrize("who", [BOB, THERE], ids=lambda person: person.who)
async def test_a_header_gives_no_job_away(stage: Stage, name: str, who: Person) -> None:
    body = json.dumps({"kind": "memo", "input": {"mark": "x", "secret": "y"}}).encode()
    headers = [(b"idempotency-key", b"one"), (b"content-type", b"application/json"), (name.encode(), CLAIMS[name].encode())]
    named = await exchange(stage.site, "POST", "/v1/jobs?tenant=acme&owner=ann", [*bearer(who.who), *headers], [body])
    assert (named.status, named.code) == (400, "invalid_query")
    answer = await exchange(stage.site, "POST", "/v1/jobs", [*bearer(who.who), *headers], [body])
    row = stage.books.job(answer.json["id"])
    assert (row["tenant"], row["owner"]) == (who.tenant, who.subject)


@pytest.mark.parametrize("query", ["tenant=globex", "owner=bob", "subject=bob", "principal=acme:bob", "role=operator", "as=bob", "id=7"])
async def test_a_query_opens_no_job(stage: Stage, query: str) -> None:
    for route in ROUTES:
        if route.method != "GET" or "{id}" not in route.path or route.page:
            continue
        path = route.path.replace("{id}", stage.world.id(BOB, "completed")).replace("{no}", "0")
        assert (await exchange(stage.site, "GET", f"{path}?{query}", bearer(ANN.who))).status in (400, 404), path
    answer = await exchange(stage.site, "GET", f"/v1/jobs?{query}", bearer(ANN.who))
    assert answer.status == 400


async def test_a_cursor_is_its_principals(stage: Stage) -> None:
    first = await exchange(stage.site, "GET", "/v1/jobs?limit=2", bearer(ANN.who))
    cursor = first.json["next"]
    assert (await exchange(stage.site, "GET", f"/v1/jobs?limit=2&cursor={cursor}", bearer(ANN.who))).status == 200
    for who in (BOB, THERE, OPERATOR):
        answer = await exchange(stage.site, "GET", f"/v1/jobs?limit=2&cursor={cursor}", bearer(who.who))
        assert (answer.status, answer.code) == (400, "invalid_query")
    assert (await exchange(stage.site, "GET", f"/v1/jobs?kind=memo&cursor={cursor}", bearer(ANN.who))).status == 400


async def test_a_last_event_id_is_no_key(stage: Stage) -> None:
    job = stage.world.jobs[BOB.who]["completed"]
    tag = [(b"last-event-id", f"{job['version']}.{job['state']}".encode())]
    assert (await exchange(stage.site, "GET", f"/v1/jobs/{job['id']}/events", [*bearer(ANN.who), *tag])).status == 404
    assert (await exchange(stage.site, "GET", f"/v1/jobs/{job['id']}/events", [*bearer(BOB.who), *tag])).status == 204


async def test_a_question_belongs_to_its_job(stage: Stage) -> None:
    """The attention id of another's job, in an action on one's own."""
    theirs = stage.world.attention(BOB, "doubt")
    assert theirs != stage.world.attention(ANN, "question")
    body = json.dumps({"attention_id": theirs, "action": "dismiss"}).encode()
    path = f"/v1/jobs/{stage.world.id(ANN, 'question')}/actions"
    answer = await exchange(stage.site, "POST", path, [*bearer(ANN.who), (b"content-type", b"application/json")], [body])
    assert (answer.status, answer.code) == (409, "attention_superseded")
    assert not stage.books.written()


async def test_the_same_key_in_other_hands_is_another_key(stage: Stage) -> None:
    """Keys are the owner's: neither a peer nor a namesake finds the job that somebody made under it."""
    words = {"kind": "memo", "input": {"mark": ANN.mark, "secret": ANN.secret}}
    for who in (ANN, BOB, THERE, OPERATOR):
        headers = [*bearer(who.who), (b"idempotency-key", b"key-of-queued"), (b"content-type", b"application/json")]
        answer = await exchange(stage.site, "POST", "/v1/jobs", headers, [json.dumps(words).encode()])
        if who == ANN:
            assert answer.json["id"] == stage.world.id(ANN, "queued")
        else:
            assert (answer.status, answer.code) == (422, "key_reused")  # their own job of that key has another input
