"""The schema that the migrations make: the rules it has to obey on each store."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from migrations.catalogue import columns, definitions, indexes
from outlast.store import open as stores
from outlast.store.open import parse
from servers.postgres import PostgresServer

MOVED_BY_CLAIMS = {"holder", "claimed_at", "lease_until", "deadline_at", "fence", "revoked", "progress"}
MOVED_BY_THE_LAST_FINISH = {
    "state", "version", "open", "required_open", "attention", "problems", "usable_at", "usable_ref", "finished_at", "outcome", "purge_at",
}  # fmt: skip
TABLES = {
    "job", "job_input", "task", "queue_entry", "edge", "output", "attempt", "step", "attention",
    "effect", "submission", "queue", "migration", "audit", "slot", "quota", "quota_job", "schedule",
}  # fmt: skip


def test_the_tables_are_those_that_are_used(url: str) -> None:
    stores.migrate(url)
    assert {c.table for c in columns(url)} == TABLES


@pytest.mark.parametrize(("table", "moved"), [("queue_entry", MOVED_BY_CLAIMS), ("job", MOVED_BY_THE_LAST_FINISH)])
def test_no_index_names_what_the_hot_path_writes(url: str, table: str, moved: set[str]) -> None:
    """Else a claim, or the final update of a job, is no HOT update; in columns and predicates alike."""
    stores.migrate(url)
    found = {name: text for name, text in indexes(url).items() if re.search(rf"\bon (only )?(outlast[._])?{table}\b", text)}
    assert found
    for name, text in found.items():
        named = set(re.findall(r"[a-z_]+", text.partition(" on ")[2]))
        assert not named & moved, name


def test_no_number_is_narrow(url: str) -> None:
    stores.migrate(url)
    kinds = {c.type for c in columns(url)}
    assert not kinds & {"integer", "smallint", "serial"} or url.startswith("sqlite")  # an integer of SQLite has 64 bits
    assert "real" not in kinds


def test_texts_are_compared_bytewise(empty: Callable[[str], str]) -> None:
    """On PostgreSQL; SQLite does so unless told otherwise."""
    url = empty("postgresql")
    stores.migrate(url)
    loose = [c for c in columns(url) if c.type == "text" and c.table != "migration" and c.collation != "C"]
    assert loose == []


def test_both_stores_have_the_same_columns(empty: Callable[[str], str]) -> None:
    one, other = empty("sqlite"), empty("postgresql")
    for url in (one, other):
        stores.migrate(url)
    shapes = [{(c.table, c.name, c.nullable) for c in columns(url) if c.table != "migration"} for url in (one, other)]
    assert shapes[0] == shapes[1]


def test_both_stores_have_the_same_indexes(empty: Callable[[str], str]) -> None:
    def shape(url: str) -> dict[str, tuple[bool, str]]:
        stores.migrate(url)
        shapes: dict[str, tuple[bool, str]] = {}
        for name, text in indexes(url).items():
            if name.startswith("outlast_"):
                inside = text.partition(" (" if " using btree " not in text else " using btree (")[2]
                shapes[name] = ("unique" in text, re.sub(r"[()\s]", "", inside))
        return shapes

    assert shape(empty("sqlite")) == shape(empty("postgresql"))


def test_the_printed_script_makes_the_same_file(empty: Callable[[str], str]) -> None:
    one, other = empty("sqlite"), empty("sqlite")
    stores.migrate(one)
    connection = sqlite3.connect(parse(other).target)
    connection.executescript(stores.script(other))
    connection.close()
    assert definitions(one) == definitions(other)
    assert stores.pending(other) == ()


def test_the_printed_script_makes_the_same_database(empty: Callable[[str], str], postgres_server: PostgresServer, tmp_path: Path) -> None:
    one, other = empty("postgresql"), empty("postgresql")
    stores.migrate(one)
    file = tmp_path / "schema.sql"
    file.write_text(stores.script(other))
    psql = postgres_server.bin_dir / "psql"
    if psql.exists():
        subprocess.run([str(psql), "-v", "ON_ERROR_STOP=1", "-q", "-f", str(file), other], check=True, capture_output=True)
    else:
        with psycopg.connect(other, autocommit=True) as connection:
            connection.execute(file.read_text().encode())
    assert columns(one) == columns(other)
    assert indexes(one) == indexes(other)
    assert stores.pending(other) == ()


def test_tables_leave_room_for_hot_updates(empty: Callable[[str], str]) -> None:
    url = empty("postgresql")
    stores.migrate(url)
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select relname, reloptions from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where nspname = 'outlast' and relkind = 'r'"
        ).fetchall()
    options = {name: set(given or ()) for name, given in rows}
    assert "fillfactor=40" in options["queue_entry"]
    assert {"fillfactor=50"} <= options["job"] & options["task"]
    for table in ("queue_entry", "job", "task"):
        assert "autovacuum_vacuum_scale_factor=0.01" in options[table]
