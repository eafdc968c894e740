"""LISTEN: an accelerator on a direct connection of its own. Whatever is lost here is found by polling."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg

from outlast.observe.events import ListenUnavailable
from outlast.observe.hub import emit
from outlast.store.postgres.session import CONNECT_LIMIT, PID, behind_pooler
from outlast.store.postgres.watchdog import answer

CHANNEL = "outlast"
ALL = "*"
QUIET = 30.0


async def listen(conninfo: str, on_queue: Callable[[str], None]) -> None:
    """Calls back with each queue that is announced; after a reconnection once with `*`, for what was missed."""
    pause = 0.2
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                conninfo, autocommit=True, application_name="outlast listen", connect_timeout=CONNECT_LIMIT, prepare_threshold=None
            ) as connection:
                row = await (await answer(connection, PID)).fetchone()
                if row is not None and behind_pooler(connection, row[0]):
                    emit(ListenUnavailable("a connection pooler stands between"))
                    break
                await answer(connection, f"listen {CHANNEL}")
                on_queue(ALL)
                pause = 0.2
                while True:
                    async for notice in connection.notifies(timeout=QUIET):
                        on_queue(notice.payload)
                    await answer(connection, "select")  # is anybody there? A dead network looks like a quiet one
        except (psycopg.Error, OSError):
            pass
        await asyncio.sleep(pause * random.uniform(0.7, 1.3))
        pause = min(pause * 2, 5.0)
    await asyncio.Event().wait()
