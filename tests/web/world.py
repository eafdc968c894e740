"""A store with jobs of several owners in two tenants, one in each state: made once, and copied for each test that wants it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest
from msgspec import Struct

from outlast import Ask, Context, Outlast, Permanent, Plan
from outlast.store.open import migrate
from outlast.store.programs import retention
from web.shop import Choice, make
from web.site import Site

TENANTS: Final = ("acme", "globex")
STATES: Final = ("queued", "question", "doubt", "broken", "completed", "cancelled")
"""What stands in for each state: three kinds of question among them, one that is answered, one that is skipped, one of a failure."""
PURGED: Final = "purged"
"""And a job that is no longer kept, but for its key."""
NOBODYS: Final = "0190a8c0-4b5e-7c3d-8f00-0123456789ab"
"""A well-formed id of no job."""


class Words(Struct, kw_only=True):
    """The input of the kinds here: `mark` is shown to whoever may see the job, `secret` to its owner alone."""

    mark: str
    secret: str


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with jobs of their own."""

    tenant: str
    subject: str
    operator: bool = False

    @property
    def who(self) -> str:
        """What they sign in with."""
        return f"{self.tenant}:{self.subject}{':operator' if self.operator else ''}"

    @property
    def mark(self) -> str:
        """What stands in labels and questions of their jobs."""
        return f"MARK-{self.tenant}-{self.subject}"

    @property
    def secret(self) -> str:
        """What their jobs take and give."""
        return f"SECRET-{self.tenant}-{self.subject}"


def people(tenant: str) -> dict[str, Person]:
    """A tenant's owner, peer and operator; the owners of both tenants are namesakes."""
    return {"owner": Person(tenant, "ann"), "peer": Person(tenant, "bob"), "operator": Person(tenant, "olga", operator=True)}


EVERYBODY: Final = tuple(person for tenant in TENANTS for person in people(tenant).values())


def application(url: str) -> Outlast:
    """The application of the other tests, with kinds whose labels say whose job it is."""
    jobs = make(url)

    @jobs.task
    async def tell(ctx: Context, words: Words) -> str:
        return words.secret

    @jobs.task
    async def pick(ctx: Context, words: Words) -> str:
        chosen = await ctx.ask("which_colour", f"{words.mark} wants which colour?", answer=Choice)
        return chosen.colour

    @jobs.task
    async def hesitate(ctx: Context, words: Words) -> str:
        raise Ask("unsure", f"{words.mark} goes on?", actions=["retry", "skip"])

    @jobs.task(max_attempts=1)
    async def tear(ctx: Context, words: Words) -> str:
        raise Permanent("no_paper", f"{words.mark} has no paper.")

    @jobs.kind("memo", label="A memo", promise=4, success="It can be read.", cancel_note="Copies stay.")
    def memo(plan: Plan[Words], input: Words) -> None:
        plan.task(tell, label=f"{input.mark} text", usable=True)

    @jobs.kind("picture", label="A picture")
    def picture(plan: Plan[Words], input: Words) -> None:
        plan.task(pick, label=f"{input.mark} colour")

    @jobs.kind("treaty", label="A treaty")
    def treaty(plan: Plan[Words], input: Words) -> None:
        text = plan.task(tell, label=f"{input.mark} text", usable=True)
        plan.task(hesitate, label=f"{input.mark} seal", after=[text], optional=True)

    @jobs.kind("poster", label="A poster")
    def poster(plan: Plan[Words], input: Words) -> None:
        text = plan.task(tell, label=f"{input.mark} text", usable=True)
        plan.task(tear, label=f"{input.mark} paper", after=[text])

    return jobs


_KINDS: Final = {
    "queued": "memo",
    "question": "picture",
    "doubt": "treaty",
    "broken": "poster",
    "completed": "memo",
    "cancelled": "memo",
    PURGED: "memo",
}


@dataclass(frozen=True, slots=True)
class World:
    """A store's file, and the jobs in it: by who owns them and what state they stand for."""

    path: Path
    jobs: dict[str, dict[str, dict[str, Any]]]

    @property
    def url(self) -> str:
        """The store."""
        return f"sqlite:///{self.path}"

    def copy(self, path: Path) -> World:
        """The same jobs in a file of its own."""
        shutil.copyfile(self.path, path)
        return replace(self, path=path)

    def id(self, person: Person, state: str) -> str:
        """The id of somebody's job."""
        found: str = self.jobs[person.who][state]["id"]
        return found

    def attention(self, person: Person, state: str) -> str:
        """The id of the question that somebody's job asks."""
        found: str = self.jobs[person.who][state]["attention"]["id"]
        return found

    def ids(self, person: Person) -> set[str]:
        """All jobs of somebody that there are."""
        return {job["id"] for state, job in self.jobs[person.who].items() if state != PURGED}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Nobody changes it: copy it. Imported by the conftest of each folder that uses it."""
    return build(tmp_path_factory.mktemp("world") / "jobs.db")


def build(path: Path) -> World:
    """A new world, made in a thread and loop of its own."""
    migrate(f"sqlite:///{path}")
    with ThreadPoolExecutor(1) as thread:
        return World(path, thread.submit(asyncio.run, _build(path)).result())


async def _build(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    site = Site(application(f"sqlite:///{path}"))
    submitted = {
        person.who: {state: await _submit(site, person, state) for state in (*STATES, PURGED) if state != "queued"} for person in EVERYBODY
    }
    async with site.working():
        for who, jobs in submitted.items():
            for state in ("question", "doubt", "broken"):
                jobs[state] = await site.until(jobs[state]["id"], lambda job: job["state"] == "needs_attention", who)
            for state in ("completed", "cancelled", PURGED):
                jobs[state] = await site.until(jobs[state]["id"], lambda job: job["finished_at"] is not None, who)
    for person in EVERYBODY:
        submitted[person.who]["queued"] = await _submit(site, person, "queued")
        await purge(site, person.tenant, path, submitted[person.who][PURGED]["id"])
    site.app.stop()
    await site.jobs.close()
    return submitted


async def purge(site: Site, tenant: str, path: Path, job_id: str) -> None:
    """A final job's time is over, and the purge comes by."""
    with sqlite3.connect(path) as db:
        db.execute("update outlast_job set purge_at = 0 where id = ?", (job_id,))
    db.close()
    assert await site.jobs.store.run(retention.purge(tenant, [job_id], horizon_ms=site.jobs.desk.app.horizon_ms)) == [job_id]


async def _submit(site: Site, person: Person, state: str) -> dict[str, Any]:
    answer = await site.call(
        "POST",
        "/v1/jobs",
        person.who,
        json_body={"kind": _KINDS[state], "input": {"mark": person.mark, "secret": person.secret}},
        headers={"Idempotency-Key": f"key-of-{state}"},
    )
    assert answer.status == 202, answer
    job: dict[str, Any] = answer.json
    if state == "cancelled":
        answer = await site.call("POST", f"/v1/jobs/{job['id']}/cancel", person.who, headers={"If-Match": "*"})
        assert answer.status == 200, answer
    return job


class Books:
    """Looks behind the store's back at what is in its file."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._seen = self._version()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._db.close()

    def _version(self) -> int:
        found: int = self._db.execute("pragma data_version").fetchone()[0]
        return found

    def written(self) -> bool:
        """Whether anybody committed a change since the last call, however small."""
        before, self._seen = self._seen, self._version()
        return self._seen != before

    def rows(self) -> Counter[str]:
        """How many rows each table has."""
        names = [name for (name,) in self._db.execute("select name from sqlite_master where type = 'table' and name like 'outlast%'")]
        return Counter({name: self._db.execute(f'select count(*) from "{name}"').fetchone()[0] for name in names})

    def job(self, job_id: str) -> dict[str, Any]:
        """A job's row."""
        cursor = self._db.execute("select * from outlast_job where id = ?", (job_id,))
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))

    def dump(self) -> str:
        """Everything, as text."""
        return json.dumps({name: self._db.execute(f'select * from "{name}"').fetchall() for name in self.rows()}, default=repr)
