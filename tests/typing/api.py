"""What the public types promise, checked by mypy --strict and pyright strict; not run.

Part 1 must give no error. In part 2 each line with an ignore must be an error in both checkers: an ignore that is not needed is
one itself.
"""
# mypy: disable-error-code=ignore-without-code

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict, assert_type

import psycopg
from msgspec import Struct
from pydantic import BaseModel
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from starlette.applications import Starlette
from starlette.requests import Request

from outlast import (
    AlreadyCompleted,
    AnyTask,
    Ask,
    Completion,
    Confirmed,
    Context,
    Cron,
    Every,
    Expired,
    Forgotten,
    Handle,
    ItemTask,
    JobView,
    Kind,
    Limit,
    Outcome,
    Outlast,
    Page,
    Permanent,
    Plan,
    PlannedTask,
    Principal,
    QueueChange,
    QueueView,
    QuotaExceeded,
    Recovery,
    Refused,
    Retry,
    RetryPolicy,
    ScheduleView,
    Snooze,
    State,
    Submission,
    SyncContext,
    TargetRef,
    Task,
    TaskView,
    Unique,
    UniqueActive,
)

jobs = Outlast("sqlite:///shop.db", base_url="/jobs")
who = Principal("acme", "ann", roles=["editor"])
now = datetime.now(UTC)


class Report(BaseModel):
    month: str


@dataclass
class Import:
    path: str


class Ping(TypedDict):
    host: str


@dataclass
class Row:
    text: str


class Settings(Struct):
    depth: int


class Plain:
    """Neither dataclass nor Struct nor model: cannot be stored."""


async def load(month: str) -> list[Row]:
    return [Row(month)]


def load_sync(month: str) -> list[Row]:
    return [Row(month)]


def load_plain(month: str) -> Plain:
    return Plain()


async def send(text: str, key: str) -> str:
    return text + key


def send_sync(text: str, key: str) -> str:
    return text + key


async def find(key: str) -> Confirmed[str]:
    return Confirmed(key)


async def find_number(key: str) -> Confirmed[int]:
    return Confirmed(len(key))


def find_sync(key: str) -> Confirmed[str]:
    return Confirmed(key)


async def save(db: AsyncSession, text: str) -> int:
    return len(text)


def save_sync(db: Session, text: str) -> int:
    return len(text)


async def put_nothing(db: AsyncSession, ref: str, expected: str) -> str | None:
    return None


async def put_bool(db: AsyncSession, ref: str, expected: str, text: str) -> bool:
    return True


# ======== 1. right uses ========

engine = create_async_engine("sqlite+aiosqlite:///shop.db")
Outlast("sqlite:///shop.db", session=async_sessionmaker(engine), sync_session=sessionmaker(create_engine("sqlite:///shop.db")))


@jobs.target("document")
async def put_text(db: AsyncSession, ref: str, expected: str, text: str) -> str | None:
    return expected + text if ref else None


@jobs.target("picture")
def put_picture(db: Session, ref: str, expected: str, picture: bytes) -> str | None:
    return expected if picture else None


@jobs.task
async def attached(ctx: Context, report: Report) -> Completion[str]:
    return ctx.attach("text").at("/documents/1")


@jobs.task
async def committed(ctx: Context, report: Report) -> Completion[int]:
    assert_type(await ctx.commit_step("chunk", save, "x"), int)
    assert_type(await ctx.commit_step("chunk 2", save_sync, "x"), int)
    return ctx.commit(save, "x")


@jobs.task
async def committed_in_thread(ctx: Context, report: Report) -> Completion[int]:
    return ctx.commit(save_sync, text="x")


@jobs.task
def stored(ctx: SyncContext, report: Report) -> Completion[int]:
    with ctx.transaction() as tx:
        return tx.complete(3)


@jobs.task
async def stored_async(ctx: Context, report: Report) -> Completion[int]:
    async with ctx.transaction() as tx:
        return await tx.complete(3)


@jobs.kind("targeted", target=put_text)
def targeted(plan: Plan[Report], input: Report) -> None:
    plan.task(attached, label="Text")


assert_type(attached, Task[Report, str])
assert_type(committed, Task[Report, int])
assert_type(stored, Task[Report, int])


async def with_target() -> None:
    await jobs.submit(targeted, Report(month="1"), owner=who, target=TargetRef("d1", "v1"))
    assert_type(await jobs.takeover("id", principal=who), JobView)
    assert_type(await jobs.attach("id", 0, principal=who, target_version="v2"), JobView)
    assert_type(jobs.sync.attach("id", 0, principal=who, target_version="v2"), JobView)


@jobs.task
async def write(ctx: Context, report: Report) -> str:
    rows = await ctx.step("load", load, report.month)
    assert_type(rows, list[Row])
    assert_type(await ctx.step("again", load_sync, month=report.month), list[Row])
    assert_type(await ctx.step("count", lambda: len(rows)), int)
    assert_type(await ctx.effect("mail", lambda key: send("x", key), reconcile=find), str)
    assert_type(await ctx.effect("mail", lambda key: send("x", key), idempotent=True, input=report.month, timeout=2), str)
    assert_type(await ctx.ask("limit", "How many?", answer=Row), Row)
    ctx.check()
    ctx.progress("half")
    return "text"


@jobs.task(max_attempts=5, deadline=120, retry=RetryPolicy(cap=60), queue="mail", priority=2, limit=Limit("mail", 2))
async def attach(ctx: Context, report: Report) -> Completion[str]:
    return ctx.complete(await ctx.output(write)).at("/documents/1")


@jobs.task(name="count-words")
async def count(ctx: Context, report: Report) -> Completion[int]:
    assert_type(await ctx.output(write, default=None), str | None)
    assert_type(await ctx.output(write, label="Text"), str)
    assert_type(await ctx.outputs(page), dict[str, int])
    return ctx.complete(3)


@jobs.task
async def page(ctx: Context, report: Report, number: int) -> int:
    return number


@jobs.task
def paint(ctx: SyncContext, report: Report) -> None:
    assert_type(ctx.step("load", load_sync, report.month), list[Row])
    assert_type(ctx.effect("mail", lambda key: send_sync("x", key), reconcile=find_sync), str)
    assert_type(ctx.output(write), str)
    ctx.check()


@jobs.task
def paint_page(ctx: SyncContext, report: Report, number: int) -> Completion[int]:
    return ctx.complete(number)


@jobs.task
async def read_file(ctx: Context, input: Import) -> Row | None:
    if input.path == "":
        raise Permanent("input_gone", "The file is no longer there.")
    if input.path == "busy":
        raise Retry("provider_busy", after=1.5, pause_key=True)
    if input.path == "later":
        raise Snooze(60)
    if input.path == "no":
        raise Refused
    raise Ask("needs_choice", "Skip this file?", actions=["retry", "skip"])


@jobs.task
async def ping(ctx: Context, input: Ping) -> dict[str, float]:
    return {input["host"]: 0.1}


@jobs.task
async def tune(ctx: Context, input: Settings) -> Settings:
    return input


@jobs.kind("report", version=2, promise=60, label="Report", success="It can be read.", cancel_note="What was sent stays sent.")
def report(plan: Plan[Report], input: Report) -> None:
    text = plan.task(write, label="Text", usable=True)
    numbers = plan.each(page, range(3), label=lambda n: f"Page {n}", after=[text], queue="pages")
    assert_type(text, PlannedTask)
    plan.task(count, label="Words", after=[text, *numbers], optional=True, priority=3, limit=Limit(f"words {input.month}", 1))


@report.upgrade(from_version=1)
def from_1(old: dict[str, Any]) -> dict[str, Any]:
    return {"month": old["period"]}


assert_type(from_1({"period": "May"}), dict[str, Any])


async def may_import(owner: Principal, job: JobView) -> bool:
    return owner.subject in job.label


@jobs.kind("shared", unique_scope="tenant", quota=10, still_permitted=lambda owner, job: owner.tenant == job.kind)
def shared(plan: Plan[Import], input: Import) -> None:
    plan.task(read_file, label="Read")


@jobs.kind("import", version=1, still_permitted=may_import)
def import_(plan: Plan[Import], input: Import) -> None:
    plan.task(read_file, label="Read")


assert_type(write, Task[Report, str])
assert_type(attach, Task[Report, str])
assert_type(count, Task[Report, int])
assert_type(page, ItemTask[Report, int, int])
assert_type(paint, Task[Report, None])
assert_type(paint_page, ItemTask[Report, int, int])
assert_type(read_file, Task[Import, Row | None])
assert_type(ping, Task[Ping, dict[str, float]])
assert_type(tune, Task[Settings, Settings])
assert_type(report, Kind[Report])
produces: AnyTask[object] = write
wider: Task[Report, object] = write


async def use(db: AsyncSession, pg: psycopg.AsyncConnection[Any], link: AsyncConnection) -> None:
    handle = await jobs.submit(report, Report(month="2026-11"), owner=who, key="r-1")
    assert_type(handle, Handle)
    await jobs.submit(write, Report(month="2026-11"), owner=who, not_before=now)
    await jobs.submit(ping, Ping(host="a"), owner=who)
    await jobs.submit(report, Report(month="1"), owner=who, unique=Unique("1", "replace"))
    many = [
        Submission(report, Report(month="1"), key="a", unique=Unique("x", "existing")),
        Submission(import_, Import("x"), not_before=now),
    ]
    assert_type(await jobs.submit_many(many, owner=who), tuple[Handle, ...])
    assert_type(await jobs.submit_many(many, owner=who, transaction=db), tuple[Handle, ...])
    assert_type(await jobs.submit(report, Report(month="2026-11"), owner=who, transaction=db), Handle)
    await jobs.submit(write, Report(month="2026-11"), owner=who, transaction=pg, not_before=now)
    await jobs.submit(write, Report(month="2026-11"), owner=who, transaction=link)
    await jobs.submit(ping, Ping(host="a"), owner=who, transaction="default")
    assert_type(await jobs.get(handle.id, principal=who), JobView)
    assert_type(await jobs.list(principal=who, state="active"), Page[JobView])
    assert_type(await jobs.tasks(handle.id, principal=who), tuple[TaskView, ...])
    assert_type(await jobs.recovery(handle.id, principal=who), Recovery)
    assert_type(await jobs.result(handle.id, write, principal=who), str)
    assert_type(await jobs.result(handle.id, principal=who), object)
    job = await jobs.wait(handle.id, principal=who, timeout=10, until="usable")
    if job.attention is not None:
        await jobs.act(job.id, job.attention.id, action="retry", principal=who)
    assert_type(await jobs.rerun(job.id, principal=who), Handle)
    try:
        await jobs.cancel(job.id, principal=who, version=job.version)
    except AlreadyCompleted as refused:
        assert_type(refused.job, JobView)
        assert_type(refused.code, str)
    except Expired as refused:
        assert_type((refused.state, refused.outcome, refused.finished_at, refused.purged_at), tuple[State, Outcome, datetime, datetime])
    except UniqueActive as refused:
        assert_type(refused.job, JobView)
        assert_type(refused.shown, bool)
    except QuotaExceeded as refused:
        assert_type(refused.kind, str)
    assert_type(await jobs.replay(job.id, principal=who, reason="The provider is back."), JobView)
    assert_type(await jobs.pause_queue("mail", principal=who, reason="The server is down."), QueueChange)
    assert_type((await jobs.resume_queue("mail", principal=who, reason="It is back.")).queue, QueueView)
    assert_type(await jobs.queues(principal=who), tuple[QueueView, ...])
    assert_type(await jobs.forget("ann", principal=who, reason="Asked for."), Forgotten)
    assert_type(handle.expired, bool)
    nightly = Cron("0 2 * * *", zone="Europe/Berlin")
    assert_type(
        await jobs.schedule(report, Report(month="1"), name="nightly", when=nightly, owner=who, catch_up=3),
        ScheduleView,
    )
    await jobs.schedule(write, Report(month="1"), name="often", when=Every(90.5), owner=who, catch_up="skip")
    assert_type(await jobs.schedules(principal=who), tuple[ScheduleView, ...])
    assert_type(await jobs.pause_schedule("nightly", principal=who), ScheduleView)
    assert_type(await jobs.resume_schedule("nightly", principal=who), ScheduleView)
    await jobs.unschedule("nightly", principal=who)


def use_sync(db: Session, pg: psycopg.Connection[Any], lite: sqlite3.Connection, link: Connection) -> None:
    for transaction in (db, pg, lite, link, "default"):
        assert_type(jobs.sync.submit(report, Report(month="2026-11"), owner=who, transaction=transaction), Handle)
    assert_type(jobs.sync.submit(report, Report(month="2026-11"), owner=who), Handle)
    assert_type(jobs.outbox_row(report, Report(month="2026-11"), owner=who), dict[str, str | int | None])
    assert_type(jobs.sync.submit(report, Report(month="1"), owner=who, unique=Unique("x", "reject")), Handle)
    assert_type(jobs.sync.replay("id", principal=who, reason="The provider is back."), JobView)
    assert_type(jobs.sync.pause_queue("mail", principal=who, reason="The server is down.").changed, bool)
    forgotten = jobs.sync.forget("ann", principal=who, reason="Asked for.")
    counts = (forgotten.jobs, forgotten.cancelled, forgotten.stopping, forgotten.keys, forgotten.schedules)
    assert_type(counts, tuple[int, int, int, int, int])
    assert_type(jobs.sync.result("id", write, principal=who), str)
    assert_type(jobs.sync.schedule(report, Report(month="1"), name="n", when=Every(60), owner=who), ScheduleView)
    assert_type(jobs.sync.schedules(principal=who)[0].next_at, datetime | None)
    jobs.sync.unschedule("n", principal=who)


async def identify(request: Request) -> Principal | None:
    return who if "session" in request.cookies else None


def identify_at_once(request: Request) -> Principal:
    return who


Starlette().mount("/jobs", jobs.asgi(identify=identify))
Starlette().mount("/jobs", jobs.asgi(identify=identify_at_once))
Starlette().mount("/jobs", jobs.asgi(identify=lambda request: None))


# ======== 2. misuse ========


async def async_with_sync_context(ctx: SyncContext, report: Report) -> str:
    return ""


def sync_with_context(ctx: Context, report: Report) -> str:
    return ""


async def without_input(ctx: Context) -> str:
    return ""


async def without_context(report: Report) -> str:
    return ""


async def untyped_input(ctx: Context, report: Plain) -> str:
    return ""


async def unstorable(ctx: Context, report: Report) -> Plain:
    return Plain()


async def maybe_completion(ctx: Context, report: Report) -> Completion[int] | None:
    return None


async def four(ctx: Context, report: Report, a: int, b: int) -> None: ...


async def async_plan(plan: Plan[Report], input: Report) -> None: ...


def crossed_plan(plan: Plan[Report], input: Import) -> None: ...


def bare_plan(plan: Plan[Report]) -> None: ...


def may_not_say(owner: Principal, job: JobView) -> str:
    return ""


async def upgrade_later(old: dict[str, Any]) -> dict[str, Any]:
    return old


def upgrade_to_text(old: dict[str, Any]) -> str:
    return ""


report.upgrade(1)  # type: ignore
report.upgrade(from_version="1")  # type: ignore
report.upgrade(from_version=1)(upgrade_later)  # type: ignore
report.upgrade(from_version=1)(upgrade_to_text)  # type: ignore
report.upgrade(from_version=1)(load_sync)  # type: ignore
jobs.task(async_with_sync_context)  # type: ignore
jobs.task(sync_with_context)  # type: ignore
jobs.task(without_input)  # type: ignore
jobs.task(without_context)  # type: ignore
jobs.task(untyped_input)  # type: ignore
jobs.task(unstorable)  # type: ignore
jobs.task(maybe_completion)  # type: ignore
jobs.task(four)  # type: ignore
jobs.task(max_attempts="5")  # type: ignore
jobs.task(timeout=5)  # type: ignore
jobs.task(deadline=5)(async_with_sync_context)  # type: ignore
jobs.task(deadline=5)(sync_with_context)  # type: ignore
jobs.kind("a")(async_plan)  # type: ignore
jobs.kind("a")(crossed_plan)  # type: ignore
jobs.kind("a")(bare_plan)  # type: ignore
jobs.kind("a", 2)  # type: ignore
jobs.kind("a", unique_scope="kind")  # type: ignore
jobs.kind("a", quota="10")  # type: ignore
jobs.kind("a", still_permitted=lambda owner: True)  # type: ignore
jobs.kind("a", still_permitted=may_not_say)  # type: ignore
Unique("x", "ignore")  # type: ignore
Unique("x")  # type: ignore
Cron("0 2 * * *", "UTC")  # type: ignore
Every("60")  # type: ignore


def bad_plan(plan: Plan[Report], input: Report) -> None:
    plan.task(read_file, label="x")  # type: ignore
    plan.task(report, label="x")  # type: ignore
    plan.task(page, label="x")  # type: ignore
    plan.task(write)  # type: ignore
    plan.task(write, label="x", after=write)  # type: ignore
    plan.task(write, label="x", after=[write])  # type: ignore
    plan.task(write, label="x", usable=True, optional=True)  # type: ignore
    plan.each(write, [1], label=str)  # type: ignore
    plan.each(page, ["one"], label=str)  # type: ignore
    plan.each(page, [1], label="Page")  # type: ignore


async def bad_handler(ctx: Context, report: Report) -> Completion[str]:
    text: str = ctx.output(write)  # type: ignore
    number: int = await ctx.output(write)  # type: ignore
    ctx.output(write)  # type: ignore
    await ctx.output("write")  # type: ignore
    await ctx.output(report)  # type: ignore
    await ctx.step(load, report.month)  # type: ignore
    await ctx.step("load", load, 3)  # type: ignore
    await ctx.step("load", load)  # type: ignore
    await ctx.step("load", load(report.month))  # type: ignore
    await ctx.step("load", load_plain, "x")  # type: ignore
    await ctx.effect("mail", lambda: send("x", "y"))  # type: ignore
    await ctx.effect("mail", send("x", "y"))  # type: ignore
    await ctx.effect("mail", lambda key: send("x", key), reconcile=send)  # type: ignore
    await ctx.effect("mail", lambda key: send("x", key), reconcile=find_number)  # type: ignore
    await ctx.effect("mail", lambda key: send("x", key), reconcile=find, idempotent=True)  # type: ignore
    ctx.effect("mail", lambda key: send("x", key))  # type: ignore
    await ctx.ask("limit", "How many?", answer=Plain)  # type: ignore
    ctx.complete(Plain())  # type: ignore
    raise Ask("code", "text", actions=["dismiss"])  # type: ignore


async def bare_value(ctx: Context, report: Report) -> Completion[str]:
    return "text"  # type: ignore


async def other_value(ctx: Context, report: Report) -> Completion[str]:
    return ctx.complete(3)  # type: ignore


async def undeclared(ctx: Context, report: Report) -> str:
    return ctx.complete("text")  # type: ignore


async def nothing_returned(ctx: Context, report: Report) -> Completion[int]:  # type: ignore
    ctx.complete(3)


def sync_effect(ctx: SyncContext, report: Report) -> str:
    return ctx.effect("mail", lambda key: send("x", key))  # type: ignore


def sync_awaitable(ctx: SyncContext, report: Report) -> str:
    return ctx.step("send", send, "x", "y")  # type: ignore


async def bad_submit(session: Session, engine: Engine, db: AsyncSession) -> None:
    await jobs.submit(report, 3, owner=who)  # type: ignore
    await jobs.submit(report, Import("x"), owner=who)  # type: ignore
    await jobs.submit(report, Report(month="1"))  # type: ignore
    await jobs.submit(report, Report(month="1"), who)  # type: ignore
    await jobs.submit(report, Report(month="1"), owner="ann")  # type: ignore
    await jobs.submit(report, Report(month="1"), owner=None)  # type: ignore
    await jobs.submit(load, Report(month="1"), owner=who)  # type: ignore
    jobs.outbox_row(report, Import("x"), owner=who)  # type: ignore
    jobs.outbox_row(report, Report(month="1"))  # type: ignore
    await jobs.submit("report", Report(month="1"), owner=who)  # type: ignore
    await jobs.submit(page, Report(month="1"), owner=who)  # type: ignore
    await jobs.submit(report, Report(month="1"), owner=who, not_before=60)  # type: ignore
    await jobs.submit(report, Report(month="1"), owner=who, unique="x")  # type: ignore
    await jobs.submit(report, Report(month="1"), owner=who, transaction=session)  # type: ignore
    await jobs.submit(report, Report(month="1"), owner=who, transaction=engine)  # type: ignore
    jobs.sync.submit(report, Report(month="1"), owner=who, transaction=db)  # type: ignore
    await jobs.submit_many([], owner=who, transaction=session)  # type: ignore
    await jobs.replay("id", principal=who)  # type: ignore
    await jobs.pause_queue("mail", principal=who)  # type: ignore
    await jobs.resume_queue("mail", reason="It is back.")  # type: ignore
    await jobs.forget("ann", principal=who)  # type: ignore
    await jobs.forget(who, principal=who, reason="Asked for.")  # type: ignore
    jobs.submit(report, Report(month="1"), owner=who)  # type: ignore
    await jobs.submit_many([Submission(report, Import("x"))], owner=who)  # type: ignore
    await jobs.submit_many([report], owner=who)  # type: ignore
    await jobs.get("id")  # type: ignore
    await jobs.get("id", who)  # type: ignore
    await jobs.act("id", "a", "retry", principal=who)  # type: ignore
    await jobs.cancel("id", principal=who, version="3")  # type: ignore
    await jobs.act("id", "a", action="resume", principal=who)  # type: ignore
    number: int = await jobs.result("id", write, principal=who)  # type: ignore
    await jobs.schedule(report, Report(month="1"), name="n", when="0 2 * * *", owner=who)  # type: ignore
    await jobs.schedule(report, Import("x"), name="n", when=Every(60), owner=who)  # type: ignore
    await jobs.schedule(report, Report(month="1"), name="n", when=Every(60))  # type: ignore
    await jobs.schedule(report, Report(month="1"), when=Every(60), owner=who)  # type: ignore
    await jobs.schedule(report, Report(month="1"), name="n", when=Every(60), owner=who, catch_up="all")  # type: ignore
    await jobs.schedule(page, Report(month="1"), name="n", when=Every(60), owner=who)  # type: ignore
    await jobs.unschedule("n")  # type: ignore


Retry("busy", "text", 3)  # type: ignore
Limit("key")  # type: ignore
Limit(key="key", slots="2")  # type: ignore
jobs.task(limit=2)(page)  # type: ignore
Principal("acme")  # type: ignore
jobs.asgi()  # type: ignore
jobs.asgi(identify=lambda request: "ann")  # type: ignore
jobs.kind("a", target="document")  # type: ignore
jobs.target("a")(put_nothing)  # type: ignore
jobs.target("a")(put_bool)  # type: ignore
Outlast("sqlite:///x", session=AsyncSession())  # type: ignore


async def bad_commits(ctx: Context, report: Report) -> None:
    ctx.commit(save, 3)  # type: ignore
    ctx.commit(save("x", "y"))  # type: ignore
    ctx.attach(Plain())  # type: ignore
    await jobs.submit(targeted, Report(month="1"), owner=who, target="d1")  # type: ignore


async def other_attached(ctx: Context, report: Report) -> Completion[str]:
    return ctx.attach(3)  # type: ignore


async def undeclared_attach(ctx: Context, report: Report) -> str:
    return ctx.attach("text")  # type: ignore


def sync_commit(ctx: SyncContext, report: Report) -> Completion[int]:
    return ctx.commit(save, "x")  # type: ignore
