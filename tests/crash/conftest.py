"""The stores of the crash tests, each migrated and fresh; after each test its rows are checked."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.stage import Stage
from invariants import check
from outlast.store.open import migrate
from servers.postgres import PostgresServer

_TEMPLATE = "crash_template"
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it starts and kills processes, or waits for leases."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(60))


@pytest.fixture(scope="session")
def template(postgres_server: PostgresServer) -> Iterator[str]:
    """A migrated database to copy."""
    postgres_server.drop_database(_TEMPLATE)
    migrate(postgres_server.create_database(_TEMPLATE))
    yield _TEMPLATE
    postgres_server.drop_database(_TEMPLATE)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A migrated store of each dialect."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path / 'jobs.db'}"
        migrate(address)
        yield address
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"crash_{os.getpid()}_{next(_numbers)}"
    address = server.create_database(name, request.getfixturevalue("template"))
    yield address
    server.drop_database(name)


@pytest.fixture
def stage(url: str, tmp_path: Path) -> Iterator[Stage]:
    """The stage of one test; what it leaves in the store must be consistent."""
    made = Stage(url, tmp_path)
    try:
        yield made
    finally:
        made.close()
    check(url)
