"""Settings of a role or database that would break a promise, and what is done about each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from connections.shop import WHO, Order, shop
from outlast import StoreUnavailable
from outlast.store.open import open_store
from outlast.store.postgres.store import PostgresStore
from outlast.store.program import Access, Operation, Program, Statement
from outlast.worker.runtime import Exit, Options, Worker


def alter(url: str, setting: str) -> None:
    name = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        connection.execute(f"alter database {name} set {setting}".encode())


def setting_of(store: PostgresStore, name: str) -> str:
    """What a connection of the store is set to."""
    store._sql["setting"] = b"select current_setting(%(name)s)"

    def ask() -> Program[str]:
        rows = yield Statement("setting", {"name": name})
        return str(rows[0][0])

    return store.run_sync(Operation("setting", Access.READ, ask))


async def live(url: str, count: int = 5) -> None:
    """Submits, works, and reads what came of it."""
    jobs, ship = shop(url)
    store = open_store(url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=5))
    running = asyncio.create_task(worker.run())
    handles = [await jobs.submit(ship, Order(n), owner=WHO, key=f"k{n}") for n in range(count)]
    views = [await jobs.wait(h.id, principal=WHO, timeout=15) for h in handles]
    assert {v.state for v in views} == {"completed"}
    assert [await jobs.result(h.id, ship, principal=WHO) for h in handles] == list(range(count))
    await jobs.cancel((await jobs.submit(ship, Order(9), owner=WHO, not_before=views[0].accepted_at.replace(year=2999))).id, principal=WHO)
    worker.stop()
    assert await running is Exit.CLEAN
    await store.close()
    await jobs.close()


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("synchronous_commit = off", "synchronous_commit", "on"),
        ("synchronous_commit = remote_apply", "synchronous_commit", "remote_apply"),
        ("default_transaction_isolation = 'repeatable read'", "default_transaction_isolation", "read committed"),
        ("default_transaction_isolation = 'serializable'", "default_transaction_isolation", "read committed"),
        ("plan_cache_mode = force_generic_plan", "plan_cache_mode", "force_custom_plan"),
        ("search_path = nowhere", "search_path", "nowhere"),
        ("timezone = 'Asia/Kolkata'", "TimeZone", "Asia/Kolkata"),
    ],
)
async def test_settings_that_would_hurt_are_put_right(database: Callable[[], str], setting: str, name: str, value: str) -> None:
    url = database()
    alter(url, setting)
    store = open_store(url)
    assert isinstance(store, PostgresStore)
    assert setting_of(store, name) == value
    store.close_sync()
    await live(url, count=2)


def test_a_read_only_database_is_said_and_nothing_is_written(database: Callable[[], str]) -> None:
    url = database()
    jobs, ship = shop(url)
    alter(url, "default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match="read-only"):
        jobs.sync.submit(ship, Order(1), owner=WHO)
    jobs.sync.close()
    alter(url, "default_transaction_read_only = off")
    jobs.sync.submit(ship, Order(1), owner=WHO)
    assert len(jobs.sync.list(principal=WHO).items) == 1
    jobs.sync.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be reached|refuses connections"),
        ("postgresql://outlast@127.0.0.1:{port}/does_not_exist", "refuses connections|cannot be reached"),
    ],
)
def test_an_unreachable_store_is_said_in_time(database: Callable[[], str], url: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = database().rpartition(":")[2].partition("/")[0]
    jobs, ship = shop(url.format(port=port))
    store: Any = jobs.store
    monkeypatch.setattr(store, "_patience", 0.5)
    with pytest.raises(StoreUnavailable, match=says):
        jobs.sync.submit(ship, Order(1), owner=WHO)
    jobs.sync.close()
