"""Which sessions are taken, which are refused, and with which words."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from outlast import Completion, Context, Invalid, Outlast, SyncContext
from outlast.store.open import migrate
from outlast.worker.runtime import Worker
from servers.postgres import PostgresServer
from worker.accounts import ANN, TABLE, Bank, Grant, alchemy_url, attention, done

Start = Callable[..., Awaitable[Worker]]
ADD = "update account set credits = credits + 1 where name = 'ann'"


async def awaited(found: Any) -> Any:
    return await found if hasattr(found, "__await__") else found


def sql(db: Any, statement: str) -> Any:
    return db.execute(text(statement) if type(db).__module__.startswith("sqlalchemy") else statement)


def application(url: str, runs: list[str], **sessions: Any) -> tuple[Outlast, Any, Any]:
    """Tasks of both colours that add one credit, by commit or in a block."""
    jobs = Outlast(url, **sessions)

    async def save(db: Any) -> int:
        runs.append("async")
        await awaited(sql(db, ADD))
        return 1

    def save_sync(db: Any) -> int:
        runs.append("sync")
        sql(db, ADD)
        return 1

    @jobs.task(name="coloured", max_attempts=3)
    async def coloured(ctx: Context, how: Grant) -> Any:
        if how.account == "block":
            async with ctx.transaction() as tx:
                await save(tx.db)
                return await tx.complete(1)
        return ctx.commit(save)

    @jobs.task(name="plain", max_attempts=3)
    def plain(ctx: SyncContext, how: Grant) -> Any:
        if how.account == "block":
            with ctx.transaction() as tx:
                save_sync(tx.db)
                return tx.complete(1)
        return ctx.commit(save_sync)

    return jobs, coloured, plain


async def refused(jobs: Outlast, task: Any, how: str = "commit") -> tuple[str, str]:
    """Code and words of a job that failed at its first attempt."""
    handle = await jobs.submit(task, Grant(how), owner=ANN)
    job = await attention(jobs, handle.id)
    assert job.attention is not None
    assert (await jobs.tasks(handle.id, principal=ANN))[0].attempt == 1
    return job.attention.code, job.attention.message


async def test_all_of_sqlalchemys_kinds_are_sessions(url: str, bank: Bank, start: Start) -> None:
    """Sessions and connections, in both colours, by commit and in a block."""
    engine = create_engine(alchemy_url(url, asynchronous=False))
    coloured_engine = create_async_engine(alchemy_url(url, asynchronous=True))
    for session, sync_session in (
        (async_sessionmaker(coloured_engine), sessionmaker(engine)),
        (coloured_engine.connect, engine.connect),
        (async_sessionmaker(coloured_engine).begin, sessionmaker(engine).begin),
    ):
        jobs, coloured, plain = application(url, [], session=session, sync_session=sync_session)
        worker = await start(jobs)
        before = bank.credits["ann"]
        for task in (coloured, plain):
            for how in ("commit", "block"):
                handle = await jobs.submit(task, Grant(how), owner=ANN)
                assert (await done(jobs, handle.id)).outcome == "succeeded"
        assert bank.credits["ann"] == before + 4
        worker.stop()
        await jobs.close()
    engine.dispose()
    await coloured_engine.dispose()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_session_that_cannot_begin_is_given_back(url: str, bank: Bank, start: Start) -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def odd() -> AsyncIterator[object]:
        entered.append("opened")
        try:
            yield object()
        finally:
            entered.append("given back")

    jobs, coloured, _ = application(url, [], session=odd)
    await start(jobs)
    for how in ("block", "commit"):
        assert (await refused(jobs, coloured, how))[0] == "session_invalid"
        assert entered == ["opened", "given back"]
        entered.clear()
    await jobs.close()


async def test_autocommit_of_an_engine_is_refused_before_the_function_runs(url: str, bank: Bank, start: Start) -> None:
    """On SQLite the transaction is begun in words, and holds in spite of it."""
    engine = create_engine(alchemy_url(url, asynchronous=False), isolation_level="AUTOCOMMIT")
    coloured_engine = create_async_engine(alchemy_url(url, asynchronous=True), isolation_level="AUTOCOMMIT")
    runs: list[str] = []
    jobs, coloured, plain = application(url, runs, session=async_sessionmaker(coloured_engine), sync_session=sessionmaker(engine))

    @jobs.task(name="fails", max_attempts=1)
    def fails(ctx: SyncContext, how: Grant) -> Completion[int]:
        def save(db: Session) -> int:
            db.execute(text(ADD))
            raise RuntimeError

        return ctx.commit(save)

    await start(jobs)
    if url.startswith("postgresql"):
        for task in (coloured, plain):
            code, words = await refused(jobs, task)
            assert code == "session_invalid"
            assert "AUTOCOMMIT" in words
        assert runs == []
    else:
        await refused(jobs, fails)
        assert bank.credits == {"ann": 0}
        for task in (coloured, plain):
            assert (await done(jobs, (await jobs.submit(task, Grant("commit"), owner=ANN)).id)).outcome == "succeeded"
        assert bank.credits == {"ann": 2}
    await jobs.close()
    engine.dispose()
    await coloured_engine.dispose()


@pytest.fixture
def other(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Another database of the same kind."""
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'staging.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create_database(f"staging_{url.rpartition('/')[2]}")


@pytest.mark.parametrize("migrated", [True, False])
async def test_a_session_on_another_database_is_told_so(url: str, other: str, bank: Bank, start: Start, migrated: bool) -> None:
    if migrated:
        migrate(other)
    there = Bank(other)
    there.do(TABLE)
    there.do("insert into account values ('ann', 0)")
    engine = create_engine(alchemy_url(other, asynchronous=False), poolclass=NullPool)
    coloured_engine = create_async_engine(alchemy_url(other, asynchronous=True), poolclass=NullPool)
    runs: list[str] = []
    jobs, coloured, plain = application(url, runs, session=async_sessionmaker(coloured_engine), sync_session=sessionmaker(engine))
    await start(jobs)
    for task in (coloured, plain):
        for how in ("commit", "block"):
            code, words = await refused(jobs, task, how)
            assert code == "session_elsewhere"
            assert "another database" in words
    assert runs == ["async", "async", "sync", "sync"]
    assert there.credits == bank.credits == {"ann": 0}
    await jobs.close()


async def test_what_a_factory_makes_is_judged_at_the_first_attempt(url: str, bank: Bank, start: Start) -> None:
    @contextmanager
    def piped() -> Iterator[Any]:
        with psycopg.connect(url) as connection, connection.pipeline():
            yield connection

    @contextmanager
    def cursor() -> Iterator[Any]:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            yield connection.cursor()

    @contextmanager
    def pg_cursor() -> Iterator[Any]:
        with psycopg.connect(url) as connection, connection.cursor() as one:
            yield one

    async def later() -> Any:
        raise AssertionError

    class Calls:
        def __call__(self) -> Any:
            return later()

    postgres = url.startswith("postgresql")
    wrong: list[tuple[str, Any, str]] = [
        ("sync_session", lambda: None, "returned a"),
        ("session", lambda: None, "returned a"),
        ("session", Calls(), "a coroutine"),
        ("sync_session", AsyncSession, "returned a"),
        ("sync_session", pg_cursor if postgres else cursor, "Cursor"),
    ]
    if postgres:
        wrong.append(("sync_session", piped, "pipeline"))
    else:
        wrong.append(("sync_session", lambda: opened(url), "transaction open"))
    for name, factory, words in wrong:
        jobs, coloured, plain = application(url, runs := [], **{name: factory})
        worker = await start(jobs)
        code, said = await refused(jobs, coloured if name == "session" else plain)
        assert (words, code) == (words, "session_invalid")
        assert words in said
        assert runs == []
        worker.stop()
        await jobs.close()


def opened(url: str) -> Any:
    """A connection whose transaction is open already."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("begin")
    return closing(connection)


async def test_a_factory_that_can_be_seen_to_be_wrong_is_refused_at_once() -> None:
    async def later() -> Any: ...

    def forgotten() -> Iterator[Any]:
        yield

    @contextmanager
    def plain() -> Iterator[Any]:
        yield

    @asynccontextmanager
    async def coloured() -> AsyncIterator[Any]:
        yield

    connection = sqlite3.connect(":memory:")
    for given, words in (
        ({"session": later}, "async def that returns"),
        ({"sync_session": later}, "async def that returns"),
        ({"sync_session": forgotten}, "@contextmanager"),
        ({"session": plain}, "for sync_session="),
        ({"sync_session": coloured}, "for session="),
        ({"sync_session": async_sessionmaker()}, "for session="),
        ({"session": sessionmaker()}, "for sync_session="),
        ({"sync_session": connection}, "sessionmaker"),
    ):
        with pytest.raises(Invalid, match=words):
            Outlast("sqlite:///x.db", **given)  # type: ignore[arg-type]
    connection.close()
    Outlast("sqlite:///x.db", session=sessionmaker(class_=AsyncSession))  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_coroutine_that_nobody_awaits_is_told_so(url: str, bank: Bank, start: Start) -> None:
    jobs = Outlast(url)

    async def save(db: Any, credits: int) -> int:
        raise AssertionError

    @jobs.task(max_attempts=3)
    async def wraps(ctx: Context, how: Grant) -> Any:
        if how.account == "step":
            return await ctx.commit_step("one", lambda db: save(db, 1))
        if how.account == "awaited":
            return await ctx.commit(save, 1)  # type: ignore[misc]
        return ctx.commit(lambda db: save(db, 1))

    await start(jobs)
    for how, code in (("commit", "transaction_misused"), ("step", "transaction_misused"), ("awaited", "completion_awaited")):
        found, words = await refused(jobs, wraps, how)
        assert (how, found) == (how, code)
        assert "ctx.commit(" in words
    await jobs.close()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_beginning_once_more_is_told_so(url: str, bank: Bank, start: Start, colour: str) -> None:
    engine = create_engine(alchemy_url(url, asynchronous=False))
    coloured_engine = create_async_engine(alchemy_url(url, asynchronous=True))
    jobs = Outlast(url, session=async_sessionmaker(coloured_engine), sync_session=sessionmaker(engine))

    async def begins(db: AsyncSession) -> int:
        async with db.begin():
            return 1

    def begins_sync(db: Session) -> int:
        with db.begin():
            return 1

    @jobs.task(max_attempts=3)
    async def again(ctx: Context, how: Grant) -> Any:
        if how.account == "block":
            async with ctx.transaction() as tx:
                return await tx.complete(await begins(tx.db))
        return ctx.commit(begins if colour == "async" else begins_sync)

    await start(jobs)
    for how in ("commit", "block"):
        code, words = await refused(jobs, again, how)
        assert code == "transaction_misused"
        assert "Outlast commits it" in words
    await jobs.close()
    engine.dispose()
    await coloured_engine.dispose()


async def test_the_recipe_for_savepoints_on_sqlite_works(tmp_path: Path, start: Start) -> None:
    """SQLAlchemy's own: no implicit BEGIN of the driver's, an explicit one of the engine's."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    bank = Bank(url)
    bank.do(TABLE)
    bank.do("insert into account values ('ann', 0)")
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def no_begin(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("begin")

    jobs, _, plain = application(url, [], sync_session=sessionmaker(engine))
    await start(jobs)
    handles = [await jobs.submit(plain, Grant(how), owner=ANN) for how in ("commit", "block", "commit", "block")]
    await asyncio.gather(*(done(jobs, handle.id) for handle in handles))
    assert bank.credits == {"ann": 4}
    await jobs.close()
    engine.dispose()
