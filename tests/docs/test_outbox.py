"""What docs/outbox.md shows is run, in each database that it names."""

from __future__ import annotations

import re
import sqlite3
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outlast import Outlast
from outlast.client.outbox import Door
from outlast.domain.outbox import INPUT_TOO_LARGE, INVALID_ROW, UNDECODABLE, WRITTEN
from outlast.relay import inbound
from outlast.relay.dialects import DIALECTS, script
from outlast.relay.inbound import Inbound
from outlast.relay.source import Source
from outlast.store.open import migrate
from servers.mariadb import MariaDbServer
from servers.postgres import PostgresServer

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "outbox.md").read_text("utf-8")
EXAMPLES = {found.splitlines()[0].removeprefix("# "): found for found in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)}
(BY_HAND,) = re.findall(r"```sql\n(.*?);\n```", TEXT, re.DOTALL)
PURCHASE = "create table purchase (number integer not null)"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outlast]:
    """The application of the page, on a migrated store."""
    monkeypatch.chdir(tmp_path)
    module: Any = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)
    exec(compile(EXAMPLES["shop.py"], "shop.py", "exec"), vars(module))  # noqa: S102 - the document's own text
    migrate(module.jobs.url)
    yield module.jobs
    module.jobs.sync.close()


def works(dialect: str, connection: Any, url: str, names: dict[str, Any], jobs: Outlast) -> None:
    """Makes the tables, runs the page's example and its insert by hand, and moves both rows."""
    cursor = connection.cursor()
    for statement in (*filter(str.strip, script(DIALECTS[dialect]).split(";\n")), PURCHASE):
        cursor.execute(statement)
    exec(compile(EXAMPLES[dialect], dialect, "exec"), names)  # noqa: S102 - the document's own text
    cursor.execute(BY_HAND)
    source = Source(url)
    assert Inbound(source, Door(jobs.desk.app, jobs.store)).run_once().moved == 2
    source.close()
    cursor.execute("select count(*) from purchase")
    assert cursor.fetchone() == (1,)


def test_sqlite(shop: Outlast, tmp_path: Path) -> None:
    file = tmp_path / "business.db"
    db = sqlite3.connect(file, isolation_level=None)
    works("sqlite", db, f"sqlite:///{file}", {"SHOP_FILE": file}, shop)
    db.close()


def test_postgresql(shop: Outlast, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("docs_outbox")
    with psycopg.connect(url, autocommit=True) as db:
        works("postgresql", db, url, {"SHOP_URL": url}, shop)
    postgres_server.drop_database("docs_outbox")


@pytest.mark.debian
def test_mariadb(shop: Outlast, mariadb_server: MariaDbServer) -> None:
    url = mariadb_server.create_database("docs_outbox")
    how = {"unix_socket": str(mariadb_server.socket), "user": "root", "database": "docs_outbox"}
    with mariadb_server.connect("docs_outbox") as db:
        works("mariadb", db, url, {"SHOP": how}, shop)


def test_each_column_and_each_code_is_named() -> None:
    for name in (*WRITTEN, "seq", "created_at", "code", "tries", "due_at", "parked_at"):
        assert f"`{name}`" in TEXT, name
        assert all(re.search(rf"^    {name} ", script(one), re.MULTILINE) for one in DIALECTS.values()), name
    codes = [UNDECODABLE, INVALID_ROW, INPUT_TOO_LARGE, inbound.KEY_REUSED, inbound.UNIQUE_ACTIVE, inbound.PLAN_FAILED, inbound.FAILED]
    for code in (*codes, *(error.code for error in inbound._LATER), "invalid", "forbidden"):
        assert f"`{code}`" in TEXT, code
