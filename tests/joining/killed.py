"""A process that submits in a transaction of its own, and is killed at a point of it: child of test_kills.

Points are counted from the first business write on: before and after each statement, and before and after the commit.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from joining.adapters import ADAPTERS, Given
from joining.conftest import Order, application
from outlast.store.sessions.callers import Caller
from outlast.store.sessions.calling import CALLERS
from outlast.store.sessions.django import DjangoCaller


def submit_and_die(name: str, url: str, place: int, told: Connection) -> None:
    """Dies at the point of that number, by SIGKILL; says `committed` when the commit answered, and `alive` if there was no such point."""
    passed = 0

    def point() -> None:
        nonlocal passed
        if passed == place:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    for caller in (*CALLERS, DjangoCaller):
        _watch(caller, point)
    asyncio.run(_work(name, url, point, told))
    told.send("alive")


def _watch(caller: type[Caller | Any], point: Callable[[], None]) -> None:
    execute: Any = caller.execute
    if asyncio.iscoroutinefunction(execute):

        async def awaited(self: Any, sql: str, params: Any) -> Any:
            point()
            rows = await execute(self, sql, params)
            point()
            return rows

        caller.execute = awaited  # type: ignore[method-assign]
        return

    def plain(self: Any, sql: str, params: Any) -> Any:
        point()
        rows = execute(self, sql, params)
        point()
        return rows

    caller.execute = plain  # type: ignore[method-assign]


async def _work(name: str, url: str, point: Callable[[], None], told: Connection) -> None:
    shop = application(url)
    async with ADAPTERS[name].opened(url) as given:
        await _buy(given, point)
        await given.submit(shop.jobs, shop.ship, Order("book"), key="k")
        await given.do("update purchase set name = 'book'")
        point()
        await given.commit()
        told.send("committed")
        point()
    await shop.jobs.close()


async def _buy(given: Given, point: Callable[[], None]) -> None:
    point()
    await given.buy("book")
    point()
