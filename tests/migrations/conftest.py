"""Empty databases to migrate, on each store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers.postgres import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Makes the URL of a new, empty store: sqlite, postgresql, or postgresql-15."""

    def make(store: str) -> str:
        if store == "sqlite":
            return f"sqlite:///{tmp_path / f'store-{next(_numbers)}.db'}"
        server: PostgresServer = request.getfixturevalue("postgres_15" if store == "postgresql-15" else "postgres_server")
        name = f"migrations_{next(_numbers)}"
        server.create_database(name)
        return server.dsn(name)

    return make


@pytest.fixture(params=["sqlite", "postgresql", "postgresql-15"])
def url(request: pytest.FixtureRequest, empty: Callable[[str], str]) -> Iterator[str]:
    """A new, empty store of each kind."""
    if request.param == "postgresql-15":
        request.getfixturevalue("postgres_15")
    return empty(request.param)
