"""Migrated databases of their own, and a small application."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from connections.shop import opened
from outlast.store.open import migrate
from servers.postgres import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """A pool that is left open while it connects would hold up the end of the event loop for ever."""
    opened.clear()
    yield
    for jobs in opened:
        await jobs.close()


@pytest.fixture
def database(postgres_server: PostgresServer) -> Callable[[], str]:
    """Makes the URL of a new, migrated database."""

    def make() -> str:
        name = f"connections_{next(_numbers)}"
        postgres_server.create_database(name)
        url = postgres_server.dsn(name)
        migrate(url)
        return url

    return make
