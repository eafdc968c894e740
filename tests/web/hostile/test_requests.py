"""Some hundred requests that nobody means well with: each gets the one answer that is written down for it, and stores nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from web.exchange import answered, bearer
from web.hostile import addresses, fields, json_texts, members
from web.hostile.requests import Hostile
from web.hostile.soundness import unsound
from web.site import Answer, Site, scope_of
from web.world import NOBODYS, Books, Person, World, application, people

ANN, BOB = people("acme")["owner"], people("acme")["peer"]
REQUESTS: Final[tuple[Hostile, ...]] = (*json_texts.table(), *members.table(), *fields.table(), *addresses.table())


@pytest.fixture
async def site(world: World, tmp_path: Path) -> AsyncIterator[Site]:
    one = Site(application(world.copy(tmp_path / "jobs.db").url))
    yield one
    one.app.stop()
    await one.jobs.close()


async def names(site: Site, world: World) -> Mapping[str, str]:
    """What the braces in a request stand for."""

    async def cursor(person: Person, query: str = "") -> str:
        page = await answered(site, scope_of("GET", f"/v1/jobs?limit=1{query}", [(b"host", b"testserver"), *bearer(person.who)]))
        found: str = page.json["next"]
        return found

    own = await cursor(ANN)
    return {
        "queued": world.id(ANN, "queued"),
        "question": world.id(ANN, "question"),
        "completed": world.id(ANN, "completed"),
        "cancelled": world.id(ANN, "cancelled"),
        "unknown": NOBODYS,
        "cursor": own,
        "half_cursor": own[: len(own) // 2],
        "their_cursor": await cursor(BOB),
        "filtered_cursor": await cursor(ANN, "&state=active"),
    }


async def sent(site: Site, request: Hostile, known: Mapping[str, str]) -> Answer:
    """The answer, to a request whose body comes in two parts."""
    content = request.content
    pairs = request.pairs(known)
    if not any(name == b"host" for name, _ in pairs):
        pairs.insert(0, (b"host", b"testserver"))
    if content and not any(name == b"content-length" for name, _ in pairs):
        pairs.append((b"content-length", str(len(content)).encode()))
    scope = scope_of(request.method, request.address(known), [*pairs, *bearer(request.who)])
    half = len(content) // 2
    return await answered(site, scope, [content[:half], content[half:]])


def test_they_are_many_and_all_different() -> None:
    assert len({request.why for request in REQUESTS}) == len(REQUESTS)
    assert len({(r.method, r.target, r.headers, r.who, id(r.body) if callable(r.body) else r.body) for r in REQUESTS}) == len(REQUESTS)
    assert len(REQUESTS) >= 400


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.why[:60])
async def test_hostile(request_: Hostile, site: Site, world: World, tmp_path: Path) -> None:
    known = await names(site, world)
    with Books(tmp_path / "jobs.db") as books:
        before = books.rows()
        answer = await sent(site, request_, known)
        assert answer.status in request_.wanted, answer
        assert not [*unsound(request_.method, request_.target, answer)], answer
        if answer.status >= 400:
            assert not books.written()
            assert books.rows() == before
            if request_.codes and not answer.headers["content-type"].startswith("text/html"):
                assert answer.code in request_.codes, answer
        elif request_.method == "POST" and "/cancel" not in request_.target:
            await _can_be_shown(site, answer.json)


async def _can_be_shown(site: Site, job: Mapping[str, Any]) -> None:
    """What was taken must not spoil what is shown later."""
    for target in ("", "/tasks", "/result", "/recovery", "/events"):
        path = f"/v1/jobs/{job['id']}{target}"
        answer = await answered(site, scope_of("GET", path, [(b"host", b"testserver"), *bearer(ANN.who)]))
        assert answer.status in (200, 409)
        assert not [*unsound("GET", path, answer)], answer
    answer = await answered(site, scope_of("GET", "/v1/jobs", [(b"host", b"testserver"), *bearer(ANN.who)]))
    assert job["id"] in {item["id"] for item in answer.json["items"]}
