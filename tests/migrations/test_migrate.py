"""Bringing a store to this version: at once from many processes, again, halfway, and what is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from migrations.support import applied, record, tables
from outlast import Outlast
from outlast.domain.errors import Invalid, NotMigrated, StoreUnavailable
from outlast.store import open as stores
from outlast.store.open import open_store, parse
from outlast.store.postgres import migrating as postgres
from outlast.store.programs import status
from outlast.store.sqlite import migrating as sqlite

MIGRATE = "import sys; from outlast.store.open import migrate; print(len(migrate(sys.argv[1])))"


def test_a_new_store_lacks_everything_and_then_nothing(url: str) -> None:
    names = [m.name for m in stores.pending(url)]
    assert names[0] == "engine"
    assert [m.name for m in stores.migrate(url)] == names
    assert stores.pending(url) == ()
    assert stores.migrate(url) == ()
    assert [row[1] for row in applied(url)] == names


def test_looking_changes_nothing(url: str) -> None:
    stores.pending(url)
    assert tables(url) == set()
    if url.startswith("sqlite"):
        assert not Path(parse(url).target).exists()


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_twenty_processes_at_once(store: str, empty: Callable[[str], str]) -> None:
    url = empty(store)
    started = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(20)
    ]
    ended = [(p.communicate(timeout=80), p.returncode) for p in started]
    assert [code for _, code in ended] == [0] * 20, [err for (_, err), code in ended if code]
    assert sum(int(out) for (out, _), _ in ended) == len(applied(url))
    assert stores.pending(url) == ()


def test_a_store_that_is_not_migrated_says_what_to_run(url: str) -> None:
    store = open_store(url)
    try:
        with pytest.raises(NotMigrated, match="outlast migrate"):
            store.run_sync(status.clock())
    finally:
        store.close_sync()


def test_a_newer_breaking_migration_is_refused(url: str) -> None:
    stores.migrate(url)
    record(url, 9001, "from_the_future", breaking=True)
    for look in (stores.pending, stores.migrate):
        with pytest.raises(NotMigrated, match=r"9001 \(from_the_future\).*Upgrade Outlast"):
            look(url)
    store = open_store(url)
    try:
        with pytest.raises(NotMigrated, match="9001"):
            store.run_sync(status.clock())
    finally:
        store.close_sync()


def test_a_newer_migration_that_breaks_nothing_is_worked_with(url: str) -> None:
    stores.migrate(url)
    record(url, 9001, "from_the_future", breaking=False)
    assert stores.pending(url) == ()
    store = open_store(url)
    try:
        assert store.run_sync(status.clock()) > 0
    finally:
        store.close_sync()


def test_a_migration_that_was_changed_is_refused(url: str) -> None:
    stores.migrate(url)
    change = "update {} set checksum = 'other' where number = 1"
    if url.startswith("sqlite"):
        with sqlite3.connect(parse(url).target) as connection:
            connection.execute(change.format("outlast_migration"))
        connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(change.format("outlast.migration").encode())
    with pytest.raises(NotMigrated, match="differs from this version's"):
        stores.pending(url)


def test_half_a_migration_is_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes in the middle: nothing stays, and the next run does all of it."""
    if url.startswith("sqlite"):
        whole = sqlite.schema_migrations()
        broken = tuple(type(m)(m.number, m.name, m.breaking, (*m.statements[:5], "create nonsense"), m.checksum) for m in whole)
        monkeypatch.setattr(sqlite, "schema_migrations", lambda: broken)
        with pytest.raises(StoreUnavailable):
            stores.migrate(url)
    else:
        whole = postgres.schema_migrations("outlast")
        cut = "select pg_terminate_backend(pg_backend_pid())"
        broken = tuple(type(m)(m.number, m.name, m.breaking, (*m.statements[:5], cut), m.checksum) for m in whole)
        monkeypatch.setattr(postgres, "schema_migrations", lambda _schema: broken)
        with pytest.raises((psycopg.Error, StoreUnavailable)):
            stores.migrate(url)
    monkeypatch.undo()
    assert tables(url) <= {"migration"}
    assert applied(url) == []
    stores.migrate(url)
    assert stores.pending(url) == ()
    assert {"job", "task", "queue_entry"} <= tables(url)


def test_a_role_without_rights_is_told_so(empty: Callable[[str], str]) -> None:
    url = empty("postgresql")
    name = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"drop role if exists limited_{name}".encode())
        server.execute(f"create role limited_{name} login".encode())
        server.execute(f"revoke create on database {name} from public".encode())
    limited = url.replace("outlast@", f"limited_{name}@")
    with pytest.raises(StoreUnavailable, match="role lacks rights"):
        stores.migrate(limited)
    assert tables(url) == set()
    stores.migrate(url)
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"grant usage on schema outlast to limited_{name}".encode())
        server.execute(f"grant select on all tables in schema outlast to limited_{name}".encode())
    assert stores.migrate(limited) == (), "what lacks nothing is only read"


def test_a_store_in_memory_is_refused() -> None:
    """It would be another one for each connection."""
    for call in (parse, open_store, stores.migrate, Outlast):
        with pytest.raises(Invalid, match="name a file"):
            call("sqlite:///:memory:")
