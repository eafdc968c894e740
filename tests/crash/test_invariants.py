"""The checker itself: it finds each kind of damage, so that its silence says something."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.stage import OWNER, Stage, auntil, working
from invariants import check, problems, unsettled
from outlast.rehearsal import app
from outlast.store.open import migrate

KEY = "tenant, owner, key, fingerprint, job_id"
EFFECT = "tenant, effect_root, label, name, input_hash, job_id, no, fence, provider_key, state, timeout_ms, begun_at"
DAMAGE = [
    ("update outlast_job set open = open + 1 where state = 'completed'", "D6: open is 1"),
    ("update outlast_job set state = 'open', outcome = null where state = 'completed'", "D6: the rows give the state completed"),
    ("update outlast_job set outcome = 'succeeded' where state = 'completed'", "D6: the outcome"),
    ("update outlast_job set finished_at = null", "D7: finished_at"),
    ("update outlast_job set usable_at = null", "D8: usable_at is None"),
    ("update outlast_job set version = 99", "D10: version 99"),
    ("update outlast_job set version = 1", "D10: version 1"),
    ("update outlast_task set state = 'open' where state = 'completed'", "A5: open, and no entry stands"),
    ("update outlast_task set state = 'blocked' where label = 'C'", "D9: blocked with deps_left 0"),
    ("update outlast_task set fence = 1 where label = 'B'", "D1: the claim that completed it also failed"),
    ("update outlast_task set spent = 2 where label = 'B'", "C7: 2 attempts spent, the rows give [1]"),
    ("update outlast_task set worker = null where label = 'A'", "D2: completed by nobody"),
    ("update outlast_task set state = 'cancelled' where label = 'D'", "E1: a task is cancelled, and the job is not"),
    ("update outlast_attempt set number = 3 where no = 1", "C7: fence 1 was attempt 3"),
    ("update outlast_attempt set fence = 9 where no = 1", "C1: an attempt of fence 9"),
    ("update outlast_step set fence = 9", "C2: steps"),
    ("update outlast_edge set soft = 1", "A5: the edge 0 -> 2 has the wrong softness"),
    ("update outlast_attention set actions = 'retry'", "D11: the actions ['retry']"),
    ("update outlast_attention set resolved_at = null", "F1: 1 open questions"),
    ("update outlast_attention set code = 'Boom: /etc/passwd'", "F7: the code"),
    ("update outlast_queue_entry set revoked = 1", "E1: an entry with revoked = 1"),
    ("update outlast_queue_entry set lease_until = 5", "C3: not held, and lease_until is 5"),
    ("update outlast_queue_entry set spent = 3", "F1: 3 of 3 attempts spent"),
    ("update outlast_queue_entry set ready_at = null, due_at = null", "B1: waits for nothing"),
    ("update outlast_slot set job_id = (select id from outlast_job), no = 0, fence = 1 where n = 1", "C8: slot 1 of 'k' is lost"),
    ("update outlast_slot set no = 0 where n = 1", "C8: slot 1 of 'k' is taken by half"),
    ("update outlast_queue_entry set slot_key = 'k', slot_limit = 1, holder = 'w:1'", "has 0 slots of 'k'"),
    ("update outlast_queue_entry set slot_key = 'k', slot_limit = 1", "A5: the entry is not of this task"),
    ("delete from outlast_queue_entry", "A5: open, and no entry stands"),
    ("delete from outlast_output", "D3: no output"),
    ("delete from outlast_task where label = 'A'", "A5: tasks"),
    ("delete from outlast_job_input", "A5: 0 input rows"),
    ("delete from outlast_attention", "C7:"),
    ("delete from outlast_job", "I1: a row of task of the job"),
    (f"insert into outlast_submission ({KEY}) values ('acme', 'ann', 'k', 'f', 'gone')", "I1: a row of submission of the job gone"),
    (
        f"insert into outlast_submission ({KEY}, purged_at) values ('acme', 'ann', 'k', 'f', 'gone', 1)",
        "I1: a row of submission of the job gone",
    ),
    (
        f"insert into outlast_submission ({KEY}, purged_at) select tenant, owner, 'k', 'f', id, 1 from outlast_job limit 1",
        "I1: the key 'k' says that job",
    ),
    (
        f"insert into outlast_effect ({EFFECT}) values ('acme', 'gone', 'A', 'mail', 'x', 'gone', 0, 1, 'k', 'intended', 1, 1)",
        "I1: a row of effect of the job gone",
    ),
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


async def test_each_kind_of_damage_is_found(story: Stage, damaged: sqlite3.Connection) -> None:
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
