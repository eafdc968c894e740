"""A function that ends its transaction by itself is told so, and is never run again for it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from outlast import Completion, Context, Outlast, Permanent, SyncContext
from outlast.worker.runtime import Worker
from worker.accounts import ANN, Bank, Grant, alchemy_url, attention

Start = Callable[..., Awaitable[Worker]]
INSERT = "insert into account values ('{}', 1)"
WAYS = ["commit", "statement", "rollback", "with", "commit, then more", "commit, then fail", "commit, then conflict"]
KEPT = {"commit", "statement", "with", "commit, then more", "commit, then fail", "commit, then conflict"}
BOTH = ("driver, async", "driver, sync", "own driver, sync", "session, async", "session, sync")
KINDS = [
    *((store, kind) for store in ("sqlite", "postgresql") for kind in BOTH),
    ("sqlite", "connection, async"),
    ("sqlite", "connection, sync"),
    ("postgresql", "session, asyncpg, async"),
    ("postgresql", "connection, asyncpg, async"),
]


async def awaited(found: Any) -> Any:
    return await found if hasattr(found, "__await__") else found


def conflict(db: Any) -> Exception:
    if type(db).__module__.startswith("psycopg"):
        return psycopg.errors.SerializationFailure()
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


def sql(db: Any, statement: str) -> Any:
    return db.execute(text(statement) if type(db).__module__.startswith("sqlalchemy") else statement)


class Misuse:
    """The functions that do it, and how often they ran."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def plain(self, db: Any, how: str) -> int:
        self.runs.append(how)
        if how == "with":
            with db:
                sql(db, INSERT.format(how))
                if type(db).__module__.startswith("sqlalchemy"):
                    db.commit()
            return 1
        sql(db, INSERT.format(how))
        if how == "statement":
            sql(db, "commit")
        elif how == "rollback":
            db.rollback()
        else:
            db.commit()
        self.after(db, how)
        if how == "commit, then more":
            sql(db, INSERT.format("more"))
        return 1

    async def coloured(self, db: Any, how: str) -> int:
        self.runs.append(how)
        if how == "with" and hasattr(db, "get_raw_connection"):  # which is in its own block already
            await sql(db, INSERT.format(how))
            await db.commit()
            await db.close()
            return 1
        if how == "with" and not isinstance(db, sqlite3.Connection):
            async with db:
                await sql(db, INSERT.format(how))
                if type(db).__module__.startswith("sqlalchemy"):
                    await db.commit()
            return 1
        await awaited(sql(db, INSERT.format(how)))
        if how == "statement":
            await awaited(sql(db, "commit"))
        elif how == "rollback":
            await awaited(db.rollback())
        else:
            await awaited(db.commit())
        self.after(db, how)
        if how == "commit, then more":
            await awaited(sql(db, INSERT.format("more")))
        return 1

    @staticmethod
    def after(db: Any, how: str) -> None:
        if how == "commit, then fail":
            raise Permanent("no", "No.")
        if how == "commit, then conflict":
            raise conflict(db)


@pytest.fixture
async def misusing(request: pytest.FixtureRequest, url: str, bank: Bank) -> AsyncIterator[tuple[Outlast, Any, Misuse]]:
    kind: str = request.param
    engine: Any = None
    given: dict[str, Any] = {}
    if kind == "own driver, sync":
        path = url.removeprefix("sqlite:///")
        given["sync_session"] = lambda: closing(sqlite3.connect(path, timeout=20)) if "sqlite" in url else psycopg.connect(url)
    elif not kind.startswith("driver"):
        if kind.endswith("async"):
            engine = create_async_engine(alchemy_url(url, asynchronous=True, driver="asyncpg" if "asyncpg" in kind else "psycopg"))
            given["session"] = engine.connect if kind.startswith("connection") else async_sessionmaker(engine)
        else:
            engine = create_engine(alchemy_url(url, asynchronous=False))
            given["sync_session"] = engine.connect if kind.startswith("connection") else sessionmaker(engine)
    jobs = Outlast(url, **given)
    misuse = Misuse()
    task: Any
    if kind.endswith("async"):

        @jobs.task(name="misuse", max_attempts=3)
        async def task(ctx: Context, how: Grant) -> Completion[int]:
            return ctx.commit(misuse.coloured, how.account)

    else:

        @jobs.task(name="misuse", max_attempts=3)
        def task(ctx: SyncContext, how: Grant) -> Completion[int]:
            return ctx.commit(misuse.plain, how.account)

    yield jobs, task, misuse
    await jobs.close()
    if engine is not None:
        await awaited(engine.dispose())


@pytest.mark.parametrize(("url", "misusing"), KINDS, indirect=True)
async def test_a_function_that_ends_its_transaction_runs_once(misusing: tuple[Outlast, Any, Misuse], bank: Bank, start: Start) -> None:
    jobs, task, misuse = misusing
    await start(jobs)
    handles = {way: await jobs.submit(task, Grant(way), owner=ANN) for way in WAYS}
    for way, handle in handles.items():
        job = await attention(jobs, handle.id)
        assert job.attention is not None
        assert (way, job.attention.code) == (way, "transaction_ended")
        assert "Leave the commit to Outlast" in job.attention.message
        assert (await jobs.tasks(handle.id, principal=ANN))[0].attempt == 1
    assert sorted(misuse.runs) == sorted(WAYS)
    assert set(bank.credits) - {"ann", "more"} == KEPT  # a lent connection that was committed is in autocommit


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_steps_and_blocks_are_told_the_same(url: str, bank: Bank, start: Start, colour: str) -> None:
    jobs = Outlast(url)
    misuse = Misuse()

    @jobs.task(name="ends", max_attempts=3)
    async def ends(ctx: Context, how: Grant) -> Any:
        if how.account == "step":
            return await ctx.commit_step("one", misuse.coloured, "commit")
        async with ctx.transaction() as tx:
            await misuse.coloured(tx.db, "rollback")
            return await tx.complete(1)

    @jobs.task(name="ends_sync", max_attempts=3)
    def ends_sync(ctx: SyncContext, how: Grant) -> Any:
        if how.account == "step":
            return ctx.commit_step("one", misuse.plain, "commit")
        with ctx.transaction() as tx:
            misuse.plain(tx.db, "rollback")
            return tx.complete(1)

    task: Any = ends if colour == "async" else ends_sync
    await start(jobs)
    for how in ("step", "block"):
        handle = await jobs.submit(task, Grant(how), owner=ANN)
        job = await attention(jobs, handle.id)
        assert job.attention is not None
        assert (how, job.attention.code) == (how, "transaction_ended")
    assert misuse.runs == ["commit", "rollback"]
    await jobs.close()


async def test_savepoints_of_the_functions_own_are_no_end(url: str, bank: Bank, start: Start) -> None:
    """And a script, which sqlite3 commits before it runs, is one."""
    jobs = Outlast(url)

    @jobs.task(max_attempts=1)
    def nested(ctx: SyncContext, how: Grant) -> Completion[int]:
        def save(db: Any) -> int:
            if how.account == "script":
                db.executescript(INSERT.format("script"))
            elif isinstance(db, psycopg.Connection):
                with db.transaction():
                    db.execute(INSERT.format("inner"))
            else:
                db.execute("savepoint inner_one")
                db.execute(INSERT.format("inner"))
                db.execute("release savepoint inner_one")
            return 1

        return ctx.commit(save)

    await start(jobs)
    handle = await jobs.submit(nested, Grant("savepoint"), owner=ANN)
    assert (await jobs.wait(handle.id, principal=ANN, timeout=15)).outcome == "succeeded"
    assert bank.credits == {"ann": 0, "inner": 1}
    if url.startswith("sqlite"):
        job = await attention(jobs, (await jobs.submit(nested, Grant("script"), owner=ANN)).id)
        assert job.attention is not None
        assert job.attention.code == "transaction_ended"
    await jobs.close()
