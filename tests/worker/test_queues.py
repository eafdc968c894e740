"""Which queues a worker serves, and how often it asks when there is nothing to do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from outlast import Context, Outlast, Plan, Principal
from outlast.store.program import Operation
from outlast.worker.claimer import MAX_QUEUES, Slots
from outlast.worker.runtime import Options, Worker

WHO = Principal("acme", "ann")
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Parcel:
    queue: str


def post(url: str) -> Outlast:
    jobs = Outlast(url)

    @jobs.task
    async def carry(ctx: Context, parcel: Parcel) -> str:
        return parcel.queue

    @jobs.kind("post")
    def send(plan: Plan[Parcel], parcel: Parcel) -> None:
        plan.task(carry, label="Carry", queue=parcel.queue)

    return jobs


async def test_a_queue_that_only_a_plan_names_is_served(url: str, start: Start) -> None:
    jobs = post(url)
    await start(jobs)
    handle = await jobs.submit(jobs.registry.kind("post"), Parcel("night-train"), owner=WHO)
    job = await jobs.wait(handle.id, principal=WHO, timeout=15)
    assert job.state == "completed"
    await jobs.close()


async def test_a_worker_of_named_queues_leaves_the_others(url: str, start: Start) -> None:
    jobs = post(url)
    await start(jobs, Options(queues={"day": 2}, lease=5))
    kind = jobs.registry.kind("post")
    other = await jobs.submit(kind, Parcel("night"), owner=WHO)
    mine = await jobs.submit(kind, Parcel("day"), owner=WHO)
    assert (await jobs.wait(mine.id, principal=WHO, timeout=15)).state == "completed"
    assert (await jobs.get(other.id, principal=WHO)).state == "queued"
    await jobs.close()


async def test_many_queues_are_all_served(url: str, start: Start) -> None:
    jobs = post(url)
    await start(jobs)
    kind = jobs.registry.kind("post")
    handles = [await jobs.submit(kind, Parcel(f"queue-{n}"), owner=WHO) for n in range(12)]
    for handle in handles:
        assert (await jobs.wait(handle.id, principal=WHO, timeout=15)).state == "completed"
    await jobs.close()


@pytest.mark.slow
async def test_an_idle_worker_asks_seldom_whatever_the_number_of_queues(url: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = post(url)
    worker = await start(jobs, Options(queues={f"queue-{n}": 2 for n in range(40)}))
    asked: Counter[str] = Counter()
    run = worker._store.run

    async def count(operation: Operation[object]) -> object:
        asked[operation.name] += 1
        return await run(operation)

    await asyncio.sleep(1.5)  # until the pauses have grown
    monkeypatch.setattr(worker._store, "run", count)
    await asyncio.sleep(3)
    statements = sum(asked.values()) + asked["wake"]  # a wake that finds nothing asks what is next
    assert statements < 3 * 20
    await jobs.close()


def test_slots_are_counted_by_queue_and_given_back_once() -> None:
    slots = Slots({"one": 2, "two": 1})
    slots.take("one")
    assert (slots.free("one"), slots.free("two")) == (1, 1)
    assert not slots.learn(["three"])
    assert "three" not in slots.limits


def test_what_is_learnt_has_a_limit() -> None:
    slots = Slots({"default": 8}, others=4)
    assert slots.learn([f"q{n}" for n in range(10_000)])
    assert len(slots.limits) == MAX_QUEUES
    assert slots.free("q1") == 4
