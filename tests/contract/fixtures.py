"""Three stores, one suite: a test that asks for `h` runs on each of them, and in the end its rows must add up.

The fixtures are imported by the conftest of each folder that uses them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.backends import Backend, PostgresBackend, SqliteBackend
from contract.harness import Harness
from servers.postgres import PostgresServer

STORES = ("sqlite", "postgres-async", "postgres-sync")
_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def files() -> Iterator[Path]:
    """A folder for SQLite files, in memory where that is possible: each commit waits for the disk."""
    memory = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="outlast-", dir=memory))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def sqlite_template(files: Path) -> Path:
    return SqliteBackend.make_template(files / "template.db")


@pytest.fixture(scope="session")
def contract_dsn(postgres_server: PostgresServer) -> str:
    dsn = postgres_server.create_database(f"contract_{secrets.token_hex(4)}")
    PostgresBackend.migrate(dsn)
    return dsn


@pytest.fixture(scope="session")
def postgres_async(contract_dsn: str) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(contract_dsn, "async")
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def postgres_sync(contract_dsn: str) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(contract_dsn, "sync")
    yield backend
    backend.close()


@pytest.fixture(params=STORES)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """The store under test, empty, its clock at the start."""
    if request.param == "sqlite":
        path = request.getfixturevalue("files") / "jobs.db"
        sqlite = SqliteBackend.copy_of(request.getfixturevalue("sqlite_template"), path)
        yield sqlite
        sqlite.close()
        path.unlink()
        return
    postgres: PostgresBackend = request.getfixturevalue(request.param.replace("-", "_"))
    postgres.reset()
    yield postgres


@pytest.fixture
def h(backend: Backend) -> Iterator[Harness]:
    """The store in the verbs of the domain. In the end its counters, states and edges must follow from its rows."""
    harness = Harness(backend)
    yield harness
    if harness.exempt is None:
        harness.check()
