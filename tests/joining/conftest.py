"""A store with a business table beside it, for each object that `transaction=` takes; and workers that end with their test."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contract.fixtures import files
from invariants import check
from joining.adapters import ADAPTERS, TABLE, Adapter
from outlast import Limit, Outlast, Plan, SyncContext
from outlast.store.open import migrate
from servers.postgres import PostgresServer
from worker.accounts import Bank
from worker.conftest import start

__all__ = ["files", "start"]

_numbers = itertools.count(1)


@dataclass
class Order:
    """What is bought."""

    name: str


@dataclass
class Shop:
    """An application on a store that has a table of its own, and what its tasks found in it."""

    url: str
    bank: Bank
    jobs: Outlast
    ship: Any
    parcel: Any
    counted: Any
    found: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def bought(self) -> list[str]:
        return sorted(row[0] for row in self.bank.do("select name from purchase"))

    def rows(self) -> dict[str, int]:
        """How many rows each table of the store has."""
        dot = "outlast_" if self.url.startswith("sqlite") else "outlast."
        names = ("job", "job_input", "task", "queue_entry", "edge", "submission", "quota_job")
        return {name: int(self.bank.do(f"select count(*) from {dot}{name}")[0][0]) for name in names}


def application(url: str) -> Shop:
    """Tasks that look for the business row."""
    jobs = Outlast(url)
    bank = Bank(url)
    found: list[tuple[str, bool]] = []

    @jobs.task
    def ship(ctx: SyncContext, order: Order) -> bool:
        there = bool(bank.do("select 1 from purchase where name = ?", order.name))
        found.append((order.name, there))
        return there

    @jobs.kind("parcel", version=1)
    def parcel(plan: Plan[Order], order: Order) -> None:
        first = plan.task(ship, label="Ship", limit=Limit("ships", 2))
        plan.task(ship, label="Ship again", after=[first])

    @jobs.kind("counted", version=1, quota=2)
    def counted(plan: Plan[Order], order: Order) -> None:
        plan.task(ship, label="Ship")

    return Shop(url, bank, jobs, ship, parcel, counted, found)


@pytest.fixture(scope="session")
def template(files: Path) -> Path:
    path = files / "joining.db"
    migrate(f"sqlite:///{path}")
    Bank(f"sqlite:///{path}").do(TABLE)
    return path


@pytest.fixture(scope="module")
def server_url(postgres_server: PostgresServer) -> Iterator[str]:
    """One database for a whole file; each test has names and keys of its own."""
    name = f"joining_{next(_numbers)}"
    postgres_server.create_database(name)
    url = postgres_server.dsn(name)
    migrate(url)
    Bank(url).do(TABLE)
    yield url
    postgres_server.drop_database(name)


@pytest.fixture
def url(adapter: Adapter, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if adapter.dialect == "sqlite":
        copied = tmp_path / "shop.db"
        shutil.copyfile(request.getfixturevalue("template"), copied)
        return f"sqlite:///{copied}"
    made: str = request.getfixturevalue("server_url")
    bank = Bank(made)
    bank.do("delete from purchase")
    tables = bank.do("select tablename from pg_tables where schemaname = 'outlast' and tablename <> 'migration'")
    bank.do("truncate " + ", ".join(f'outlast."{name}"' for (name,) in tables))
    return made


@pytest.fixture(params=[*ADAPTERS])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return ADAPTERS[request.param]


@pytest.fixture
async def shop(url: str) -> AsyncIterator[Shop]:
    one = application(url)
    yield one
    await one.jobs.close()
    check(url)
