"""What a handler asks for, raises or cancels never stops the work of others without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from outlast import Context, Invalid, Outlast, Principal, Settings, Snooze, Stopped
from outlast.store.open import open_store
from outlast.worker.runtime import Exit, Options, Worker

WHO = Principal("acme", "ann")
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Wish:
    seconds: float = 0.0
    name: str = ""


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e12, 1e18, True, "60"])
def test_a_snooze_has_bounds(seconds: float) -> None:
    with pytest.raises(Invalid, match="ten years"):
        Snooze(seconds)


@pytest.mark.parametrize("name", ["retention", "attention_window", "lease", "sweep", "replay_horizon"])
@pytest.mark.parametrize("seconds", [0, -1, 1e18, float("nan"), "x"])
def test_settings_have_bounds(name: str, seconds: float) -> None:
    with pytest.raises(Invalid, match=name):
        Settings(**{name: seconds})


async def test_a_snooze_beyond_all_bounds_is_a_failure_of_that_task_alone(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task(max_attempts=1)
    async def sleep(ctx: Context, wish: Wish) -> None:
        raise Snooze(wish.seconds)

    @jobs.task
    async def work(ctx: Context, wish: Wish) -> int:
        return 1

    await start(jobs)
    bad = await jobs.submit(sleep, Wish(1e18), owner=WHO)
    good = await jobs.submit(work, Wish(), owner=WHO)
    assert (await jobs.wait(good.id, principal=WHO, timeout=15)).state == "completed"
    for _ in range(200):
        view = await jobs.get(bad.id, principal=WHO)
        if view.attention:
            break
        await asyncio.sleep(0.05)
    assert view.attention is not None
    assert view.attention.code == "invalid"
    await jobs.close()


async def test_a_handler_that_raises_stopped_by_itself_fails(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task(max_attempts=1)
    async def give_in(ctx: Context, wish: Wish) -> None:
        raise Stopped("cancelled")

    await start(jobs)
    handle = await jobs.submit(give_in, Wish(), owner=WHO)
    for _ in range(200):
        view = await jobs.get(handle.id, principal=WHO)
        if view.attention:
            break
        await asyncio.sleep(0.05)
    assert view.attention is not None
    assert view.attention.code == "error"
    await jobs.close()


@pytest.mark.parametrize("loop", ["claimer", "committer", "sweep", "watch", "listener"])
async def test_a_loop_that_somebody_cancels_ends_the_worker_with_an_error(url: str, loop: str) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def strike(ctx: Context, wish: Wish) -> None:
        for task in asyncio.all_tasks():
            if task.get_name() == f"outlast-{wish.name}":
                task.cancel()

    store = open_store(url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=2, grace=0.5))
    await jobs.submit(strike, Wish(name=loop), owner=WHO)
    assert await asyncio.wait_for(worker.run(), 15) is Exit.LOOP_DIED
    await store.close()
    await jobs.close()


async def test_an_answer_is_no_step(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def confirm(ctx: Context, wish: Wish) -> str:
        return await ctx.ask("sure", "Are you sure?", answer=str)

    await start(jobs)
    handle = await jobs.submit(confirm, Wish(), owner=WHO)
    for _ in range(200):
        view = await jobs.get(handle.id, principal=WHO)
        if view.attention:
            break
        await asyncio.sleep(0.05)
    assert view.attention is not None
    await jobs.act(handle.id, view.attention.id, action="answer", input="yes", principal=WHO)
    assert (await jobs.wait(handle.id, principal=WHO, timeout=15)).state == "completed"
    recovery = await jobs.recovery(handle.id, principal=WHO)
    assert recovery.steps == ()
    assert await jobs.result(handle.id, confirm, principal=WHO) == "yes"
    await jobs.close()


async def test_a_cancelled_job_does_not_count_what_never_ran(url: str) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def work(ctx: Context, wish: Wish) -> int:
        return 1

    handle = await jobs.submit(work, Wish(), owner=WHO)
    view = await jobs.cancel(handle.id, principal=WHO)
    assert (view.progress.done, view.progress.total) == (0, 1)
    await jobs.close()
