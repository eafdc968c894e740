"""Some hundred requests that nobody means well with: each gets the one answer that is written down for it, and stores nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from outlast.store.open import migrate
from servers.postgres import PostgresServer
from web.exchange import answered, bearer
from web.hostile import addresses, fields, forms, json_texts, members
from web.hostile.request import Hostile
from web.hostile.soundness import unsound
from web.site import Answer, Site, scope_of
from web.world import NOBODYS, Books, Person, World, application, people

pytestmark = pytest.mark.timeout(120)

ANN, BOB = people("acme")["owner"], people("acme")["peer"]
_TABLES: Final = {"bodies": json_texts, "members": members, "fields": fields, "addresses": addresses, "forms": forms}
_MANY: Final = 50
REQUESTS: Final = {name: tuple(module.table()) for name, module in _TABLES.items()}
GROUPS: Final = {f"{name}-{n}": table[n : n + _MANY] for name, table in REQUESTS.items() for n in range(0, len(table), _MANY)}


@dataclass(slots=True)
class Stage:
    """An application on a fresh copy of the world, and what the braces in a request stand for."""

    site: Site
    books: Books
    known: Mapping[str, str]

    @classmethod
    async def on(cls, world: World, path: Path) -> Stage:
        """A new one."""
        copied = world.copy(path)
        site = Site(application(copied.url))
        known = await names(site, world)
        return cls(site, Books(copied.path), known)

    async def close(self) -> None:
        """Gives back what it holds."""
        self.site.app.stop()
        await self.site.jobs.close()
        self.books.__exit__(None, None, None)


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
    everything = [request for table in REQUESTS.values() for request in table]
    assert len(everything) >= 400
    for what in (
        Counter(request.why for request in everything),
        Counter((r.method, r.target, r.headers, r.who, id(r.body) if callable(r.body) else r.body) for r in everything),
    ):
        assert not [one for one, count in what.items() if count > 1]


@pytest.mark.parametrize("group", GROUPS)
async def test_hostile(group: str, world: World, tmp_path: Path) -> None:
    wrong: list[str] = []
    stage: Stage | None = None
    for number, request in enumerate(GROUPS[group]):
        stage = stage or await Stage.on(world, tmp_path / f"{number}.db")
        rows = stage.books.rows()
        answer = await sent(stage.site, request, stage.known)
        wrong += [
            f"{request.why}: {said}\n    {answer}" for said in [*judged(request, answer), *unsound(request.method, request.target, answer)]
        ]
        if not stage.books.written():
            continue
        if answer.status >= 400 or request.method != "POST":
            wrong.append(f"{request.why}: refused with {answer.status}, and something was written: {stage.books.rows() - rows}")
        elif answer.status in (200, 202) and "/cancel" not in request.target:
            wrong += [f"{request.why}, shown at {said}" for said in [said async for said in unshowable(stage.site, answer.json)]]
        await stage.close()
        stage = None
    if stage is not None:
        await stage.close()
    assert not wrong, "\n".join(wrong)


async def test_both_stores_take_and_refuse_the_same(postgres_server: PostgresServer) -> None:
    """The submits once more, on PostgreSQL, each with a key of its own."""
    dsn = postgres_server.create_database("hostile_submits")
    migrate(dsn)
    site = Site(application(dsn))
    wrong: list[str] = []
    stored = 0
    for number, request in enumerate(r for r in (*REQUESTS["bodies"], *REQUESTS["members"]) if r.target == "/v1/jobs"):
        keyed = replace(request, headers=tuple((n, f"k{number}" if n == "Idempotency-Key" else v) for n, v in request.headers))
        answer = await sent(site, keyed, {})
        wrong += [f"{request.why}: {said}\n    {answer}" for said in [*judged(request, answer), *unsound("POST", request.target, answer)]]
        if answer.status == 202:
            stored += 1
            wrong += [f"{request.why}, shown at {said}" for said in [said async for said in unshowable(site, answer.json)]]
    site.app.stop()
    await site.jobs.close()
    assert not wrong, "\n".join(wrong)
    with psycopg.connect(dsn) as connection:
        for table in ("job", "job_input", "submission"):
            assert connection.execute(f"select count(*) from outlast.{table}").fetchone() == (stored,)


def judged(request: Hostile, answer: Answer) -> Iterator[str]:
    """Whether it is the answer that is written down."""
    if answer.status not in request.wanted:
        yield f"it is answered {answer.status}, not {request.wanted}"
    elif request.codes and answer.headers.get("content-type") == "application/problem+json" and answer.code not in request.codes:
        yield f"its code is {answer.code}, not {request.codes}"


async def unshowable(site: Site, job: Mapping[str, Any]) -> AsyncIterator[str]:
    """What was taken must not spoil what is shown later."""
    for target in ("", "/tasks", "/result", "/recovery", "/events"):
        path = f"/v1/jobs/{job['id']}{target}"
        answer = await answered(site, scope_of("GET", path, [(b"host", b"testserver"), *bearer(ANN.who)]))
        for said in [*unsound("GET", path, answer), *([] if answer.status in (200, 409) else [f"it is {answer.status}"])]:
            yield f"{path}: {said}\n    {answer}"
    answer = await answered(site, scope_of("GET", "/v1/jobs", [(b"host", b"testserver"), *bearer(ANN.who)]))
    if job["id"] not in {item["id"] for item in answer.json["items"]}:
        yield "/v1/jobs: it is not listed"
