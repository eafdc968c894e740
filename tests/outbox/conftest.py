"""An outbox of each dialect, empty for each test, and a fresh store."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from outbox.outboxes import Table, shop
from outlast import Outlast
from outlast.store.open import migrate
from servers.mariadb import MariaDbServer
from servers.postgres import PostgresServer

SERVERS = ["postgresql", pytest.param("mariadb", marks=pytest.mark.debian)]
DIALECTS = ["sqlite", *SERVERS]
_numbers = itertools.count(1)


@pytest.fixture(scope="session", params=DIALECTS)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A database of each dialect for business data."""
    name = f"outbox_{os.getpid()}_{next(_numbers)}"  # it may be asked for again, when tests of another one came between
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("outbox") / "shop.db"
        yield Table("sqlite", f"sqlite:///{file}", lambda: sqlite3.connect(file, isolation_level=None, timeout=10))
    elif request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database(name)
        yield Table("postgresql", url, lambda: psycopg.connect(url, autocommit=True))
        server.drop_database(name)
    else:
        maria: MariaDbServer = request.getfixturevalue("mariadb_server")
        yield Table("mariadb", maria.create_database(name), lambda: maria.connect(name))


@pytest.fixture
def table(database: Table) -> Iterator[Table]:
    """The outbox, empty."""
    database.drop()
    database.make()
    yield database
    database.close()


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Table]:
    """An outbox in SQLite, for what is the same everywhere."""
    file = tmp_path / "shop.db"
    made = Table("sqlite", f"sqlite:///{file}", lambda: sqlite3.connect(file, isolation_level=None, timeout=10))
    made.make()
    yield made
    made.close()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite store to copy."""
    file = tmp_path_factory.mktemp("store") / "jobs.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def jobs(migrated: Path, tmp_path: Path) -> Iterator[Outlast]:
    """The application on a fresh store."""
    shutil.copy(migrated, tmp_path / "jobs.db")
    made = shop(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield made
    made.sync.close()
