"""A result reaches its target at the version that the job last saw, or is kept for the owner, who applies it to the version they name."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from outlast import (
    Completion,
    Conflict,
    Context,
    Forbidden,
    Invalid,
    JobView,
    NotFound,
    Outlast,
    Permanent,
    Plan,
    Principal,
    StaleVersion,
    SyncContext,
    TargetRef,
)
from outlast.worker.runtime import Worker

ANN, BOB, OPS = Principal("acme", "ann"), Principal("acme", "bob"), Principal("acme", "ola", roles=["operator"])
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Draft:
    """The input of these kinds."""

    text: str


@dataclass
class Documents:
    """The host's documents, which people edit."""

    url: str

    def do(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        if self.url.startswith("sqlite"):
            connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=20)
            rows: list[tuple[Any, ...]] = connection.execute(sql, params).fetchall()
            connection.commit()
            connection.close()
            return rows
        with psycopg.connect(self.url) as pg:
            cursor = pg.execute(sql.replace("?", "%s"), params)
            return cursor.fetchall() if cursor.description else []

    def edit(self, text: str) -> None:
        self.do("update document set text = ?, version = version + 1 where ref = 'd1'", text)

    @property
    def now(self) -> tuple[str, int]:
        text, version = self.do("select text, version from document where ref = 'd1'")[0]
        return text, version


@pytest.fixture
def documents(url: str) -> Documents:
    one = Documents(url)
    one.do("create table document (ref varchar(50) primary key, text varchar(500) not null, version integer not null)")
    one.do("insert into document values ('d1', 'empty', 1)")
    return one


def change(db: Any, ref: str, expected: str, text: str) -> str | None:
    mark = "?" if isinstance(db, sqlite3.Connection) else "%s"
    changed = db.execute(
        f"update document set text = {mark}, version = version + 1 where ref = {mark} and version = {mark}", (text, ref, int(expected))
    )
    return str(int(expected) + 1) if changed.rowcount else None


async def change_async(db: Any, ref: str, expected: str, text: str) -> str | None:
    if isinstance(db, sqlite3.Connection):
        return change(db, ref, expected, text)
    changed = await db.execute(
        "update document set text = %s, version = version + 1 where ref = %s and version = %s", (text, ref, int(expected))
    )
    return str(int(expected) + 1) if changed.rowcount else None


@pytest.fixture(params=["async", "sync"])
async def jobs(request: pytest.FixtureRequest, url: str, documents: Documents) -> AsyncIterator[Outlast]:
    """Kinds that attach once, and twice; their tasks wait for `gate` before they attach."""
    app = Outlast(url)
    gate = asyncio.Event()
    gate.set()
    vars(app)["gate"] = gate
    vars(app)["running"] = asyncio.Event()
    target = app.target("document")(change_async if request.param == "async" else change)

    @app.task(name="write")
    async def write(ctx: Context, draft: Draft) -> Completion[str]:
        vars(app)["running"].set()
        await gate.wait()
        return ctx.attach(draft.text)

    @app.task(name="again")
    def again(ctx: SyncContext, draft: Draft) -> Completion[str]:
        return ctx.attach(draft.text + ", again")

    @app.kind("once", target=target)
    def once(plan: Plan[Draft], input: Draft) -> None:
        plan.task(write, label="Write")

    @app.kind("twice", target=target)
    def twice(plan: Plan[Draft], input: Draft) -> None:
        plan.task(again, label="Again", after=[plan.task(write, label="Write")])

    @app.kind("none")
    def none(plan: Plan[Draft], input: Draft) -> None:
        plan.task(write, label="Write")

    yield app
    await app.close()


async def submit(jobs: Outlast, kind: str = "once", version: str = "1", **more: Any) -> str:
    made = await jobs.submit(jobs.registry.kinds[kind], Draft("hello"), owner=ANN, target=TargetRef("d1", version), **more)
    return made.id


async def final(jobs: Outlast, job_id: str) -> JobView:
    return await jobs.wait(job_id, principal=ANN, timeout=15)


async def test_a_result_reaches_the_version_that_was_seen(jobs: Outlast, documents: Documents, start: Start) -> None:
    await start(jobs)
    job = await final(jobs, await submit(jobs))
    assert (job.state, job.attach, job.target) == ("completed", "attached", TargetRef("d1", "2"))
    assert documents.now == ("hello", 2)


async def test_a_later_task_attaches_to_what_the_jobs_own_attach_made(jobs: Outlast, documents: Documents, start: Start) -> None:
    await start(jobs)
    job = await final(jobs, await submit(jobs, "twice"))
    assert (job.attach, job.target) == ("attached", TargetRef("d1", "3"))
    assert documents.now == ("hello, again", 3)


async def test_an_edit_meanwhile_parks_the_result_and_keeps_the_edit(jobs: Outlast, documents: Documents, start: Start) -> None:
    job_id = await submit(jobs)
    documents.edit("mine")
    await start(jobs)
    job = await final(jobs, job_id)
    assert (job.state, job.outcome, job.attach) == ("completed", "succeeded", "parked")
    assert documents.now == ("mine", 2)
    assert await jobs.result(job_id, principal=ANN) == "hello", "the result is kept, and can be read"

    for principal in (BOB, OPS):
        with pytest.raises((NotFound, Forbidden)):
            await jobs.attach(job_id, 0, principal=principal, target_version="2")
    with pytest.raises(Conflict, match="not at the version") as refused:
        await jobs.attach(job_id, 0, principal=ANN, target_version="1")
    assert refused.value.code == "target_changed"
    assert documents.now == ("mine", 2)
    with pytest.raises(Conflict) as nothing:
        await jobs.attach(job_id, 1, principal=ANN, target_version="2")
    assert nothing.value.code == "nothing_parked"
    applied = await jobs.attach(job_id, 0, principal=ANN, target_version="2")
    assert (applied.attach, applied.version, applied.target) == ("attached", job.version + 1, TargetRef("d1", "3"))
    assert documents.now == ("hello", 3)
    with pytest.raises(Conflict):
        await jobs.attach(job_id, 0, principal=ANN, target_version="3")
    assert documents.now == ("hello", 3)


async def test_a_takeover_parks_what_comes_later(jobs: Outlast, documents: Documents, start: Start) -> None:
    job_id = await submit(jobs)
    with pytest.raises(StaleVersion):
        await jobs.takeover(job_id, principal=ANN, version=7)
    for principal in (BOB, OPS):
        with pytest.raises((NotFound, Forbidden)):
            await jobs.takeover(job_id, principal=principal)
    taken = await jobs.takeover(job_id, principal=ANN, version=1)
    assert (taken.version, taken.taken_over_at is not None) == (2, True)
    assert await jobs.takeover(job_id, principal=ANN, version=1) == taken, "a repeat succeeds and writes nothing"
    await start(jobs)
    job = await final(jobs, job_id)
    assert (job.attach, documents.now) == ("parked", ("empty", 1))
    assert (await jobs.attach(job_id, 0, principal=ANN, target_version="1")).attach == "attached"
    assert documents.now == ("hello", 2)


async def test_a_takeover_while_the_task_works(jobs: Outlast, documents: Documents, start: Start) -> None:
    vars(jobs)["gate"].clear()
    await start(jobs)
    job_id = await submit(jobs)
    await asyncio.wait_for(vars(jobs)["running"].wait(), 10)
    await jobs.takeover(job_id, principal=ANN)
    vars(jobs)["gate"].set()
    assert (await final(jobs, job_id)).attach == "parked"
    assert documents.now == ("empty", 1)


async def test_a_cancel_while_the_task_works_attaches_and_parks_nothing(jobs: Outlast, documents: Documents, start: Start) -> None:
    vars(jobs)["gate"].clear()
    await start(jobs)
    job_id = await submit(jobs)
    await asyncio.wait_for(vars(jobs)["running"].wait(), 10)
    await jobs.cancel(job_id, principal=ANN)
    vars(jobs)["gate"].set()
    async with asyncio.timeout(15):
        while (job := await jobs.get(job_id, principal=ANN)).stopping:  # noqa: ASYNC110 - the store is asked
            await asyncio.sleep(0.02)
    assert (job.state, job.attach, documents.now) == ("cancelled", "none", ("empty", 1))


async def test_targets_are_asked_for_where_there_are_some(jobs: Outlast, documents: Documents, start: Start) -> None:
    with pytest.raises(Invalid) as refused:
        await submit(jobs, "none")
    assert refused.value.pointers == ("/target",)
    without = await jobs.submit(jobs.registry.kinds["none"], Draft("x"), owner=ANN)
    await start(jobs)
    job = await final(jobs, without.id)
    assert (job.outcome, job.attach) == ("succeeded", "none")
    assert await jobs.result(without.id, jobs.registry.tasks["write"], principal=ANN) == "x", "what is made is never lost"
    assert documents.now == ("empty", 1)
    with pytest.raises(Conflict) as nothing:
        await jobs.takeover(without.id, principal=ANN)
    assert nothing.value.code == "no_target"


async def test_the_target_is_part_of_the_request_and_of_lists(jobs: Outlast, documents: Documents) -> None:
    first = await submit(jobs, key="k")
    assert await submit(jobs, key="k") == first
    with pytest.raises(Exception, match="another request"):
        await submit(jobs, key="k", version="2")
    page = await jobs.list(principal=ANN, target="d1")
    assert [job.id for job in page.items] == [first]
    assert (await jobs.list(principal=ANN, target="d2")).items == ()
    await jobs.cancel(first, principal=ANN)
    again = await jobs.rerun(first, principal=ANN)
    assert (await jobs.get(again.id, principal=ANN)).target == TargetRef("d1", "1")


async def test_a_kind_with_a_target_may_be_submitted_without_and_loses_nothing(
    jobs: Outlast, documents: Documents, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    without = await jobs.submit(jobs.registry.kinds["twice"], Draft("x"), owner=ANN)
    await start(jobs)
    job = await final(jobs, without.id)
    assert (job.outcome, job.attach, job.target) == ("succeeded", "none", None)
    assert await jobs.result(without.id, jobs.registry.tasks["again"], principal=ANN) == "x, again"
    assert "submitted without target=" in caplog.text
    with pytest.raises(Conflict) as nothing:
        await jobs.attach(without.id, 0, principal=ANN, target_version="1")
    assert nothing.value.code == "nothing_parked"


ODD: dict[str, object] = {"number": 5, "blank": "", "long": "v" * 300, "NUL": "a\x00", "a lie": False}


def put_badly(db: Any, ref: str, expected: str, text: str) -> Any:
    """Changes the document, and fails or answers as the version says."""
    db.execute("update document set text = 'half done'")
    if expected == "gone":
        raise Permanent("gone", "The document was deleted.")
    if expected == "sql":
        db.execute("select from nothing where")
    if expected in ODD:
        return ODD[expected]
    return None if int(expected) == 1 else str(int(expected))


@pytest.mark.parametrize("colour", ["client", "sync client"])
async def test_whatever_the_function_of_a_target_does_the_owner_gets_a_code(
    url: str, documents: Documents, start: Start, caplog: pytest.LogCaptureFixture, colour: str
) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def write(ctx: Context, draft: Draft) -> Completion[str]:
        return ctx.attach(draft.text)

    @jobs.kind("once", target=jobs.target("document")(put_badly))
    def once(plan: Plan[Draft], input: Draft) -> None:
        plan.task(write, label="Write")

    await start(jobs)
    job_id = await submit(jobs)
    assert (await final(jobs, job_id)).attach == "parked"

    async def attach(version: str) -> object:
        if colour == "client":
            return await jobs.attach(job_id, 0, principal=ANN, target_version=version)
        return await asyncio.to_thread(jobs.sync.attach, job_id, 0, principal=ANN, target_version=version)

    said = {}
    for version in ("1", "abc", "gone", "sql", *ODD):
        with pytest.raises(Conflict) as refused:
            await attach(version)
        said[version] = (refused.value.code, refused.value.message)
        assert (documents.now, refused.value.job.attach) == (("empty", 1), "parked"), version
    assert said["1"][0] == "target_changed"
    assert {code for version, (code, _) in said.items() if version != "1"} == {"target_failed"}
    assert said["gone"][1] == "The document was deleted."
    assert "could not be put into its target (ValueError at " in caplog.text
    assert "(it returned an int, not the new version as text)" in caplog.text
    assert "invalid literal" not in caplog.text + str(said)
    await jobs.close()
    jobs.sync.close()


def test_what_is_no_target_is_refused() -> None:
    jobs = Outlast("sqlite:///x.db")
    with pytest.raises(Invalid):
        jobs.target("document")(lambda db, ref: None)  # type: ignore[arg-type, misc]
    for ref, version in (("", "1"), ("d", ""), ("d\n", "1"), ("x" * 501, "1")):
        with pytest.raises(Invalid):
            TargetRef(ref, version)
    other = Outlast("sqlite:///x.db").target("document")(change)

    def build(plan: Plan[Draft], input: Draft) -> None: ...

    with pytest.raises(Invalid, match="not registered with this"):
        jobs.kind("k", target=other)(build)
