"""Databases for plans: made empty, or copied from one that is full."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from outlast.store.postgres import migrating
from servers.postgres import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture
def empty(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a migrated database without a job."""
    name = f"plans_{next(_numbers)}"
    conninfo = postgres_server.create_database(name)
    migrating.apply(conninfo)
    yield conninfo
    postgres_server.drop_database(name)


@pytest.fixture(scope="module")
def make(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Makes migrated databases that stand until the module's end."""
    made: list[str] = []

    def one() -> str:
        made.append(f"plans_{next(_numbers)}")
        conninfo = postgres_server.create_database(made[-1])
        migrating.apply(conninfo)
        return conninfo

    yield one
    for name in made:
        postgres_server.drop_database(name)
