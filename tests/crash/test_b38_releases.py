"""Unknown task name, payload of another release (B38): nothing is discarded, nothing runs that a release cannot read, and nobody stops."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

import psycopg
import pytest

from crash import releases
from crash.releases import OPERATOR, Month, Period
from crash.stage import OWNER, Stage, auntil, client, until, working
from invariants import query
from outlast import JobView, Outlast
from outlast.cli.doctor_unfinished import checks_of
from outlast.store.programs import status


def submit(stage: Stage, app: Outlast, value: Any, kind: str = "report", **options: Any) -> str:
    """The id of a job that a web process of this release admitted."""
    return client(stage.url, app, stage.store).submit(app.registry.kind(kind), value, owner=OWNER, **options).id


def missing(stage: Stage, app: Outlast) -> dict[str, Any]:
    """What doctor has to say about unfinished work to who runs this release."""
    rows = stage.store.run_sync(status.unfinished_handlers())
    return {check.name: check.value for check in checks_of(rows, app.registry, "app") if check.level == "action"}


def untouched(stage: Stage, job: str) -> None:
    """Queued and visible, and no attempt was charged."""
    assert stage.job(job).state == "queued"
    first = stage.jobs.tasks(job, principal=OWNER)[0]
    assert (first.state, first.attempt, first.code) == ("queued", 0, None)
    entries = query(stage.url, "select fence, spent, holder from {queue_entry} where job_id = ?", [job])
    assert [tuple(entry.values()) for entry in entries] == [(0, 0, None)]
    assert stage.past(job) == []


async def completed(stage: Stage, *jobs: str) -> None:
    await auntil(lambda: all(stage.job(job).state == "completed" for job in jobs), f"completed: {[stage.job(job) for job in jobs]}")


async def asks(stage: Stage, job: str) -> JobView:
    await auntil(lambda: stage.job(job).state == "needs_attention", "attention")
    return stage.job(job)


def labels(stage: Stage, job: str) -> list[str]:
    return sorted(line["label"] for line in stage.starts(job))


def scribble(stage: Stage, job: str, text: str) -> None:
    """Writes an input by hand."""
    if stage.dialect == "sqlite":
        with sqlite3.connect(stage.url.partition(":///")[2], timeout=20) as lite:
            lite.execute("update outlast_job_input set input = ? where job_id = ?", (text, job))
        lite.close()
        return
    with psycopg.connect(stage.url, autocommit=True) as pg:
        pg.execute("update outlast.job_input set input = %s where job_id = %s", (text, job))


async def test_what_a_newer_release_admitted_waits_for_its_workers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_REHEARSAL_LEDGER", str(stage.ledger))
    newer = submit(stage, releases.new, Month("May"))
    async with working(stage.url, releases.old) as worker:
        await completed(stage, submit(stage, releases.old, Period("May")))  # behind it in the queue
        untouched(stage, newer)
        assert missing(stage, releases.old) == {
            "unfinished report@2:copy": 1,
            "unfinished report@2:mail": 1,
            "unfinished report@2:write": 1,
        }
        assert missing(stage, releases.new) == {}
        async with working(stage.url, releases.new):
            await completed(stage, newer)
        assert not worker._stop.is_set()
    assert labels(stage, newer) == ["Copy", "Mail", "Text"]


async def test_what_an_older_release_admitted_waits_for_a_release_that_can_read_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_REHEARSAL_LEDGER", str(stage.ledger))
    older = submit(stage, releases.old, Period("May"))
    async with working(stage.url, releases.without_upgrade):
        await completed(stage, submit(stage, releases.new, Month("May")))
        untouched(stage, older)
        assert missing(stage, releases.without_upgrade) == {"unfinished report@1:mail": 1, "unfinished report@1:write": 1}
    assert missing(stage, releases.new) == {}
    async with working(stage.url, releases.new):
        await completed(stage, older)
    assert labels(stage, older) == ["Mail", "Text"], "the plan is that of the release which admitted it"
    assert stage.jobs.result(older, principal=OWNER) == "Report of May"


@pytest.mark.parametrize("name", ["failing", "misfitting"])
async def test_what_cannot_be_brought_up_needs_attention_and_completes_under_a_release_that_can(stage: Stage, name: str) -> None:
    wrong: Outlast = getattr(releases, name)
    job = submit(stage, releases.old, Period("May"))
    async with working(stage.url, wrong) as worker:
        await completed(stage, submit(stage, wrong, Month("May")))
        question = (await asks(stage, job)).attention
        assert question is not None
        assert (question.code, question.actions) == ("payload_incompatible", ("retry", "dismiss"))
        assert "MARKER" not in question.message
        assert stage.past(job) == [("Text", 1, "payload_incompatible")], "no second attempt: it is permanent"
        (attempt,) = query(stage.url, "select detail from {attempt} where job_id = ?", [job])
        assert ("LookupError: MARKER May" if name == "failing" else "/month") in attempt["detail"], "for operators"
        assert not worker._stop.is_set()
    async with working(stage.url, releases.new):
        client(stage.url, releases.new, stage.store).replay(job, principal=OPERATOR, reason="The upgrade was corrected.")
        await completed(stage, job)
    assert [fence for _, fence in ends(stage, job)] == [2, 1], "the same job, with a new attempt"


def ends(stage: Stage, job: str) -> list[tuple[str, int]]:
    return [(row["label"], row["fence"]) for row in query(stage.url, "select label, fence from {task} where job_id = ? order by no", [job])]


async def test_a_task_that_the_new_release_has_no_more_waits_for_one_that_has(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_REHEARSAL_LEDGER", str(stage.ledger))
    jobs = [submit(stage, releases.old, Period(month), "fax-report") for month in ("May", "June")]
    async with working(stage.url, releases.new):
        await auntil(lambda: all(stage.task(job, "Text").state == "completed" for job in jobs), "the texts")
        await completed(stage, submit(stage, releases.new, Month("May")))
        assert all(stage.task(job, "Fax").state == "queued" for job in jobs)
        assert all(stage.job(job).usable_at is not None for job in jobs)
        assert missing(stage, releases.new) == {"unfinished fax-report@1:fax": 2}
    async with working(stage.url, releases.new_with_fax):  # the new release, with the task kept for the jobs that still have it
        await completed(stage, *jobs)
    assert Counter(labels(stage, jobs[0])) == {"Text": 1, "Fax": 1}
    last = submit(stage, releases.old, Period("July"), "fax-report")
    async with working(stage.url, releases.new):
        await auntil(lambda: stage.task(last, "Text").state == "completed", "the text")
    async with working(stage.url, releases.old):  # or a worker of the old one
        await completed(stage, last)


async def test_a_payload_that_was_edited_into_nonsense_stops_nobody_else(stage: Stage) -> None:
    job, present = submit(stage, releases.old, Period("May")), submit(stage, releases.new, Month("May"))
    (kept,) = query(stage.url, "select input from {job_input} where job_id = ?", [job])
    nonsense = "{not json" if stage.dialect == "sqlite" else '"\\ud800"'
    scribble(stage, job, nonsense)
    scribble(stage, present, nonsense)
    async with working(stage.url, releases.new) as worker:
        await completed(stage, submit(stage, releases.new, Month("June")))
        for one in (job, present):
            question = (await asks(stage, one)).attention
            assert question is not None
            assert (question.code, stage.past(one)) == ("payload_incompatible", [("Text", 1, "payload_incompatible")])
        assert not worker._stop.is_set()
        scribble(stage, job, kept["input"] if isinstance(kept["input"], str) else '{"period":"May","seconds":0}')
        client(stage.url, releases.new, stage.store).replay(job, principal=OPERATOR, reason="The row was restored.")
        await completed(stage, job)


async def test_a_rerun_of_an_old_job_is_one_of_the_present_version(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_REHEARSAL_LEDGER", str(stage.ledger))
    job = submit(stage, releases.old, Period("May"))
    async with working(stage.url, releases.old):
        await completed(stage, job)
    again = client(stage.url, releases.new, stage.store)
    first = again.rerun(job, principal=OWNER, key="again")
    assert again.rerun(job, principal=OWNER, key="again").id == first.id
    async with working(stage.url, releases.new):
        await completed(stage, first.id)
    assert labels(stage, first.id) == ["Copy", "Mail", "Text"], "planned anew"


async def test_an_effect_has_the_same_key_in_every_release(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old release's worker dies between the call and its outcome; the new one repeats the call, and the provider knows it."""
    monkeypatch.setenv("OUTLAST_REHEARSAL_LEDGER", str(stage.ledger))
    hooks = [{"op": "settle", "at": "before", "do": "kill"}]
    victim = stage.worker(target="crash.releases:old", hooks=hooks)
    job = submit(stage, releases.old, Period("May"))
    assert victim.ended() == -9
    async with working(stage.url, releases.new):
        await completed(stage, job)
    called = stage.lines(job, event="effect")
    assert len(called) == 2
    assert len({line["label"] for line in called}) == 1, "one key"
    (row,) = query(stage.url, "select provider_key, state from {effect} where job_id = ?", [job])
    assert tuple(row.values()) == (called[0]["label"], "confirmed")


async def test_what_was_stored_as_another_type_is_neither_lost_nor_repeated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_REHEARSAL_LEDGER", str(stage.ledger))
    job = submit(stage, releases.receipts_half, releases.Charge("a1"), "charge")
    async with working(stage.url, releases.receipts_half):
        await auntil(lambda: stage.job(job).attention_count == 3, "all three")
    before = {table: query(stage.url, f"select * from {{{table}}} where job_id = ?", [job]) for table in ("step", "output", "effect")}
    assert all(len(rows) == 1 for rows in before.values())
    async with working(stage.url, releases.bills):
        client(stage.url, releases.bills, stage.store).replay(job, principal=OPERATOR, reason="A new release is out.")
        await auntil(lambda: stage.job(job).attention_count == 3, "all three again")
    past = [(label, code) for label, _, code in stage.past(job) if label != "First"]
    assert sorted(past[3:]) == [(label, "stored_incompatible") for label in ("Charges", "Reads", "Steps")]
    details = query(stage.url, "select detail from {attempt} where job_id = ? and code = 'stored_incompatible'", [job])
    assert all("does not fit Bill: /number: missing" in row["detail"] for row in details), details
    assert {table: query(stage.url, f"select * from {{{table}}} where job_id = ?", [job]) for table in before} == before
    async with working(stage.url, releases.receipts):
        client(stage.url, releases.receipts, stage.store).replay(job, principal=OPERATOR, reason="It reads receipts again.")
        await completed(stage, job)
    assert len(stage.lines(job, event="effect")) == 1, "the account was charged once"
    assert Counter(labels(stage, job)) == {"First": 1, "Steps": 3, "Reads": 3, "Charges": 3}


@pytest.mark.timeout(90)
def test_old_and_new_workers_share_a_store_both_ways_while_they_are_killed(stage: Stage) -> None:
    """A deploy that goes on, and one that is taken back, with jobs of both releases under way all the time."""
    slow = {"op": "finish", "at": "before", "do": "kill", "count": 2}
    old = stage.worker(target="crash.releases:old", hooks=[slow], queues={"default": 3}, wait=False)
    of_old = [submit(stage, releases.old, Period(f"May {n}", 0.05)) for n in range(6)]
    new = stage.worker(target="crash.releases:new", queues={"default": 3}, wait=False)
    of_new = [submit(stage, releases.new, Month(f"May {n}", 0.05)) for n in range(4)]
    assert old.ended() == -9
    stage.reached([*of_old, *of_new])  # the new release alone does all of it

    held = submit(stage, releases.new, Month("June", 1.0))
    stage.started(held)
    new.kill()
    back = stage.worker(target="crash.releases:old", queues={"default": 3})
    after = [submit(stage, releases.old, Period(f"June {n}")) for n in range(3)]
    waiting = submit(stage, releases.new, Month("July"))
    stage.reached(after)
    untouched(stage, waiting)
    until(lambda: stage.past(held) == [("Text", 1, "worker_lost")], "the old release recovers what it could not run")
    assert (stage.task(held, "Text").state, len(stage.starts(held))) == ("retrying", 1)
    stage.worker(target="crash.releases:new", queues={"default": 3}, wait=False)
    stage.reached([waiting, held])
    assert ("Text", 2, None) in stage.past(held)
    assert back.alive

    for job in (*of_old, *of_new, *after, waiting, held):
        keys = {line["label"] for line in stage.lines(job, event="effect")}
        rows = query(stage.url, "select provider_key, state from {effect} where job_id = ?", [job])
        assert [(row["provider_key"], row["state"]) for row in rows] == [(key, "confirmed") for key in keys], "one mail, under one key"
        assert len(stage.lines(job, event="step")) <= 1 + len([c for _, _, c in stage.past(job) if c == "worker_lost"])
    until(lambda: not query(stage.url, "select 1 from {queue_entry}"), "nothing is left")
