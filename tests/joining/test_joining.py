"""The job is there if, and only if, the caller commits: through every object that `transaction=` takes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from joining.adapters import ADAPTERS, INSERT, Adapter
from joining.conftest import Order, Shop, application
from outlast import Contended, KeyReused, NotFound, QuotaExceeded, Submission, Unique, UniqueActive
from outlast.store.programs import retention
from outlast.store.sessions import calling
from outlast.worker.runtime import Worker
from worker.accounts import ANN


class Base(DeclarativeBase):
    pass


class Purchase(Base):
    __tablename__ = "purchase"
    name: Mapped[str] = mapped_column(primary_key=True)


Start = Callable[..., Awaitable[Worker]]
NOTHING = dict.fromkeys(("job", "job_input", "task", "queue_entry", "edge", "submission", "quota_job"), 0)


async def test_committed_both_are_there_and_a_worker_finds_them(adapter: Adapter, shop: Shop, start: Start) -> None:
    async with adapter.opened(shop.url) as given:
        await given.buy("book")
        handle = await given.submit(shop.jobs, shop.parcel, Order("book"), key="k")
        assert (handle.state, handle.replayed) == ("queued", False)
        assert shop.bought == []
        await given.commit()
    assert shop.bought == ["book"]
    await start(shop.jobs)
    job = await shop.jobs.wait(handle.id, principal=ANN, timeout=15)
    assert (job.outcome, shop.found) == ("succeeded", [("book", True)] * 2)


async def test_rolled_back_neither_is_there(adapter: Adapter, shop: Shop) -> None:
    async with adapter.opened(shop.url) as given:
        await given.buy("book")
        await given.submit(shop.jobs, shop.parcel, Order("book"), key="k")
        await given.submit_many(shop.jobs, [Submission(shop.counted, Order("a"), key="b"), Submission(shop.ship, Order("c"))])
        await given.rollback()
        assert (shop.bought, shop.rows()) == ([], NOTHING)
        # The object goes on as before, and so does the key.
        await given.buy("pen")
        handle = await given.submit(shop.jobs, shop.parcel, Order("pen"), key="k")
        await given.commit()
    assert (shop.bought, handle.replayed, shop.rows()["job"]) == (["pen"], False, 1)


async def test_nothing_is_sent_but_our_own_statements(adapter: Adapter, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    for caller in {*calling.CALLERS}:
        monkeypatch.setattr(caller, "execute", _noted(caller.execute, sent))
    async with adapter.opened(shop.url) as given:
        await given.buy("book")
        await given.submit(shop.jobs, shop.parcel, Order("book"), key="k")
        await given.submit(shop.jobs, shop.ship, Order("book"))
        await given.commit()
    words = {sql.split()[0] for sql in sent}
    assert words <= {"insert", "with", "select", "pragma"}  # on PostgreSQL the whole admission is one `with ... insert`
    assert sum(sql.startswith(("select", "pragma")) for sql in sent) <= 2  # where the connection is


def _noted(execute: Any, sent: list[str]) -> Any:
    def note(self: Any, sql: str, params: Any) -> Any:
        sent.append(sql.lstrip())
        return execute(self, sql, params)

    return note


async def test_a_repeat_in_a_second_transaction_gives_the_same_job(adapter: Adapter, shop: Shop) -> None:
    async with adapter.opened(shop.url) as given:
        first = await given.submit(shop.jobs, shop.ship, Order("book"), key="k")
        again = await given.submit(shop.jobs, shop.ship, Order("book"), key="k")  # in the same transaction
        await given.commit()
        other = await given.submit(shop.jobs, shop.ship, Order("book"), key="k")
        await given.commit()
    assert (again.id, again.replayed, other.id, other.replayed) == (first.id, True, first.id, True)
    assert (await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, key="k")).id == first.id


async def test_a_key_answers_for_a_job_that_has_ended_or_is_no_longer_kept(adapter: Adapter, shop: Shop) -> None:
    """The rule is that of every other submit: same request, same job and its true state; another request is refused."""
    first = await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, key="k")
    await shop.jobs.cancel(first.id, principal=ANN)
    async with adapter.opened(shop.url) as given:
        for purged in (False, True):
            if purged:
                await shop.jobs.store.run(retention.purge("acme", [first.id], horizon_ms=60_000, older_ms=0))
            await given.buy(f"book {purged}")
            handle = await given.submit(shop.jobs, shop.ship, Order("book"), key="k")
            assert (handle.id, handle.replayed, handle.state, handle.expired) == (first.id, True, "cancelled", purged)
            (many,) = await given.submit_many(shop.jobs, [Submission(shop.ship, Order("book"), key="k")])
            assert many == handle
            with pytest.raises(KeyReused):
                await given.submit(shop.jobs, shop.ship, Order("pen"), key="k")
            await given.commit()
        await shop.jobs.store.run(retention.drop_expired(10))
        shop.bank.do(f"update {'outlast_' if adapter.dialect == 'sqlite' else 'outlast.'}submission set expires_at = purged_at")
        assert not (await given.submit(shop.jobs, shop.ship, Order("book"), key="k")).replayed
        await given.commit()
    assert (shop.rows()["job"], shop.bought) == (1, ["book False", "book True"])


async def test_a_refusal_leaves_nothing_though_the_caller_goes_on(adapter: Adapter, shop: Shop) -> None:
    """The caller catches it and commits: its own row is there, of the refused jobs nothing is."""
    await shop.jobs.submit(shop.ship, Order("first"), owner=ANN, key="taken")
    await shop.jobs.submit(shop.ship, Order("first"), owner=ANN, unique=Unique("one", "reject"))
    before = shop.rows()
    async with adapter.opened(shop.url) as given:
        await given.buy("book")
        with pytest.raises(KeyReused):
            await given.submit(shop.jobs, shop.ship, Order("other"), key="taken")
        with pytest.raises(KeyReused):
            await given.submit_many(
                shop.jobs,
                [
                    Submission(shop.parcel, Order("new"), key="a"),
                    Submission(shop.ship, Order("new"), key="z", unique=Unique("one", "existing")),
                    Submission(shop.ship, Order("other"), key="taken"),
                ],
            )
        with pytest.raises(UniqueActive):
            await given.submit(shop.jobs, shop.ship, Order("new"), key="u", unique=Unique("one", "reject"))
        with pytest.raises(UniqueActive):
            await given.submit_many(
                shop.jobs,
                [
                    Submission(shop.parcel, Order("new")),
                    Submission(shop.counted, Order("new"), key="q"),
                    Submission(shop.ship, Order("new"), key="u", unique=Unique("one", "reject")),
                ],
            )
        await given.submit_many(shop.jobs, [Submission(shop.counted, Order(name)) for name in "ab"])
        with pytest.raises(QuotaExceeded):
            await given.submit(shop.jobs, shop.counted, Order("c"), key="q")
        await given.commit()
    added = {"job": 2, "job_input": 2, "task": 2, "queue_entry": 2, "edge": 0, "submission": 0, "quota_job": 2}
    assert shop.rows() == {name: count + added[name] for name, count in before.items()}
    assert shop.bought == ["book"]


async def test_the_active_job_is_given_and_not_held(adapter: Adapter, shop: Shop) -> None:
    """Its owner may cancel it while the caller's transaction is open, where the store has more than one writer."""
    active = await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, unique=Unique("one", "existing"))
    async with adapter.opened(shop.url) as given:
        handle = await given.submit(shop.jobs, shop.ship, Order("pen"), key="k", unique=Unique("one", "existing"))
        assert (handle.id, handle.replayed) == (active.id, True)
        if adapter.dialect == "postgresql":
            assert (await shop.jobs.cancel(active.id, principal=ANN)).state == "cancelled"
        await given.commit()
    assert (await shop.jobs.submit(shop.ship, Order("pen"), owner=ANN, key="k", unique=Unique("one", "existing"))).id == active.id


async def test_what_this_transaction_cannot_see_makes_it_begin_anew(adapter: Adapter, shop: Shop) -> None:
    """REPEATABLE READ, and on SQLite a deferred transaction that has read: the other one committed after the snapshot."""
    async with adapter.snapshot(shop.url) as given:
        if adapter.dialect == "sqlite":
            writer = sqlite3.connect(shop.url.removeprefix("sqlite:///"), isolation_level=None)
            await given.do("begin")
            await given.do("select * from purchase")
            writer.execute("begin immediate")
            writer.execute(INSERT.format("other"))
        else:
            await given.do("select * from purchase")
            await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, key="k")
        with pytest.raises(Contended) as raised:
            await given.submit(shop.jobs, shop.ship, Order("book"), key="k")
        assert raised.value.retryable
        await given.rollback()
        if adapter.dialect == "sqlite":
            writer.execute("rollback")
            writer.close()
        handle = await given.submit(shop.jobs, shop.ship, Order("book"), key="k")
        await given.commit()
        assert handle.replayed is (adapter.dialect == "postgresql")
    assert shop.rows()["job"] == 1


async def test_of_five_that_want_one_key_the_fifth_commits(adapter: Adapter, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first four roll back; whoever waited meanwhile is told of a job only once it has one."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # for all threads, whichever ends first
    told = []

    async def one(number: int) -> None:
        own = application(shop.url)  # a process of its own, but for the process
        try:
            await submitted(own, number)
        finally:
            await own.jobs.close()

    async def submitted(own: Shop, number: int) -> None:
        for _ in range(200):
            async with adapter.opened(shop.url) as given:
                try:
                    handle = await given.submit(own.jobs, own.ship, Order("book"), key="k")
                except Contended:
                    await given.rollback()
                    await asyncio.sleep(0.05)
                    continue
                if number < 4:
                    await asyncio.sleep(0.1)
                    await given.rollback()
                    return
                await given.commit()
                told.append(handle.id)
                return

    # Each in a thread: a blocking submit would hold up the loop that the others need to end on.
    await asyncio.gather(*(asyncio.to_thread(asyncio.run, one(number)) for number in range(5)))
    assert shop.rows()["job"] == 1
    assert [(await shop.jobs.list(principal=ANN)).items[0].id] == told


async def test_no_start_before_the_outer_commit(adapter: Adapter, shop: Shop, start: Start) -> None:
    """In a savepoint, with a worker that looks all the time."""
    await start(shop.jobs)
    async with adapter.opened(shop.url) as given:
        await given.buy("book")
        await given.do("savepoint inner_one")
        gone = await given.submit(shop.jobs, shop.ship, Order("gone"))
        await given.do("rollback to savepoint inner_one")
        await given.do("savepoint inner_two")
        handle = await given.submit(shop.jobs, shop.ship, Order("book"))
        await given.do("release savepoint inner_two")
        if adapter.dialect == "postgresql":
            await asyncio.sleep(0.2)
            assert shop.found == []
        await given.commit()
    assert (await shop.jobs.wait(handle.id, principal=ANN, timeout=15)).outcome == "succeeded"
    assert shop.found == [("book", True)]
    with pytest.raises(NotFound):
        await shop.jobs.get(gone.id, principal=ANN)


@pytest.mark.parametrize("adapter", [ADAPTERS["async-session-asyncpg"]], ids=["asyncpg"])
async def test_past_the_session_a_write_would_survive_its_rollback(adapter: Adapter, shop: Shop) -> None:
    """Why statements go through SQLAlchemy's connection: its asyncpg begins at the first of them, and not before."""
    async with adapter.opened(shop.url) as given:
        raw = await (await given.thing.connection()).get_raw_connection()
        await raw.driver_connection.execute(INSERT.format("past"))
        await given.rollback()
        assert shop.bought == ["past"]
        await given.submit(shop.jobs, shop.ship, Order("book"))
        await given.rollback()
    assert shop.rows() == NOTHING


@pytest.mark.parametrize("adapter", [ADAPTERS["session-psycopg"], ADAPTERS["session-sqlite"]], ids=["psycopg", "sqlite"])
async def test_what_a_session_has_noted_comes_first(adapter: Adapter, shop: Shop) -> None:
    """As with its own execute(); not where autoflush is off."""
    async with adapter.opened(shop.url) as given:
        flushes = []
        event.listen(given.thing, "before_flush", lambda *_: flushes.append(1))
        given.thing.add(Purchase(name="book"))
        await given.submit(shop.jobs, shop.ship, Order("book"))
        assert flushes == [1]
        given.thing.add(Purchase(name="pen"))
        with given.thing.no_autoflush:
            await given.submit(shop.jobs, shop.ship, Order("pen"))
        assert flushes == [1]
        await given.commit()
    assert shop.bought == ["book", "pen"]
