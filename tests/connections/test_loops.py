"""One event loop after the other, as scripts and synchronous frameworks make them, does not fill the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from connections.shop import WHO, Order, shop


def connected(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as server:
        row = server.execute("select count(*) from pg_stat_activity where datname = current_database()").fetchone()
    return int(row[0]) - 1 if row else 0


@pytest.mark.timeout(60)
def test_a_loop_a_call_keeps_the_number_of_connections(database: Callable[[], str]) -> None:
    url = database()
    jobs, ship = shop(url)
    for number in range(30):
        asyncio.run(jobs.submit(ship, Order(number), owner=WHO))
    assert connected(url) <= 6
    assert len(jobs.sync.list(principal=WHO, limit=100).items) == 30
    jobs.sync.close()
