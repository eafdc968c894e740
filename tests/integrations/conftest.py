"""A store of each kind, migrated, with a table of the application's own: one for each module."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from sqlalchemy import NullPool, create_engine, text

from outlast.store.open import migrate
from servers.postgres import PostgresServer

_numbers = itertools.count()


def engine_url(url: str) -> str:
    """The address as SQLAlchemy's blocking engines take it."""
    return url.replace("postgresql:", "postgresql+psycopg:")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The store's address."""
    server: PostgresServer | None = None
    name = f"integrations_{next(_numbers)}"
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path_factory.mktemp('store') / 'jobs.db'}"
    else:
        server = request.getfixturevalue("postgres_server")
        server.create_database(name)
        made = server.dsn(name)
    migrate(made)
    with create_engine(engine_url(made), poolclass=NullPool).begin() as connection:
        connection.execute(text("create table business (note text)"))
    yield made
    if server is not None:
        server.drop_database(name)
