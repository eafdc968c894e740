"""A store of each kind, and the application of these tests on it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outlast.store.open import migrate
from servers.postgres import PostgresServer
from web.shop import make
from web.site import Site

_numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated store."""
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path / 'jobs.db'}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = f"web_{next(_numbers)}"
        server.create_database(name)
        made = server.dsn(name)
    migrate(made)
    return made


@pytest.fixture
async def site(url: str) -> AsyncIterator[Site]:
    """The application on a store of each kind."""
    one = Site(make(url))
    yield one
    one.app.stop()
    await one.jobs.close()


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Site]:
    """The application on SQLite only, for what does not depend on the store."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    one = Site(make(url))
    yield one
    one.app.stop()
    await one.jobs.close()
