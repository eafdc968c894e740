"""A completion counts only with the transaction that it belongs to."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from outlast import Completion, Context, Outlast, SyncContext
from outlast.worker.runtime import Worker
from worker.accounts import ANN, Bank, Grant, attention, done

Start = Callable[..., Awaitable[Worker]]
ADD = "update account set credits = credits + 1 where name = 'ann'"


async def awaited(found: Any) -> Any:
    return await found if asyncio.iscoroutine(found) else found


async def spoil(db: Any, how: str) -> None:
    if how == "rolled back by hand":
        await awaited(db.execute("rollback"))
    elif how == "commit fails":
        await awaited(db.execute("insert into child values (99)"))
    else:
        int("none")


def spoil_sync(db: Any, how: str) -> None:
    if how == "rolled back by hand":
        db.execute("rollback")
    elif how == "commit fails":
        db.execute("insert into child values (99)")
    else:
        int("none")


def registered(jobs: Outlast, colour: str) -> Any:
    """A task that spoils its own block in the way that its input names, and hands back the completion all the same."""

    @jobs.task(name="spoilt", max_attempts=3)
    async def spoilt(ctx: Context, how: Grant) -> Any:
        made: Any = None
        if how.account == "left open":
            tx: Any = await ctx.transaction().__aenter__()
            await awaited(tx.db.execute(ADD))
            return await tx.complete(7)
        with suppress(Exception):
            async with ctx.transaction() as tx:
                await awaited(tx.db.execute(ADD))
                made = await tx.complete(7)
                await spoil(tx.db, how.account)
        return 8 if how.account == "another value" else made

    @jobs.task(name="spoilt_sync", max_attempts=3)
    def spoilt_sync(ctx: SyncContext, how: Grant) -> Any:
        made: Any = None
        if how.account == "left open":
            tx: Any = ctx.transaction().__enter__()
            tx.db.execute(ADD)
            return tx.complete(7)
        with suppress(Exception), ctx.transaction() as tx:
            tx.db.execute(ADD)
            made = tx.complete(7)
            spoil_sync(tx.db, how.account)
        return 8 if how.account == "another value" else made

    return spoilt if colour == "async" else spoilt_sync


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_a_completion_whose_block_was_not_committed_is_void(url: str, bank: Bank, start: Start, colour: str) -> None:
    def strict() -> Any:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=20)
        connection.execute("pragma foreign_keys = on")
        return closing(connection)

    postgres = url.startswith("postgresql")
    jobs = Outlast(url) if postgres or colour == "async" else Outlast(url, sync_session=strict)
    bank.do("create table parent (id integer primary key)")
    bank.do("create table child (id integer references parent (id) deferrable initially deferred)")
    task = registered(jobs, colour)
    await start(jobs)
    ways = ["raises", "rolled back by hand", "left open"]
    if postgres or colour == "sync":
        ways.append("commit fails")
    for way in ways:
        handle = await jobs.submit(task, Grant(way), owner=ANN)
        job = await attention(jobs, handle.id)
        assert job.attention is not None
        assert (way, job.attention.code) == (way, "completion_dropped")
        assert (await jobs.tasks(handle.id, principal=ANN))[0].attempt == 1
        assert bank.credits == {"ann": 0}
    handle = await jobs.submit(task, Grant("another value"), owner=ANN)
    assert (await done(jobs, handle.id)).outcome == "succeeded"
    assert await jobs.result(handle.id, principal=ANN) == 8
    assert bank.credits == {"ann": 0}
    await jobs.close()


async def test_an_error_swallowed_after_the_completion_is_no_success(url: str, bank: Bank, start: Start) -> None:
    """PostgreSQL answers the COMMIT of a failed transaction with a rollback, and no error."""
    jobs = Outlast(url)

    @jobs.task(max_attempts=1)
    async def swallows(ctx: Context, how: Grant) -> Completion[int]:
        async with ctx.transaction() as tx:
            await awaited(tx.db.execute(ADD))
            made = await tx.complete(7)
            with suppress(psycopg.Error, sqlite3.Error):
                await awaited(tx.db.execute("select 1 from nowhere"))
            return made

    await start(jobs)
    handle = await jobs.submit(swallows, Grant("ann"), owner=ANN)
    if url.startswith("sqlite"):  # where an error leaves the transaction whole
        await done(jobs, handle.id)
        assert bank.credits == {"ann": 1}
    else:
        await attention(jobs, handle.id)
        assert bank.credits == {"ann": 0}
    await jobs.close()
