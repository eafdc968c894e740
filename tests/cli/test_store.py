"""`outlast migrate`, `queues` and `doctor`: what they say about a store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from cli.conftest import Shell
from outlast.cli.checks import clock_check
from outlast.cli.doctor_sqlite import checks_of
from outlast.store.sqlite.build import Build
from servers.postgres import PostgresServer


def checks(shell: Shell, *more: str, code: int = 0) -> dict[str, dict[str, Any]]:
    said = json.loads(shell.run("doctor", "--json", *more, code=code).stdout)
    assert said["ok"] is (code == 0)
    return {check["name"]: check for check in said["checks"]}


def test_check_lists_what_is_missing_and_changes_nothing(bare: Shell) -> None:
    said = bare.run("migrate", "--check", code=1).stdout
    assert "pending 0001_engine\n" in said
    assert "Run: outlast migrate --store URL" in said
    assert not (bare.folder / "shop.db").exists()
    assert json.loads(bare.run("migrate", "--check", "--json", code=1).stdout)["pending"][0] == "0001_engine"


def test_migrate_applies_once(either: Shell) -> None:
    assert either.run("migrate").stdout.endswith(" is up to date\n")
    assert json.loads(either.run("migrate", "--json").stdout)["applied"] == []
    assert json.loads(either.run("migrate", "--check", "--json").stdout)["pending"] == []


def test_sql_prints_what_makes_the_same_store(bare: Shell) -> None:
    sql = bare.run("migrate", "--sql").stdout
    with closing(sqlite3.connect(bare.folder / "shop.db")) as connection:
        connection.executescript(sql)
    bare.run("migrate", "--check")
    assert bare.run("migrate", "--sql", "--store", "postgresql://").stdout.startswith("create schema")
    assert "use it by itself" in bare.run("migrate", "--sql", "--check", code=2).stderr


def test_a_folder_that_is_not_there_is_said(bare: Shell) -> None:
    said = bare.run("migrate", "--store", "sqlite:///nowhere/x.db", code=5).stderr
    assert "The folder of the store's file does not exist" in said


def test_queues_show_ready_and_waiting(either: Shell) -> None:
    assert either.run("queues").stdout == "nothing waits and nothing runs\n"
    either.submit()
    either.submit("{}", "--not-before", "2130-01-01T00:00:00Z")
    (item,) = json.loads(either.run("queues", "--json").stdout)["items"]
    assert item.pop("oldest_seconds") >= 0
    assert item == {"queue": "default", "handler": "order@1:pack", "ready": 1, "running": 0, "waiting": 1}
    header, line = either.run("queues").stdout.splitlines()
    assert header.split() == ["QUEUE", "HANDLER", "READY", "RUNNING", "WAITING", "OLDEST"]
    assert line.split()[:5] == ["default", "order@1:pack", "1", "0", "1"]


def test_doctor_finds_nothing_wrong_with_a_good_store(either: Shell) -> None:
    either.submit()
    found = checks(either, "shop:jobs")
    assert found["migrations"]["value"] == "all applied"
    assert found["unfinished tasks"]["value"] == 2
    assert {"outlast", "Python", "dialect"} <= set(found)
    assert either.run("doctor").stdout.endswith("all is well\n")


def test_doctor_looks_at_the_server(either: Shell) -> None:
    found = checks(either)
    if either.url.startswith("sqlite"):
        assert {"SQLite", "write-ahead log", "journal"} <= set(found)
    else:
        assert {"psycopg", "PostgreSQL", "max_connections", "clock difference (ms)"} <= set(found)
        assert (found["writable"]["value"], found["connection"]["value"]) == ("yes", "direct, or a pooler that keeps sessions")
        assert found["synchronous_commit"]["value"] == "on"


def test_doctor_names_tasks_that_the_target_has_no_code_for(either: Shell) -> None:
    either.submit()
    (either.folder / "newer.py").write_text("from outlast import Outlast\njobs = Outlast('sqlite:///x.db')\n")
    found = checks(either, "newer:jobs", code=1)
    assert found["unfinished order@1:pack"]["value"] == 1
    said = either.run("doctor", "newer:jobs", code=1).stdout
    assert "newer:jobs has no code for it, so its workers leave it waiting." in said
    assert said.endswith("2 to do\n")


NEWER = """
from outlast import Context, Outlast, Plan
from shop import Order
jobs = Outlast("sqlite:///x.db")

@jobs.task
async def pack(ctx: Context, order: Order) -> str:
    return ""

@jobs.kind("order", version=VERSION)
def order(plan: Plan[Order], given: Order) -> None:
    plan.task(pack, label="Pack")
"""
UPGRADE = """
@order.upgrade(from_version=1)
def from_1(old):
    return old
"""


def test_doctor_says_what_is_missing_to_run_what_is_left(either: Shell) -> None:
    either.submit()
    (either.folder / "newer.py").write_text(NEWER.replace("VERSION", "3"))
    found = checks(either, "newer:jobs", code=1)
    for task in ("pack", "mail"):
        advice = found[f"unfinished order@1:{task}"]["advice"]
        assert "It reads version 3 of the kind 'order': register @kind.upgrade(from_version=1)" in advice
        assert "The oldest job is " in advice
    (either.folder / "newer.py").write_text(NEWER.replace("VERSION", "2") + UPGRADE)
    found = checks(either, "newer:jobs", code=1)
    assert "unfinished order@1:pack" not in found
    assert "It registers no task 'mail' that takes the input of the kind 'order'" in found["unfinished order@1:mail"]["advice"]
    said = json.loads(either.run("doctor", "newer:jobs", "--json", code=1).stdout)["unfinished"]
    assert all(item.pop("oldest_seconds") >= 0 for item in said)
    assert said == [
        {"kind": "order", "version": 1, "task": "mail", "count": 1, "runnable": False},
        {"kind": "order", "version": 1, "task": "pack", "count": 1, "runnable": True},
    ]
    assert [item["runnable"] for item in json.loads(either.run("doctor", "--json").stdout)["unfinished"]] == [None, None]
    either.run("jobs", "submit", "newer:jobs", "order", "--input", "-", "--as", "acme:ann", stdin="{}")
    assert "reads version 1 of the kind 'order': a newer release made those jobs" in either.run("doctor", "shop:jobs", code=1).stdout


def test_a_gap_in_the_upgrades_is_refused_before_anything_runs(shell: Shell) -> None:
    (shell.folder / "newer.py").write_text(NEWER.replace("VERSION", "3") + UPGRADE)
    for command in (("worker", "newer:jobs"), ("doctor", "newer:jobs"), ("serve", "newer:jobs")):
        said = shell.run(*command, code=2).stderr
        assert "an upgrade from version 1, but none from version 2" in said
        assert said.endswith("(invalid)\n")


def test_doctor_says_what_is_not_migrated_and_what_does_not_exist(bare: Shell, postgres_server: PostgresServer) -> None:
    assert "outlast migrate" in checks(bare, code=1)["file"]["advice"]
    found = checks(bare, "--store", postgres_server.dsn(), code=1)
    assert found["migrations"]["value"].startswith("pending: 0001_engine")


def test_doctor_reports_a_server_that_is_away_without_its_password(bare: Shell) -> None:
    said = bare.run("doctor", "--store", "postgresql://u:hunter2@127.0.0.1:1/x", code=1).output
    assert "cannot be reached" in said
    assert "hunter2" not in said


def test_doctor_reports_a_server_that_cannot_be_written(either: Shell) -> None:
    if either.url.startswith("sqlite"):
        (either.folder / "other.db").write_bytes(b"hello" * 100)
        assert checks(either, "--store", f"sqlite:///{either.folder}/other.db", code=1)["file"]["value"] == "is not a SQLite file"
    else:
        found = checks(either, "--store", f"{either.url}?options=-cdefault_transaction_read_only%3Don", code=1)
        assert found["writable"]["level"] == "action"


@pytest.mark.parametrize(("version", "level"), [((3, 40, 1), "note"), ((3, 52, 0), "ok"), ((3, 30, 0), "note")])
def test_doctor_knows_which_sqlite_build_may_use_the_log(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], level: str
) -> None:
    build = Build(version)
    monkeypatch.setattr("outlast.cli.doctor_sqlite.linked", lambda: build)
    journal = b"\x02" if build.wal_is_safe else b"\x01"
    (shell.folder / "made.db").write_bytes(b"SQLite format 3\x00\x10\x00" + journal * 2 + b"\x00" * 80)
    found = {check.name: check for check in checks_of(str(shell.folder / "made.db"))}
    assert found["write-ahead log"].level == level
    assert found["SQLite"].level == ("ok" if build.usable else "action")
    assert found["journal"].level == "ok"


def test_doctor_warns_of_a_log_that_the_build_must_not_use(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlast.cli.doctor_sqlite.linked", lambda: Build((3, 40, 1)))
    (shell.folder / "made.db").write_bytes(b"SQLite format 3\x00\x10\x00\x02\x02" + b"\x00" * 80)
    assert {c.name: c.level for c in checks_of(str(shell.folder / "made.db"))}["journal"] == "action"


@pytest.mark.parametrize(
    ("difference", "unsure", "level"), [(0, 1, "ok"), (1_999, 0, "ok"), (-2_500, 0, "action"), (2_500, 1_000, "ok"), (60_000, 50, "action")]
)
def test_a_clock_is_wrong_when_the_round_trip_cannot_explain_it(difference: float, unsure: float, level: str) -> None:
    assert clock_check(difference, unsure_ms=unsure).level == level
