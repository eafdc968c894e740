"""Credits are granted once each, under kills, freezes and doubled claims, and none for an account that is gone (D3, A6)."""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from typing import Any

import psycopg
import pytest

from crash.bank import Grant, grant, grant_sync, jobs
from crash.stage import OWNER, Process, Stage, client, until

ACCOUNTS = ("ann", "bob", "cyd")
EACH = 16
ROUNDS = 14


def do(url: str, sql: str) -> list[tuple[Any, ...]]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)
        rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        connection.commit()
        connection.close()
        return rows
    with psycopg.connect(url) as pg:
        cursor = pg.execute(sql)
        return cursor.fetchall() if cursor.description else []


def granted(url: str) -> dict[str, int]:
    return dict(do(url, "select name, credits from account"))  # type: ignore[arg-type]


@pytest.fixture
def bank(stage: Stage) -> Stage:
    do(stage.url, "create table account (name varchar(50) primary key, credits integer not null)")
    for name in ACCOUNTS:
        do(stage.url, f"insert into account values ('{name}', 0)")
    return stage


def worker(stage: Stage) -> Process:
    command = ["-m", "outlast", "worker", "crash.bank:jobs", "--store", stage.url, "--lease", "1", "--grace", "1"]
    return stage.start([sys.executable, *command], env={"OUTLAST_STORE": stage.url}, wait=True)


@pytest.mark.timeout(150)
def test_each_credit_once_under_kills_and_freezes(bank: Stage) -> None:
    chance = random.Random(7)
    mine = client(bank.url, jobs, bank.store)
    ids = [
        mine.submit(grant if n % 2 else grant_sync, Grant(name, seconds=0.05), owner=OWNER, key=f"{name}-{n}").id
        for name in ACCOUNTS
        for n in range(EACH)
    ]
    gone = mine.submit(grant, Grant("dan"), owner=OWNER).id
    workers = [worker(bank) for _ in range(3)]
    frozen: list[Process] = []
    for number in range(ROUNDS):
        time.sleep(chance.uniform(0.05, 0.4))
        victim = workers.pop(0)
        if number % 2:
            victim.freeze()  # beyond its lease: others take over, then it comes back
            frozen.append(victim)
        else:
            victim.kill()
        if len(frozen) > 2:
            frozen.pop(0).thaw()
        workers.append(worker(bank))
    for one in frozen:
        one.thaw()
    bank.reached(ids, timeout=90)
    assert granted(bank.url) == dict.fromkeys(ACCOUNTS, EACH)
    until(lambda: bank.job(gone).state == "needs_attention", "the account that is gone is its owner's question")
    assert bank.job(gone).attention.code == "no_account"  # type: ignore[union-attr]
    assert granted(bank.url) == dict.fromkeys(ACCOUNTS, EACH)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)  # a file has no connection that could be lost
@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("task", [grant, grant_sync], ids=["commit", "transaction"])
@pytest.mark.timeout(90)
def test_a_commit_whose_answer_is_lost_is_there_once(bank: Stage, at: str, task: Any) -> None:
    """The connection is lost at the commit: before it reached the database, or after it took effect."""
    mine = client(bank.url, jobs, bank.store)
    job_id = mine.submit(task, Grant("ann"), owner=OWNER).id
    script = (
        "import psycopg\n"
        "execute, lost = psycopg.Connection.execute, []\n"
        "def losing(self, query, *args, **kwargs):\n"
        "    if query == 'commit' and not lost:\n"
        "        lost.append(1)\n"
        f"        if {at == 'after'}: execute(self, query)\n"
        "        self.pgconn.finish()\n"
        "        raise psycopg.OperationalError('the connection is lost')\n"
        "    return execute(self, query, *args, **kwargs)\n"
        "psycopg.Connection.execute = losing\n"
        "from outlast.cli.main import main\nmain()\n"
    )
    path = bank.folder / "losing.py"
    path.write_text(script)
    command = [sys.executable, str(path), "worker", "crash.bank:jobs", "--store", bank.url, "--lease", "1"]
    bank.start(command, env={"OUTLAST_STORE": bank.url}, wait=True)
    bank.reached([job_id])
    assert granted(bank.url)["ann"] == 1
