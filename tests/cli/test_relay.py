"""`outlast relay --from` and `outlast outbox`, with an outbox in a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

import pytest

from cli.conftest import Shell, until
from outlast.cli.exits import Exit


@pytest.fixture
def outbox(shell: Shell) -> Iterator[sqlite3.Connection]:
    """The outbox, made of what the command prints."""
    db = sqlite3.connect(shell.folder / "business.db", isolation_level=None)
    db.executescript(shell.run("outbox", "sql", "--dialect", "sqlite").stdout)
    yield db
    db.close()


def place(shell: Shell) -> str:
    return f"sqlite:///{shell.folder}/business.db"


def ask(db: sqlite3.Connection, kind: str = "order", input: str = "{}") -> None:
    db.execute("insert into outlast_outbox (tenant, owner, kind, input) values ('acme', 'ann', ?, ?)", [kind, input])


def test_rows_become_jobs_and_what_cannot_be_one_is_shown(shell: Shell, outbox: sqlite3.Connection) -> None:
    assert shell.run("outbox", "status", "--from", place(shell)).stdout == "0 rows wait\n"
    ask(outbox)
    ask(outbox, "tomorrow")
    ask(outbox, input="{nope")
    moved = shell.run("relay", "shop:jobs", "--from", place(shell), "--once", "--log", "error")
    assert f"relay of {place(shell)} ready\n" in moved.stdout
    (job,) = json.loads(shell.run("jobs", "list", "--json").stdout)["items"]
    assert job["kind"] == "order"
    said = shell.run("outbox", "status", "--from", place(shell), code=Exit.ATTENTION).stdout
    assert "1 row waits, the oldest since " in said
    assert [line.split()[0] for line in said.splitlines()[1:]] == ["CODE", "not_registered", "invalid", "SEQ", "3"]
    found = json.loads(shell.run("outbox", "status", "--from", place(shell), "--json", code=Exit.ATTENTION).stdout)
    assert (found["waiting"], found["put_off"], found["parked"]) == (1, {"not_registered": 1}, {"invalid": 1})
    (row,) = found["parked_rows"]
    assert (row["seq"], row["code"], row["detail"], len(row["id"])) == (3, "invalid", "input: the whole of it", 32)
    assert found["oldest_seconds"] >= 0
    assert shell.run("outbox", "retry", "--from", place(shell), "--code", "invalid").stdout == "1 row will be tried again\n"
    assert json.loads(shell.run("outbox", "retry", "--from", place(shell), "--json").stdout)["rows"] == 1
    shell.run("outbox", "status", "--from", place(shell))


def test_what_is_not_there_is_said_with_its_code(bare: Shell) -> None:
    gone = bare.run("outbox", "status", "--from", place(bare), code=Exit.UNAVAILABLE).output
    assert "(source_unavailable)" in gone
    assert not (bare.folder / "business.db").exists()
    sqlite3.connect(bare.folder / "business.db").close()
    bare.run("migrate")
    empty = bare.run("relay", "shop:jobs", "--from", place(bare), "--once", code=Exit.NOT_MIGRATED).output
    assert "outlast outbox sql --dialect sqlite" in empty
    assert "a-z" in bare.run("outbox", "status", "--from", place(bare), "--table", "a;b", code=Exit.INVALID).output
    assert "mariadb://" in bare.run("outbox", "status", "--from", "shop.db", code=Exit.INVALID).output
    bare.run("relay", "shop:jobs", code=Exit.INVALID)
    nowhere = f"sqlite:///{bare.folder}/nowhere.db"
    assert "(source_unavailable)" in bare.run("relay", "shop:jobs", "--from", nowhere, "--once", code=Exit.UNAVAILABLE).output


def test_on_a_store_that_is_not_migrated_it_ends(bare: Shell) -> None:
    db = sqlite3.connect(bare.folder / "business.db", isolation_level=None)
    db.executescript(bare.run("outbox", "sql", "--dialect", "sqlite").stdout)
    db.close()
    assert "outlast migrate" in bare.run("relay", "shop:jobs", "--from", place(bare), code=Exit.NOT_MIGRATED).output


@pytest.mark.slow
def test_it_goes_on_until_told_to_stop(shell: Shell, outbox: sqlite3.Connection) -> None:
    relay = shell.start("relay", "shop:jobs", "--from", place(shell), "--every", "0.02").ready()
    ask(outbox)
    until(lambda: outbox.execute("select count(*) from outlast_outbox").fetchone() == (0,), "the row is moved")
    relay.signal()
    assert relay.ended() == 0
    assert "1 row of the outbox became a job" in relay.log
