"""Business rows and completion in one transaction of the host's, on its own session type."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from outlast import Completion, Context, Outlast, Permanent, Plan, SyncContext
from outlast.store.open import open_store
from outlast.worker.runtime import Worker
from worker.accounts import ANN, Bank, Grant, alchemy_url, attention, done

Start = Callable[..., Awaitable[Worker]]
SET = "update account set credits = credits + {} where name = {}"


async def grant_alchemy_async(db: AsyncSession, account: str, credits: int) -> int:
    found = await db.execute(text("update account set credits = credits + :c where name = :n"), {"c": credits, "n": account})
    if found.rowcount == 0:  # type: ignore[attr-defined]
        raise Permanent("no_account", "The account is gone.")
    return credits


def grant_alchemy(db: Session, account: str, credits: int) -> int:
    found = db.execute(text("update account set credits = credits + :c where name = :n"), {"c": credits, "n": account})
    if found.rowcount == 0:  # type: ignore[attr-defined]
        raise Permanent("no_account", "The account is gone.")
    return credits


async def grant_driver_async(db: Any, account: str, credits: int) -> int:
    mark = "?" if isinstance(db, sqlite3.Connection) else "%s"
    found = db.execute(SET.format(mark, mark), (credits, account))
    cursor = found if isinstance(db, sqlite3.Connection) else await found
    if cursor.rowcount == 0:
        raise Permanent("no_account", "The account is gone.")
    return credits


def grant_driver(db: Any, account: str, credits: int) -> int:
    mark = "?" if isinstance(db, sqlite3.Connection) else "%s"
    cursor = db.execute(SET.format(mark, mark), (credits, account))
    if cursor.rowcount == 0:
        raise Permanent("no_account", "The account is gone.")
    return credits


@pytest.fixture(params=["driver, async", "driver, sync", "driver, def in async", "alchemy, async", "alchemy, sync"])
async def granting(request: pytest.FixtureRequest, url: str, bank: Bank) -> AsyncIterator[tuple[Outlast, Any]]:
    """An application whose task grants credits on one type of session."""
    way: str = request.param
    engines: list[Any] = []
    sessions: dict[str, Any] = {}
    if way == "alchemy, async":
        engines.append(create_async_engine(alchemy_url(url, asynchronous=True, driver="asyncpg")))
        sessions["session"] = async_sessionmaker(engines[0])
    elif way == "alchemy, sync":
        engines.append(
            create_engine(alchemy_url(url, asynchronous=False), connect_args={"timeout": 20} if url.startswith("sqlite") else {})
        )
        sessions["sync_session"] = sessionmaker(engines[0])
    jobs = Outlast(url, **sessions)

    if way in ("driver, async", "alchemy, async"):
        save: Any = grant_driver_async if way == "driver, async" else grant_alchemy_async

        @jobs.task(name="grant", max_attempts=2)
        async def grant(ctx: Context, grant: Grant) -> Completion[int]:
            return ctx.commit(save, grant.account, grant.credits)

    elif way == "driver, def in async":

        @jobs.task(name="grant", max_attempts=2)
        async def grant(ctx: Context, grant: Grant) -> Completion[int]:
            return ctx.commit(grant_driver, grant.account, grant.credits)

    else:
        save = grant_driver if way == "driver, sync" else grant_alchemy

        @jobs.task(name="grant", max_attempts=2)
        def grant(ctx: SyncContext, grant: Grant) -> Completion[int]:
            return ctx.commit(save, grant.account, grant.credits)

    yield jobs, grant
    await jobs.close()
    for engine in engines:
        found = engine.dispose()
        if found is not None:
            await found


async def test_rows_and_result_commit_together(granting: tuple[Outlast, Any], bank: Bank, start: Start) -> None:
    jobs, grant = granting
    await start(jobs)
    handles = [await jobs.submit(grant, Grant("ann", n), owner=ANN) for n in (1, 2, 3)]
    for handle in handles:
        job = await done(jobs, handle.id)
        assert (job.state, job.outcome) == ("completed", "succeeded")
    assert bank.credits == {"ann": 6}
    assert [await jobs.result(h.id, principal=ANN) for h in handles] == [1, 2, 3]


async def test_a_rule_that_fails_rolls_all_of_it_back_and_is_the_tasks_failure(
    granting: tuple[Outlast, Any], bank: Bank, start: Start
) -> None:
    jobs, grant = granting
    await start(jobs)
    handle = await jobs.submit(grant, Grant("gone"), owner=ANN)
    job = await attention(jobs, handle.id)
    assert job.attention is not None
    assert (job.attention.code, job.attention.message) == ("no_account", "The account is gone.")
    assert bank.credits == {"ann": 0}


async def test_a_stale_claim_makes_the_whole_transaction_fail(granting: tuple[Outlast, Any], bank: Bank, start: Start, url: str) -> None:
    """The job is cancelled after the handler has returned and before its transaction's last statement."""
    jobs, grant = granting
    handler = grant.handler
    if asyncio.iscoroutinefunction(handler):

        async def late(ctx: Context, value: Grant) -> Any:
            await jobs.cancel(ctx.job_id, principal=ANN)
            return await handler(ctx, value)

        grant.handler = late
    else:

        def late_sync(ctx: SyncContext, value: Grant) -> Any:
            jobs.sync.cancel(ctx.job_id, principal=ANN)
            return handler(ctx, value)

        grant.handler = late_sync
    await start(jobs)
    handle = await jobs.submit(grant, Grant("ann"), owner=ANN)
    async with asyncio.timeout(15):
        while (job := await jobs.get(handle.id, principal=ANN)).stopping or not job.final:  # noqa: ASYNC110 - the store is asked
            await asyncio.sleep(0.02)
    assert job.state == "cancelled"
    assert bank.credits == {"ann": 0}


async def test_children_run_after_it(url: str, bank: Bank, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def first(ctx: Context, grant: Grant) -> Completion[int]:
        return ctx.commit(grant_driver_async, grant.account, grant.credits).at("/accounts/ann")

    @jobs.task
    async def second(ctx: Context, grant: Grant) -> int:
        return 10 * await ctx.output(first)

    @jobs.kind("two")
    def two(plan: Plan[Grant], input: Grant) -> None:
        one = plan.task(first, label="One", usable=True)
        plan.task(second, label="Two", after=[one])

    await start(jobs)
    handle = await jobs.submit(two, Grant("ann", 4), owner=ANN)
    job = await done(jobs, handle.id)
    assert (job.state, job.usable_ref) == ("completed", "/accounts/ann")
    assert await jobs.result(handle.id, second, principal=ANN) == 40
    assert bank.credits == {"ann": 4}
    await jobs.close()


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_the_block_commits_what_was_completed_and_nothing_else(url: str, bank: Bank, start: Start, colour: str) -> None:
    jobs = Outlast(url)

    @jobs.task(name="block", max_attempts=1)
    async def block(ctx: Context, grant: Grant) -> Completion[int]:
        async with ctx.transaction() as tx:
            await grant_driver_async(tx.db, "ann", grant.credits)
            if grant.account == "forgets":
                return ctx.complete(0)
            if grant.account == "raises":
                raise Permanent("no", "No.")
            return await tx.complete(grant.credits)

    @jobs.task(name="block_sync", max_attempts=1)
    def block_sync(ctx: SyncContext, grant: Grant) -> Completion[int]:
        with ctx.transaction() as tx:
            grant_driver(tx.db, "ann", grant.credits)
            if grant.account == "forgets":
                return ctx.complete(0)
            if grant.account == "raises":
                raise Permanent("no", "No.")
            return tx.complete(grant.credits)

    task: Any = block if colour == "async" else block_sync
    await start(jobs)
    handle = await jobs.submit(task, Grant("ann", 5), owner=ANN)
    assert (await done(jobs, handle.id)).state == "completed"
    assert await jobs.result(handle.id, principal=ANN) == 5
    assert bank.credits == {"ann": 5}
    for account, code in (("forgets", "completion_missing"), ("raises", "no")):
        handle = await jobs.submit(task, Grant(account, 7), owner=ANN)
        job = await attention(jobs, handle.id)
        assert job.attention is not None
        assert job.attention.code == code
    assert bank.credits == {"ann": 5}
    await jobs.close()


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_a_steps_rows_are_written_once(url: str, bank: Bank, start: Start, colour: str) -> None:
    """The attempt fails after its steps; the next one reuses them."""
    jobs = Outlast(url)
    runs: list[int] = []

    @jobs.task(name="chunks")
    async def chunks(ctx: Context, grant: Grant) -> int:
        total = 0
        for n in range(3):
            total += await ctx.commit_step(f"chunk {n}", grant_driver_async, "ann", n + 1)
        runs.append(ctx.attempt)
        if ctx.attempt == 1:
            raise RuntimeError
        return total

    @jobs.task(name="chunks_sync")
    def chunks_sync(ctx: SyncContext, grant: Grant) -> int:
        total = 0
        for n in range(3):
            total += ctx.commit_step(f"chunk {n}", grant_driver, "ann", n + 1)
        runs.append(ctx.attempt)
        if ctx.attempt == 1:
            raise RuntimeError
        return total

    await start(jobs)
    handle = await jobs.submit(chunks if colour == "async" else chunks_sync, Grant("ann"), owner=ANN)
    assert (await done(jobs, handle.id)).state == "completed"
    assert runs == [1, 2]
    assert bank.credits == {"ann": 6}
    assert await jobs.result(handle.id, principal=ANN) == 6
    await jobs.close()


def test_what_is_no_session_factory_is_refused() -> None:
    with pytest.raises(Exception, match="sessionmaker"):
        Outlast("sqlite:///x.db", session=AsyncSession())  # type: ignore[arg-type]


async def test_a_session_of_another_kind_is_refused_in_words(url: str, bank: Bank, start: Start) -> None:
    @asynccontextmanager
    async def odd() -> AsyncIterator[object]:
        yield object()

    jobs = Outlast(url, session=odd)

    @jobs.task(max_attempts=1)
    async def grant(ctx: Context, grant: Grant) -> Completion[int]:
        return ctx.commit(grant_driver_async, "ann", 1)

    await start(jobs)
    handle = await jobs.submit(grant, Grant("ann"), owner=ANN)
    job = await attention(jobs, handle.id)
    assert job.attention is not None
    assert "SQLAlchemy session" in job.attention.message
    await jobs.close()


def test_stores_lend_what_their_driver_makes(url: str) -> None:
    store = open_store(url)
    with store.lend_sync() as connection:
        assert isinstance(connection, sqlite3.Connection | psycopg.Connection)
    store.close_sync()


async def test_a_job_that_follows_is_there_if_and_only_if_the_completion_is(url: str, bank: Bank, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def mail(ctx: Context, grant: Grant) -> str:
        return grant.account

    def save(db: Any, account: str) -> str:
        follower = jobs.sync.submit(mail, Grant(account), owner=ANN, key=f"mail-{account}", transaction=db)
        grant_driver(db, account, 1)
        return follower.id

    @jobs.task(name="grant", max_attempts=2)
    def grant(ctx: SyncContext, grant: Grant) -> Completion[str]:
        return ctx.commit(save, grant.account)

    @jobs.task(name="block", max_attempts=2)
    def block(ctx: SyncContext, grant: Grant) -> Completion[str]:
        with ctx.transaction() as tx:
            return tx.complete(save(tx.db, grant.account))

    await start(jobs)
    for task in (grant, block):
        refused = await jobs.submit(task, Grant("gone"), owner=ANN)
        await attention(jobs, refused.id)
        assert [job.kind for job in (await jobs.list(principal=ANN)).items if job.kind == "mail"] == []
    done_ones = [await jobs.submit(task, Grant("ann"), owner=ANN) for task in (grant, block)]
    for one in done_ones:
        assert (await done(jobs, one.id)).outcome == "succeeded"
    (follower,) = [job for job in (await jobs.list(principal=ANN)).items if job.kind == "mail"]  # one key, one job
    assert (await done(jobs, follower.id)).outcome == "succeeded"
    assert [await jobs.result(one.id, principal=ANN) for one in done_ones] == [follower.id] * 2
    assert bank.credits == {"ann": 2}
    await jobs.close()
