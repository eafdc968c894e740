"""The check after each of these tests: it asks the product's rules and its own, so that its silence says something."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.stage import OWNER, Stage, auntil, working
from invariants import check, problems, unsettled
from outlast.rehearsal import app
from outlast.store.open import migrate

DAMAGE = [
    ("update outlast_job set open = open + 1 where state = 'completed'", "D6 counters: job"),
    ("delete from outlast_output", "D3 output: job"),
    ("update outlast_slot set job_id = (select id from outlast_job), no = 0, fence = 1 where n = 1", "C8 taken: job"),
    ("update outlast_job set finished_at = accepted_at - 1 where state = 'completed'", "D6: the job"),
    ("update outlast_attempt set started_at = ended_at + 1", "D6: an attempt of the job"),
    ("update outlast_task set started_at = 1 where label = 'C'", "D9: a task of the job"),
]


@pytest.fixture
async def story(tmp_path: Path) -> Stage:
    """A completed job with a retry, a step, a question and an optional failure; a cancelled one; one that waits."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    stage = Stage(url, tmp_path)
    async with working(url, app):
        job = stage.submit(
            {"label": "A", "steps": 1},
            {"label": "B", "fail": {"times": 1}},
            {"label": "C", "after": ["A"], "ask": {}},
            {"label": "D", "optional": True, "fail": {"times": 9}},
            {"label": "K", "key": "k", "limit": 2},
            max_attempts=3,
            retry_base=0,
        )
        await auntil(lambda: stage.job(job).attention, "the question")
        question = stage.job(job).attention
        assert question is not None
        stage.jobs.act(job, question.id, action="retry", principal=OWNER)
        await auntil(lambda: stage.job(job).final, "the end")
    plain = stage.submit({"label": "A"})
    stage.jobs.cancel(plain, principal=OWNER)
    stage.submit({"label": "waits"})
    stage.store.close_sync()
    return stage


async def test_a_sound_store_is_passed(story: Stage) -> None:
    check(story.url)
    assert len(unsettled(story.url)) == 2
    with pytest.raises(AssertionError, match="has an entry"):
        check(story.url, settled=True)


@pytest.fixture
def damaged(story: Stage) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(story.url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("pragma synchronous = off")
    yield connection
    connection.close()


async def test_damage_is_found(story: Stage, damaged: sqlite3.Connection) -> None:
    tables = [row[0] for row in damaged.execute("select name from sqlite_master where type = 'table' and name like 'outlast_%'")]
    kept = {table: damaged.execute(f"select * from {table}").fetchall() for table in tables}
    for statement, said in DAMAGE:
        damaged.execute(statement)
        assert any(said in line for line in problems(story.url)), (statement, problems(story.url))
        for table, rows in kept.items():
            damaged.execute(f"delete from {table}")
            if rows:
                damaged.executemany(f"insert into {table} values ({','.join('?' * len(rows[0]))})", rows)
    check(story.url)
