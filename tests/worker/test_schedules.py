"""Workers fire schedules: what the handler sees, what a kind's function may do, and what other schedules see of that."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from outlast import Context, Cron, Every, Limit, Outlast, Permanent, Plan, Principal, QuotaExceeded, ScheduleView, SyncContext
from outlast.domain.errors import Locked, StillAdmitting, StoreUnavailable
from outlast.observe import hub
from outlast.observe.events import Event, ScheduleFailed, ScheduleFired, ScheduleLeft, StoreTrouble
from outlast.store.programs import slots
from outlast.worker.runtime import Worker
from outlast.worker.scheduler import Scheduler
from outlast.worker.threads import Threads

WHO = Principal("acme", "ann", roles=["editor"])
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Month:
    name: str = "may"


@dataclass
class Period:
    """What a month is in the next version."""

    month: str


class Press:
    """An application, and what its handlers saw."""

    def __init__(self, url: str) -> None:
        self.jobs = jobs = Outlast(url)
        self.seen: list[tuple[str, datetime | None]] = []
        self.how = "well"
        self.hung = 0
        self.release = threading.Event()

        @jobs.task
        async def write(ctx: Context, month: Month) -> str:
            self.seen.append((ctx.job_id, ctx.scheduled_for))
            return month.name

        @jobs.task
        def count(ctx: SyncContext, month: Month) -> int:
            self.seen.append((ctx.job_id, ctx.scheduled_for))
            return 1

        @jobs.kind("report", roles=["editor"])
        def report(plan: Plan[Month], month: Month) -> None:
            self._plan(plan)

        self.report, self.write, self.count = report, write, count

    def _plan(self, plan: Plan[Month]) -> None:
        match self.how:
            case "raises":
                raise ValueError("the secret is x")
            case "permanent":
                raise Permanent("no_such_month", "x")
            case "exits":
                raise SystemExit(3)
            case "cancelled":
                raise asyncio.CancelledError
            case "empty":
                return
            case "hangs":
                self.hung += 1
                self.release.wait()
            case "slow":
                time.sleep(0.3)
            case _:
                pass
        plan.task(self.write, label="Text")

    def scheduler(self, jobs: Outlast | None = None) -> Scheduler:
        return Scheduler(self.jobs.store, (jobs or self.jobs).registry, Threads(), max_input=1_000, retention_ms=60_000)

    async def schedule(self, name: str = "s", kind: Any = None, *, when: float = 3_600, **options: Any) -> ScheduleView:
        return await self.jobs.schedule(kind or self.report, Month(), name=name, when=Every(when), owner=WHO, **options)

    async def view(self, name: str = "s") -> ScheduleView:
        (found,) = [v for v in await self.jobs.schedules(principal=WHO) if v.name == name]
        return found


@pytest.fixture
async def press(url: str) -> AsyncIterator[Press]:
    made = Press(url)
    yield made
    await made.jobs.close()


@pytest.fixture
def events() -> Any:
    found: list[Event] = []
    end = hub.subscribe(found.append)
    yield found
    end()


async def until(ask: Callable[[], Awaitable[Any] | Any], what: str) -> Any:
    end = time.monotonic() + 15
    while True:
        answer = ask()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < end, f"never: {what}"
        await asyncio.sleep(0.05)


def due(press: Press, name: str = "s") -> None:
    """Its time has come."""
    past = round(time.time() * 1000) - 1_000
    if "sqlite" in press.jobs.url:
        connection = sqlite3.connect(press.jobs.url.removeprefix("sqlite:///"))
        with connection:
            connection.execute("update outlast_schedule set next_at = ? where name = ?", (past, name))
        connection.close()
        return
    with psycopg.connect(press.jobs.url) as server:
        server.execute("update outlast.schedule set next_at = to_timestamp(%s / 1000.0) where name = %s", (past, name))


def earlier(press: Press, seconds: float) -> None:
    """It was made so much earlier, and nobody has fired it since."""
    if "sqlite" in press.jobs.url:
        connection = sqlite3.connect(press.jobs.url.removeprefix("sqlite:///"))
        with connection:
            shift = seconds * 1000
            connection.execute("update outlast_schedule set made_at = made_at - ?, next_at = next_at - ?", (shift, shift))
        connection.close()
        return
    with psycopg.connect(press.jobs.url) as server:
        shift = timedelta(seconds=seconds)
        server.execute("update outlast.schedule set made_at = made_at - %s, next_at = next_at - %s", (shift, shift))


async def test_a_job_knows_its_due_time_and_others_have_none(press: Press, start: Start, events: list[Event]) -> None:
    made = await press.schedule(when=1)
    await press.schedule("plain", press.count, when=1)
    await start(press.jobs)
    alone = await press.jobs.submit(press.write, Month(), owner=WHO)

    view = await until(lambda: _fired(press, "s"), "it was fired")
    await until(lambda: _fired(press, "plain"), "the other one too")
    await until(lambda: len(press.seen) >= 3, "all ran")
    await press.jobs.wait(alone.id, principal=WHO, timeout=10)

    seen = dict(press.seen)
    assert seen[alone.id] is None
    times = [at for job, at in press.seen if job != alone.id]
    assert all(at is not None and at.utcoffset() == timedelta() for at in times)
    assert made.next_at in times
    assert view.last_job_id is not None
    fired = [e for e in events if isinstance(e, ScheduleFired)]
    assert {e.schedule for e in fired} == {"s", "plain"}
    job = await press.jobs.wait(fired[0].jobs[0], principal=WHO, timeout=10)
    assert (job.state, job.outcome) == ("completed", "succeeded")
    again = await press.jobs.rerun(job.id, principal=WHO)
    await press.jobs.wait(again.id, principal=WHO, timeout=10)
    assert dict(press.seen)[again.id] == dict(press.seen)[job.id], "a rerun is about the same due time"


async def _fired(press: Press, name: str) -> ScheduleView | None:
    view = await press.view(name)
    return view if view.last_at is not None else None


async def test_a_kind_that_fails_shows_and_stops_nobody(press: Press, events: list[Event]) -> None:
    await press.schedule()
    await press.schedule("other", press.write)
    codes = {"raises": "plan_failed", "permanent": "plan_failed", "exits": "plan_failed", "cancelled": "plan_failed", "empty": "invalid"}
    for press.how, code in codes.items():
        for name in ("s", "other"):
            due(press, name)
        events.clear()

        report = await press.scheduler().run_once()

        assert (report.fired, report.failed, report.left) == (1, 1, 0), press.how
        view = await press.view()
        assert (view.code, view.last_at) == (code, None)
        assert view.next_at is not None
        assert view.next_at > datetime.now(UTC)
        assert (await press.view("other")).last_job_id is not None
        (failed,) = [e for e in events if isinstance(e, ScheduleFailed)]
        assert (failed.schedule, failed.code) == ("s", code)
        assert "secret" not in "".join(e.text() for e in events)
    press.how = "well"
    due(press)
    assert (await press.scheduler().run_once()).fired == 1
    view = await press.view()
    assert view.code is None
    assert view.last_job_id is not None


async def test_a_slow_kind_does_not_block_the_loop(press: Press) -> None:
    await press.schedule()
    press.how = "slow"
    due(press)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    turning = asyncio.create_task(turn())
    assert (await press.scheduler().run_once()).fired == 1
    turning.cancel()
    assert turns > 3


async def test_a_kind_that_hangs_is_waited_for_once(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlast.worker.scheduler.PLANNING", 0.2)
    await press.schedule()
    await press.schedule("other", press.write)
    press.how = "hangs"
    scheduler = press.scheduler()
    for _ in range(2):
        for name in ("s", "other"):
            due(press, name)
        told = await scheduler.run_once()
        assert (told.fired, told.failed) == (1, 1)
        assert (await press.view()).code == "plan_failed"
    assert press.hung == 1, "no second thread hangs with it"

    press.release.set()
    press.how = "well"
    await until(lambda: not any(scheduler._hanging.values()), "it came back")
    due(press)
    assert (await scheduler.run_once()).fired == 1


async def test_rights_and_input_are_checked_again_at_the_due_time(press: Press) -> None:
    await press.schedule()
    due(press)
    press.report.roles = frozenset({"chief"})
    assert (await press.scheduler().run_once()).failed == 1
    assert (await press.view()).code == "forbidden"

    press.report.roles = frozenset({"chief", "editor"})
    press.report.input_type = int
    due(press)
    assert (await press.scheduler().run_once()).failed == 1
    assert (await press.view()).code == "payload_incompatible"


async def test_an_unknown_kind_or_version_is_left_for_others(press: Press, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    await press.schedule()
    due(press)
    stranger, newer = Outlast(press.jobs.url), Outlast(press.jobs.url)

    @newer.kind("report", version=2)
    def report(plan: Plan[Month], month: Month) -> None: ...

    for jobs in (stranger, newer):
        scheduler = press.scheduler(jobs)
        assert (await scheduler.run_once()).left == 1
        assert [e for e in events if isinstance(e, ScheduleLeft)] == [], "those who know it may be about to fire it"
        monkeypatch.setattr("outlast.worker.scheduler.ON_TIME_MS", 0)
        for _ in range(2):
            assert (await scheduler.run_once()).left == 1
        (told,) = [e for e in events if isinstance(e, ScheduleLeft)]
        assert (told.schedule, told.kind, told.code) == ("s", "report", "not_registered")
        monkeypatch.undo()
        events.clear()
    assert (await press.view()).last_at is None

    assert (await press.scheduler().run_once()).fired == 1


def of_version_2(press: Press) -> tuple[Outlast, list[str], Any]:
    """A release with another input, and the months that its handler gets."""
    newer, seen = Outlast(press.jobs.url), []

    @newer.task(name="write")
    async def write(ctx: Context, period: Period) -> str:
        seen.append(period.month)
        return period.month

    @newer.task
    def count(ctx: SyncContext, month: Month) -> int:
        return 1

    @newer.kind("report", version=2, roles=["editor"])
    def report(plan: Plan[Period], period: Period) -> None:
        plan.task(write, label="Text")

    return newer, seen, report


async def test_an_older_version_is_brought_up(press: Press, start: Start) -> None:
    await press.schedule()
    due(press)
    newer, seen, report = of_version_2(press)
    report.upgrade(from_version=1)(lambda old: {"month": old["name"]})

    assert (await press.scheduler(newer).run_once()).fired == 1

    await start(newer)
    job = await newer.wait((await press.view()).last_job_id or "", principal=WHO, timeout=10)
    assert (job.state, seen) == ("completed", ["may"])
    await newer.close()


async def test_an_older_version_that_cannot_be_brought_up_costs_its_due_time(press: Press) -> None:
    await press.schedule()
    await press.schedule("other", press.count)
    newer, _, report = of_version_2(press)
    report.upgrade(from_version=1)(lambda old: {"month": old["the secret"]})
    for name in ("s", "other"):
        due(press, name)

    told = await press.scheduler(newer).run_once()

    assert (told.fired, told.failed) == (1, 1)
    view = await press.view()
    assert (view.code, view.last_at) == ("payload_incompatible", None)
    assert view.next_at is not None
    assert view.next_at > datetime.now(UTC)


async def test_an_older_version_without_a_function_says_so_and_waits(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    await press.schedule()
    earlier(press, 3_601)
    due_at = (await press.view()).next_at
    newer, _, report = of_version_2(press)
    scheduler = press.scheduler(newer)
    assert (await scheduler.run_once()).left == 1
    assert (await press.view()).code is None, "one of the release before may be about to fire it"
    monkeypatch.setattr("outlast.worker.scheduler.ON_TIME_MS", 0)

    assert (await scheduler.run_once()).left == 1

    view = await press.view()
    assert (view.code, view.next_at) == ("not_registered", due_at)
    report.upgrade(from_version=1)(lambda old: {"month": old["name"]})
    assert (await scheduler.run_once()).fired == 1
    view = await press.view()
    assert (view.code, view.last_at) == (None, due_at)


def limited(press: Press) -> tuple[Any, Any]:
    """A kind of which an owner may have two open jobs, and that runs one at a time; and its task."""

    @press.jobs.task(limit=Limit("press", 1))
    async def print_out(ctx: Context, month: Month) -> str:
        return month.name

    @press.jobs.kind("printing", quota=2)
    def printing(plan: Plan[Month], month: Month) -> None:
        plan.task(print_out, label="Print")

    return printing, print_out


async def test_over_the_quota_a_due_time_has_no_job_and_the_next_one_is_tried(press: Press) -> None:
    printing, _ = limited(press)
    await press.schedule("s", printing)
    await press.schedule("other")
    open_jobs = [await press.jobs.submit(printing, Month(), owner=WHO) for _ in range(2)]
    for name in ("s", "other"):
        due(press, name)

    told = await press.scheduler().run_once()

    assert (told.fired, told.failed) == (1, 1)
    view = await press.view()
    assert (view.code, view.last_job_id) == ("quota_exceeded", None)
    assert view.next_at is not None
    assert view.next_at > datetime.now(UTC)
    await press.jobs.cancel(open_jobs[0].id, principal=WHO)
    due(press)
    assert (await press.scheduler().run_once()).fired == 1
    view = await press.view()
    assert view.code is None
    with pytest.raises(QuotaExceeded):
        await press.jobs.submit(printing, Month(), owner=WHO)


async def test_of_missed_due_times_the_latest_have_jobs_as_many_as_the_quota_leaves(press: Press, events: list[Event]) -> None:
    printing, _ = limited(press)
    await press.schedule("s", printing, when=60, catch_up=3)
    await press.jobs.submit(printing, Month(), owner=WHO)
    earlier(press, 5 * 60)

    assert (await press.scheduler().run_once()).fired == 1

    (fired,) = [e for e in events if isinstance(e, ScheduleFired)]
    view = await press.view()
    assert fired.jobs == (view.last_job_id,)
    assert view.last_at is not None
    assert view.next_at == view.last_at + timedelta(seconds=60), "it is the latest"


async def test_limits_hold_for_the_jobs_of_schedules(press: Press) -> None:
    printing, _ = limited(press)
    await press.schedule("a", printing)
    await press.schedule("b", printing)
    for name in ("a", "b"):
        due(press, name)
    assert (await press.scheduler().run_once()).fired == 2

    claimed = await press.jobs.store.run(slots.claim_keyed("default", ["printing@1:print_out"], 10, "w:1", 30_000))

    assert len(claimed.claimed) == 1


async def test_who_holds_a_quota_for_long_holds_up_no_other_schedule(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    await press.schedule()
    await press.schedule("other")
    for name in ("s", "other"):
        due(press, name)
    scheduler = press.scheduler()
    run = scheduler._store.run

    async def meet(operation: Any) -> Any:
        if operation.name == "fire" and not met:
            met.append(operation.name)
            raise Locked("Another transaction holds what this one needs.")
        return await run(operation)

    met: list[str] = []
    monkeypatch.setattr(scheduler._store, "run", meet)
    told = await scheduler.run_once()
    assert (told.fired, told.failed, told.left) == (1, 0, 1)
    assert (await scheduler.run_once()).fired == 1
    assert [(await press.view(name)).code for name in ("s", "other")] == [None, None]


async def test_a_rule_that_this_process_cannot_read_is_left_for_others(
    press: Press, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    await press.jobs.schedule(press.report, Month(), name="c", when=Cron("* * * * *", zone="Europe/Berlin"), owner=WHO)
    await press.schedule()
    due(press, "c")
    due(press)
    monkeypatch.setitem(sys.modules, "cronsim", None)
    monkeypatch.setattr("outlast.worker.scheduler.ON_TIME_MS", 0)

    report = await press.scheduler().run_once()

    assert (report.fired, report.failed, report.left) == (1, 0, 1)
    assert (await press.view("c")).code == "cronsim_missing"
    (told,) = [e for e in events if isinstance(e, ScheduleLeft)]
    assert told.text().endswith("(cronsim_missing): pip install 'outlast[schedules]'")
    monkeypatch.undo()
    assert (await press.scheduler().run_once()).fired == 1
    assert (await press.view("c")).last_job_id is not None


async def test_a_store_in_trouble_is_told_to_the_loop(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    await press.schedule()
    due(press)
    scheduler = press.scheduler()
    run = scheduler._store.run

    async def fail(operation: Any) -> Any:
        if operation.name == "fire":
            raise StoreUnavailable("The store cannot be reached.")
        return await run(operation)

    monkeypatch.setattr(scheduler._store, "run", fail)
    with pytest.raises(StoreUnavailable):
        await scheduler.run_once()
    monkeypatch.undo()
    assert (await scheduler.run_once()).fired == 1


async def test_an_admission_that_is_refused_is_told_and_the_rest_goes_on(press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal that may pass, such as a quota's, is no trouble of the store: the due time is over."""
    await press.schedule()
    await press.schedule("other")
    for name in ("s", "other"):
        due(press, name)
    scheduler = press.scheduler()
    run = scheduler._store.run

    async def refuse(operation: Any) -> Any:
        if operation.name == "fire" and not refused:
            refused.append(operation.name)
            raise StillAdmitting("There is no room.")
        return await run(operation)

    refused: list[str] = []
    monkeypatch.setattr(scheduler._store, "run", refuse)
    report = await scheduler.run_once()
    monkeypatch.undo()

    assert (report.fired, report.failed) == (1, 1)
    assert {(await press.view("s")).code, (await press.view("other")).code} == {None, "still_admitting"}


async def test_many_are_read_page_by_page_and_one_that_breaks_stops_no_other(
    press: Press, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("a", "b", "c")
    for name in names:
        await press.schedule(name)
        due(press, name)
    monkeypatch.setattr("outlast.worker.scheduler.BATCH", 1)
    scheduler = press.scheduler()
    run = scheduler._store.run

    async def breaks(operation: Any) -> Any:
        if operation.name == "fire" and not broken:
            broken.append(operation.name)
            raise RuntimeError("the secret is x")
        return await run(operation)

    broken: list[str] = []
    monkeypatch.setattr(scheduler._store, "run", breaks)
    report = await scheduler.run_once()
    monkeypatch.undo()

    assert (report.fired, report.failed, report.left) == (2, 0, 1)
    (told,) = [e for e in events if isinstance(e, ScheduleLeft)]
    assert told.code == "RuntimeError"
    assert "secret" not in told.text()
    assert (await scheduler.run_once()).fired == 1


async def test_a_store_that_is_away_is_asked_again(press: Press, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    await press.schedule()
    due(press)
    scheduler = press.scheduler()
    run = scheduler._store.run

    async def away(operation: Any) -> Any:
        if operation.name == "due" and not asked:
            asked.append(operation.name)
            raise StoreUnavailable("The store cannot be reached.")
        return await run(operation)

    asked: list[str] = []
    monkeypatch.setattr("outlast.worker.scheduler.LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(scheduler._store, "run", away)
    looking = asyncio.create_task(scheduler.loop())
    await until(lambda: _fired(press, "s"), "it was fired all the same")
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    (told,) = [e for e in events if isinstance(e, StoreTrouble)]
    assert (told.where, told.code) == ("scheduler", "store_unavailable")


async def test_the_next_due_time_is_waited_for(press: Press) -> None:
    assert (await press.scheduler().run_once()).next_in is None
    await press.schedule(when=60)
    report = await press.scheduler().run_once()
    assert report.next_in is not None
    assert 0 < report.next_in <= 60
