"""Concurrency keys in a worker: never more at once, nobody starved, woken where a slot is freed, and a provider that says later."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from crash.stage import auntil
from invariants import check, query
from outlast import Context, Limit, Outlast, Permanent, Plan, Principal, Retry, Submission
from outlast.store.program import Operation
from outlast.worker import claimer
from outlast.worker.runtime import Options, Worker

WHO = Principal("acme", "ann")
DAY = 86_400.0
ASKED = {"huge": 1e300, "infinite": math.inf, "dated": format_datetime(datetime.now(UTC) + timedelta(days=3), usegmt=True)}
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Parcel:
    key: str = ""
    limit: int = 1
    count: int = 1
    fails: str = ""


class Post:
    """Carries parcels, and counts how many at once."""

    def __init__(self, url: str) -> None:
        self.jobs = Outlast(url)
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        post = self

        @self.jobs.task
        async def carry(ctx: Context, parcel: Parcel) -> None:
            key = f"{ctx.owner.tenant} {parcel.key}"
            post.order.append(key)
            post.now[key] += 1
            post.most[key] = max(post.most[key], post.now[key])
            try:
                if parcel.key == "stuck":
                    await post.gate.wait()
                await asyncio.sleep(0.002)
                await post.misbehave(ctx, parcel.fails)
            finally:
                post.now[key] -= 1

        @self.jobs.kind("post")
        def send(plan: Plan[Parcel], parcel: Parcel) -> None:
            for n in range(parcel.count):
                if parcel.key:
                    plan.task(carry, label=f"Carry {n}", limit=Limit(parcel.key, parcel.limit))
                else:
                    plan.task(carry, label=f"Carry {n}")

        self.kind = send

    async def misbehave(self, ctx: Context, how: str) -> None:
        """Fails in the first attempt, or in each."""
        if how == "never":
            raise Permanent("gone")
        if how == "long":
            raise Retry("provider_busy", after=9 * DAY, pause_key=True)
        if how in ASKED:
            raise Retry("provider_busy", after=ASKED[how], pause_key=True)
        if ctx.attempt > 1:
            return
        if how == "later":
            raise Retry("provider_busy", after=0.4, pause_key=True)
        if how == "effect":
            await ctx.effect("send", self.busy)
        if how == "garbage":
            raise Retry("provider_busy", after="soon", pause_key=True)

    @staticmethod
    async def busy(_key: str) -> str:
        """The call of an effect that surely did not happen."""
        raise Retry("provider_busy", after=0.2, pause_key=True)

    async def submit(self, parcel: Parcel, owner: Principal = WHO) -> str:
        return (await self.jobs.submit(self.kind, parcel, owner=owner)).id

    async def ended(self, *ids: str, owner: Principal = WHO) -> None:
        for job in ids:
            await self.jobs.wait(job, principal=owner, timeout=30)


async def test_c8_two_workers_never_run_more_of_a_key_than_its_limit(url: str, start: Start) -> None:
    post = Post(url)
    for _ in range(2):
        await start(post.jobs, Options(queues={"default": 6}, lease=5))
    keyed = [await post.submit(Parcel("a", 2, count=8)), await post.submit(Parcel("b", 1, count=4)), await post.submit(Parcel(count=8))]
    await post.ended(*keyed)
    assert (post.most["acme a"], post.most["acme b"]) == (2, 1)
    check(url, settled=True)
    await post.jobs.close()


async def test_b50_a_provider_that_hangs_holds_up_nobody_else(url: str, start: Start) -> None:
    """Waiting for a limit holds no slot of the worker: twenty tasks without that provider are done while one hangs and eleven wait."""
    post = Post(url)
    post.gate.clear()
    stuck = [await post.submit(Parcel("stuck", 1)) for _ in range(12)]
    await start(post.jobs, Options(queues={"default": 2}, lease=5))
    await auntil(lambda: post.order, "the first that hangs")
    others = [await post.submit(Parcel(count=10)), await post.submit(Parcel("other", 2, count=10))]
    await post.ended(*others)
    assert Counter(post.order)["acme stuck"] == post.now["acme stuck"] == 1
    post.gate.set()
    await post.ended(*stuck)
    assert post.most["acme stuck"] == 1
    await post.jobs.close()


@pytest.mark.parametrize("first", ["keyed", "plain"])
async def test_neither_keyed_nor_plain_tasks_are_starved(url: str, start: Start, first: str) -> None:
    """One slot, and both kinds waiting by the dozen: they take turns."""
    post = Post(url)
    parcels = [Parcel("k", 100, count=12), Parcel(count=12)]
    jobs = [await post.submit(parcel) for parcel in (parcels if first == "keyed" else reversed(parcels))]
    await start(post.jobs, Options(queues={"default": 1}, lease=5))
    await post.ended(*jobs)
    half = Counter(post.order[:12])
    assert half["acme k"] >= 4
    assert half["acme "] >= 4
    await post.jobs.close()


async def test_b50_tenants_take_turns(url: str, start: Start) -> None:
    """A thousand of one tenant wait; the one that another submitted after them is among the first to start."""
    post = Post(url)
    big, small = Principal("big", "ann"), Principal("small", "bob")
    many = await post.jobs.submit_many([Submission(post.kind, Parcel("images", 4, count=100))] * 3, owner=big)
    one = await post.submit(Parcel("images", 4), small)
    await start(post.jobs, Options(queues={"default": 1}, lease=5))
    await post.ended(one, owner=small)
    place = post.order.index("small images")
    assert place <= 1
    for job in many:
        await post.jobs.cancel(job.id, principal=big)
    await post.jobs.close()


async def test_a_slot_that_is_freed_here_wakes_who_waits_for_it(url: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks by themselves are an hour apart: each task starts because the one before it ended."""
    post = Post(url)
    for name in ("POLL_MIN", "POLL_MAX", "_KEYED_EVERY"):
        monkeypatch.setattr(claimer, name, 3_600.0)
    job = await post.submit(Parcel("k", 1, count=5))
    failing = await post.submit(Parcel("j", 1, count=3, fails="never"))
    await start(post.jobs, Options(queues={"default": 4}, lease=30))
    await post.jobs.wait(job, principal=WHO, timeout=15)
    await auntil(lambda: post.order.count("acme j") == 3, "the others of a failing one")
    assert post.most["acme k"] == 1
    await post.jobs.cancel(failing, principal=WHO)
    await post.jobs.close()


async def test_a_provider_that_says_later_lets_its_key_rest(url: str, start: Start) -> None:
    post = Post(url)
    await start(post.jobs, Options(queues={"default": 4}, lease=5))
    failed = await post.submit(Parcel("k", 1, fails="later"))
    await auntil(lambda: query(url, "select n from {slot} where not_before is not null"), "the rest")
    waits, free = await post.submit(Parcel("k", 1)), await post.submit(Parcel("other", 1))
    await post.ended(failed, waits, free)
    (ended,) = query(url, "select ended_at from {attempt}")
    starts = query(url, "select job_id, started_at from {task}")
    began = {row["job_id"]: _ms(row["started_at"]) for row in starts}
    assert began[failed] >= _ms(ended["ended_at"]) + 400
    assert began[waits] >= _ms(ended["ended_at"]) + 400
    assert began[free] < began[waits]
    await post.jobs.close()


async def test_what_a_rest_is_worth(url: str, start: Start) -> None:
    """From an effect's call as from the handler; a day at most; none where the provider's answer is no time, or there is no key."""
    post = Post(url)
    await start(post.jobs, Options(queues={"default": 4}, lease=5))
    by_effect, garbage = await post.submit(Parcel("effect", 1, fails="effect")), await post.submit(Parcel("garbage", 1, fails="garbage"))
    plain = await post.submit(Parcel(fails="later"))
    long = await post.submit(Parcel("long", 1, fails="long"))
    longest = [long] + [await post.submit(Parcel(how, 1, fails=how)) for how in ASKED]
    await post.ended(by_effect, garbage, plain)
    for job in longest:
        await auntil(lambda job=job: query(url, "select 1 from {attempt} where job_id = ?", (job,)), "the failure that rests long")  # type: ignore[misc]
    rests = {row["key"]: row for row in query(url, "select key, not_before, freed_at from {slot}")}
    assert rests["garbage"]["not_before"] is None
    for key in ("long", *ASKED):
        assert _ms(rests[key]["not_before"]) - _ms(rests[key]["freed_at"]) == pytest.approx(DAY * 1000, abs=5), key
    (attempt,) = query(url, "select ended_at from {attempt} where job_id = ?", (by_effect,))
    (task,) = query(url, "select started_at from {task} where job_id = ?", (by_effect,))
    assert _ms(task["started_at"]) >= _ms(attempt["ended_at"]) + 200
    for job in longest:
        await post.jobs.cancel(job, principal=WHO)
    await post.jobs.close()


def _ms(value: object) -> float:
    """A time of either store, in milliseconds."""
    return value.timestamp() * 1000 if hasattr(value, "timestamp") else float(str(value))


async def test_without_keyed_tasks_they_are_asked_for_seldom(url: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain of tasks without keys pays for a look as often as the clock says, however many claims it makes."""
    monkeypatch.setattr(claimer, "_KEYED_EVERY", 3_600.0)
    post = Post(url)
    worker = await start(post.jobs, Options(queues={"default": 2}, lease=5))
    asked: Counter[str] = Counter()
    run = worker._store.run

    async def count(operation: Operation[object]) -> object:
        asked[operation.name] += 1
        return await run(operation)

    monkeypatch.setattr(worker._store, "run", count)
    await post.ended(await post.submit(Parcel(count=60)))
    assert asked["claim"] > 10
    assert asked["claim_keyed"] <= 3
    await post.jobs.close()
