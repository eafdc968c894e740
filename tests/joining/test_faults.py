"""A submit that ends in the middle, by a fault or because nobody waits for it any more: the caller may go on and commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from joining.adapters import ADAPTERS, Adapter
from joining.conftest import Order, Shop
from joining.test_joining import NOTHING
from outlast import OutlastError, StoreUnavailable, Unique
from outlast.store.sessions.driver_callers import AsyncPsycopgCaller, SqliteCaller
from outlast.store.sessions.sqlalchemy_callers import AsyncAlchemyCaller
from worker.accounts import ANN

MOST = 30


class _Full(sqlite3.OperationalError):
    sqlite_errorcode = sqlite3.SQLITE_FULL


def _failing_at(place: int, execute: Any, error: Callable[[], BaseException], reached: list[int]) -> Any:
    """Fails once, after the statement at that place was executed."""

    def fail(self: Any, sql: str, params: Any) -> Any:
        rows = execute(self, sql, params)
        reached.append(1)
        if len(reached) == place:
            raise error()
        return rows

    return fail


@pytest.mark.parametrize("adapter", [ADAPTERS["sqlite3"]], ids=["sqlite3"])
@pytest.mark.parametrize("what", ["parcel", "unique", "quota"])
async def test_a_fault_at_any_statement_leaves_nothing_of_the_job(
    adapter: Adapter, shop: Shop, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's transaction goes on after an error of one statement; PostgreSQL's does not."""
    kind = {"parcel": shop.parcel, "unique": shop.parcel, "quota": shop.counted}[what]
    unique = Unique("one", "existing") if what == "unique" else None
    for place in range(1, MOST):
        async with adapter.opened(shop.url) as given:
            await given.buy(f"book{place}")
            reached: list[int] = []
            with monkeypatch.context() as patch:
                patch.setattr(SqliteCaller, "execute", _failing_at(place, SqliteCaller.execute, lambda: _Full("full"), reached))
                try:
                    await given.submit(shop.jobs, kind, Order("book"), key="k", unique=unique)
                except StoreUnavailable:
                    pass
                else:
                    await given.rollback()
                    assert place > 5
                    return
            await given.commit()
        assert shop.rows() == NOTHING
        assert len(shop.bought) == place
    raise AssertionError("it never ended")


@pytest.mark.parametrize("adapter", [ADAPTERS["async-session-asyncpg"], ADAPTERS["psycopg-async"]], ids=["asyncpg", "psycopg"])
async def test_who_stops_waiting_and_commits_leaves_no_half(adapter: Adapter, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    active = await shop.jobs.submit(shop.ship, Order("first"), owner=ANN, unique=Unique("one", "existing"))
    before = shop.rows()
    caller: Any = AsyncPsycopgCaller if adapter.name == "psycopg-async" else AsyncAlchemyCaller
    for place in range(1, MOST):
        async with adapter.opened(shop.url) as given:
            await given.buy(f"book{place}")
            with monkeypatch.context() as patch:
                patch.setattr(caller, "execute", _cancelled_at(place, caller.execute))
                with suppress(asyncio.CancelledError):
                    handle = await given.submit(shop.jobs, shop.ship, Order("new"), key="k", unique=Unique("one", "existing"))
                    await given.rollback()
                    assert (handle.id, place > 3) == (active.id, True)
                    return
            with suppress(DBAPIError, OutlastError):
                await given.commit()
        assert shop.rows() == before
    raise AssertionError("it never ended")


def _cancelled_at(place: int, execute: Any) -> Any:
    """What waits is cancelled when the statement at that place was executed."""
    sent = 0

    async def cancel(self: Any, sql: str, params: Any) -> Any:
        nonlocal sent
        rows = await execute(self, sql, params)
        sent += 1
        if sent == place:
            raise asyncio.CancelledError
        return rows

    return cancel
