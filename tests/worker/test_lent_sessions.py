"""What is lent without session=: waiting for it fails nobody, and nothing waits for itself."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from outlast import Completion, Context, Outlast, SyncContext
from outlast.store.open import open_store
from outlast.store.programs import status
from outlast.worker.runtime import Options, Worker
from worker.accounts import ANN, Bank, Grant, attention, done

Start = Callable[..., Awaitable[Worker]]
ADD = "update account set credits = credits + 1 where name = 'ann'"
sqlite_only = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
postgres_only = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


async def awaited(found: Any) -> Any:
    return await found if hasattr(found, "__await__") else found


def waiting(jobs: Outlast) -> Any:
    """A task whose transaction waits for something while it is open."""

    @jobs.task(name="waiting", max_attempts=1)
    async def task(ctx: Context, how: Grant) -> Any:
        async def save(db: Any) -> int:
            await awaited(db.execute(ADD))
            await asyncio.sleep(0.4)
            return 1

        if how.account == "block":
            async with ctx.transaction() as tx:
                return await tx.complete(await save(tx.db))
        return ctx.commit(save)

    return task


@sqlite_only
async def test_transactions_that_wait_take_turns_and_leases_are_renewed_between_them(url: str, bank: Bank, start: Start) -> None:
    """Together they take longer than a lease; each attempt is the only one there is."""
    jobs = Outlast(url)
    task = waiting(jobs)

    @jobs.task(name="waiting_sync", max_attempts=1)
    def plain(ctx: SyncContext, how: Grant) -> Completion[int]:
        def save(db: Any) -> int:
            db.execute(ADD)
            time.sleep(0.4)
            return 1

        return ctx.commit(save)

    handles = [await jobs.submit(one, Grant(how), owner=ANN) for one, how in ((task, "block"), (task, "commit"), (plain, "")) * 2]
    await start(jobs, Options(lease=1.5))
    for handle in handles:
        assert (await done(jobs, handle.id)).outcome == "succeeded"
    assert bank.credits == {"ann": 6}
    await jobs.close()


@sqlite_only
async def test_a_writer_of_another_process_does_not_block_the_loop(url: str, bank: Bank, start: Start) -> None:
    """The other writer ends on this very loop."""
    jobs = Outlast(url)

    @jobs.task(max_attempts=1)
    async def late(ctx: Context, how: Grant) -> Completion[int]:
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=5)
        other.execute("begin immediate")
        asyncio.get_running_loop().call_later(0.2, other.close)
        async with ctx.transaction() as tx:
            tx.db.execute(ADD)
            return await tx.complete(1)

    await start(jobs)
    handle = await jobs.submit(late, Grant("ann"), owner=ANN)
    assert (await done(jobs, handle.id)).outcome == "succeeded"
    await jobs.close()


@postgres_only
async def test_as_many_sessions_are_lent_as_there_are_slots(url: str, bank: Bank, start: Start) -> None:
    """All slots are inside their transactions at once; the store's own work goes on beside them, and those that wait fail not."""
    jobs = Outlast(url)
    inside = 0
    full, go = asyncio.Event(), asyncio.Event()

    @jobs.task(name="holds", max_attempts=1)
    async def holds(ctx: Context, how: Grant) -> Completion[int]:
        async def save(db: Any) -> int:
            nonlocal inside
            inside += 1
            if inside == 8:
                full.set()
            await go.wait()
            return 1

        return ctx.commit(save)

    worker = await start(jobs)
    handles = [await jobs.submit(holds, Grant("ann"), owner=ANN) for _ in range(10)]
    async with asyncio.timeout(10):
        await full.wait()
        await worker._store.run(status.clock())
    go.set()
    for handle in handles:
        assert (await done(jobs, handle.id)).outcome == "succeeded"
    assert inside == 10
    await jobs.close()


@postgres_only
async def test_who_asks_for_one_more_waits(url: str, bank: Bank) -> None:
    store = open_store(url)
    store.lend_at_most(1)
    order: list[str] = []

    async def borrow(name: str) -> None:
        async with store.lend() as connection:
            order.append(name)
            await connection.execute("select 1")
            await asyncio.sleep(0.05)
            order.append(name)

    def borrow_sync(name: str) -> None:
        with store.lend_sync() as connection:
            order.append(name)
            connection.execute("select pg_sleep(0.05)")
            order.append(name)

    await asyncio.gather(*(borrow(name) for name in "ab"))
    await asyncio.gather(*(asyncio.to_thread(borrow_sync, name) for name in "cd"))
    assert [order[i] == order[i + 1] for i in range(0, 8, 2)] == [True] * 4
    await store.close()


async def one() -> int:
    return 1


async def never(_key_or_db: Any) -> int:
    raise AssertionError


async def write(ctx: Context, what: str) -> None:
    match what:
        case "step":
            await ctx.step("one", one)
        case "effect":
            await ctx.effect("one", never, idempotent=True)
        case "commit_step":
            await ctx.commit_step("one", never)
        case _:
            async with ctx.transaction() as nested:
                await nested.complete(1)


def write_sync(ctx: SyncContext, what: str) -> None:
    match what:
        case "step":
            ctx.step("one", lambda: 1)
        case "effect":
            ctx.effect("one", lambda _key: 1, idempotent=True)
        case "commit_step":
            ctx.commit_step("one", lambda _db: 1)
        case _:
            with ctx.transaction() as nested:
                nested.complete(1)


def writing(jobs: Outlast) -> dict[str, Any]:
    """Tasks of both colours that write for themselves in a block, or in a function that is given a session."""

    @jobs.task(name="inner", max_attempts=3)
    async def inner(ctx: Context, how: Grant) -> Any:
        async def saving(db: Any) -> int:
            await awaited(db.execute(ADD))
            await write(ctx, how.account.removeprefix("fn "))
            return 1

        if how.account.startswith("fn"):
            return ctx.commit(saving)
        async with ctx.transaction() as tx:
            return await tx.complete(await saving(tx.db))

    @jobs.task(name="inner_sync", max_attempts=3)
    def inner_sync(ctx: SyncContext, how: Grant) -> Any:
        def saving(db: Any) -> int:
            db.execute(ADD)
            write_sync(ctx, how.account.removeprefix("fn "))
            return 1

        if how.account.startswith("fn"):
            return ctx.commit(saving)
        with ctx.transaction() as tx:
            return tx.complete(saving(tx.db))

    return {"async": inner, "sync": inner_sync}


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_what_writes_for_itself_is_refused_inside(url: str, bank: Bank, start: Start, colour: str) -> None:
    jobs = Outlast(url)
    task = writing(jobs)[colour]
    await start(jobs)
    for how in ("step", "effect", "commit_step", "nested", "fn step", "fn nested"):
        handle = await jobs.submit(task, Grant(how), owner=ANN)
        job = await attention(jobs, handle.id)
        assert job.attention is not None
        assert (how, job.attention.code) == (how, "inside_transaction")
        assert (await jobs.tasks(handle.id, principal=ANN))[0].attempt == 1
    assert bank.credits == {"ann": 0}
    await jobs.close()


async def test_beside_and_after_a_transaction_all_is_allowed(url: str, bank: Bank, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task(max_attempts=1)
    async def beside(ctx: Context, how: Grant) -> Completion[int]:
        async def save(db: Any) -> int:
            await awaited(db.execute(ADD))
            return 1

        await asyncio.gather(ctx.commit_step("a", save), ctx.step("b", one))
        with suppress(ValueError):
            async with ctx.transaction():
                int("none")
        await ctx.step("c", one)
        return ctx.commit(save)

    await start(jobs)
    handle = await jobs.submit(beside, Grant("ann"), owner=ANN)
    assert (await done(jobs, handle.id)).outcome == "succeeded"
    assert bank.credits == {"ann": 2}
    await jobs.close()
