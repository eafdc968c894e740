"""What a rehearsed task does, member by member."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import pytest

from crash.stage import OWNER, Stage, auntil, working
from invariants import query
from outlast import Attention, JobView
from outlast.rehearsal import app
from outlast.rehearsal.handlers import rehearse, rehearse_in_thread
from outlast.rehearsal.ledger import FILE
from outlast.rehearsal.model import Part, Rehearsal

BOTH = pytest.mark.parametrize("sync", [False, True], ids=["async", "thread"])


async def ended(stage: Stage, job: str, state: str = "completed") -> JobView:
    """The job, once it is final or needs its owner."""

    def there() -> JobView | None:
        view = stage.job(job)
        return view if view.final or view.attention else None

    view = await auntil(there, "an end")
    assert view is not None
    assert view.state == state
    return view


async def asked(stage: Stage, job: str) -> Attention:
    view = await ended(stage, job, "needs_attention")
    assert view.attention is not None
    return view.attention


def output(stage: Stage, job: str, label: str = "A", *, sync: bool = False) -> Any:
    return stage.jobs.result(job, rehearse_in_thread if sync else rehearse, principal=OWNER, label=label)


@BOTH
async def test_an_attempt_writes_one_line_when_it_starts_and_one_when_it_ends(stage: Stage, *, sync: bool) -> None:
    before = time.time()
    async with working(stage.url, app) as worker:
        job = stage.submit({"label": "A", "sync": sync})
        await ended(stage, job)
    start, end = stage.lines()
    time_of_start = start.pop("time")
    assert before <= time_of_start <= end.pop("time") <= time.time()
    same = {"job": job, "label": "A", "step": None, "attempt": 1, "fence": 1, "pid": os.getpid(), "worker": worker.id}
    assert start == {"event": "start", **same}
    assert end == {"event": "end", **same}


async def test_without_a_ledger_nothing_is_written(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE)
    async with working(stage.url, app):
        await ended(stage, stage.submit({"label": "A", "steps": 1}))
    assert not stage.ledger.exists()


@BOTH
async def test_steps_that_were_stored_are_not_worked_again(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        job = stage.submit({"label": "A", "sync": sync, "steps": 3, "seconds": 0.01, "fail": {"times": 2}}, retry_base=0)
        await ended(stage, job)
    assert [(line["event"], line["step"], line["fence"]) for line in stage.lines(job)] == [
        ("start", None, 1),
        ("step", 1, 1),
        ("step", 2, 1),
        ("step", 3, 1),
        ("start", None, 2),
        ("start", None, 3),
        ("end", None, 3),
    ]
    assert stage.past(job) == [("A", 1, "rehearsed"), ("A", 2, "rehearsed"), ("A", 3, None)]
    (row,) = query(stage.url, "select code, detail from {attempt} where fence = 1")
    assert "Retry" in row["detail"]


async def test_a_failure_waits_as_long_as_the_provider_asks_for(stage: Stage) -> None:
    async with working(stage.url, app):
        job = stage.submit({"label": "A", "fail": {"times": 1, "code": "provider_busy", "retry_after": 0.5}}, retry_base=0)
        await ended(stage, job)
    first, second = stage.starts(job)
    assert second["time"] - first["time"] >= 0.49
    assert stage.past(job)[0] == ("A", 1, "provider_busy")


@BOTH
async def test_a_permanent_failure_needs_its_owner_at_once_and_retries_count_by_fence(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        job = stage.submit({"label": "A", "sync": sync, "fail": {"times": 2, "kind": "permanent", "code": "no_such_page"}})
        for fence in (1, 2):
            question = await asked(stage, job)
            assert (question.code, question.id) == ("no_such_page", f"0.{fence}")
            stage.jobs.act(job, question.id, action="retry", principal=OWNER)
            await auntil(lambda fence=fence: len(stage.starts(job)) > fence, "the retry")
        await ended(stage, job)
    assert [(line["attempt"], line["fence"]) for line in stage.starts(job)] == [(1, 1), (1, 2), (1, 3)]


RAISED = ("RuntimeError", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "StopIteration", "UnicodeDecodeError", "BaseExceptionGroup")


@BOTH
async def test_any_exception_is_a_transient_failure_and_the_worker_lives(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        jobs = {name: stage.submit({"label": "A", "sync": sync, "raise": name}, max_attempts=2, retry_base=0) for name in RAISED}
        for name, job in jobs.items():
            question = await asked(stage, job)
            assert question.code == "error", name
            assert stage.past(job) == [("A", 1, "error"), ("A", 2, "error")]
            (detail, _) = query(stage.url, "select detail from {attempt} where job_id = ?", [job])
            assert name in detail["detail"] or name == "StopIteration"  # Python makes a RuntimeError of it
        await ended(stage, stage.submit({"label": "A"}))


@BOTH
async def test_a_question_is_asked_once_and_its_answer_comes_back(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        body = {"label": "A", "sync": sync, "ask": {"code": "needs_choice", "actions": ["retry", "answer"]}, "fail": {"times": 2}}
        answered, retried = (stage.submit(body, retry_base=0) for _ in range(2))
        for job in (answered, retried):
            question = await asked(stage, job)
            assert (question.code, question.actions) == ("needs_choice", ("retry", "answer", "dismiss"))
            assert stage.past(job) == [("A", 1, "needs_choice")]
        stage.jobs.act(answered, question_of(stage, answered), action="answer", input={"pick": 2}, principal=OWNER)
        stage.jobs.act(retried, question_of(stage, retried), action="retry", principal=OWNER)
        for job in (answered, retried):
            await ended(stage, job)
            assert [(line["attempt"], line["fence"]) for line in stage.starts(job)] == [(1, 1), (1, 2), (2, 3)]
    assert output(stage, answered, sync=sync).answer == {"pick": 2}
    assert output(stage, retried, sync=sync).answer is None


def question_of(stage: Stage, job: str) -> str:
    question = stage.job(job).attention
    assert question is not None
    return question.id


@BOTH
async def test_optional_work_that_asks_can_be_skipped(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        job = stage.submit(
            {"label": "A", "usable": True},
            {"label": "B", "sync": sync, "optional": True, "ask": {"code": "worth_it", "actions": ["skip"]}},
        )
        question = await asked(stage, job)
        assert question.actions == ("skip", "dismiss")
        stage.jobs.act(job, question.id, action="skip", principal=OWNER)
        view = await ended(stage, job)
    assert (view.outcome, view.usable_at is not None) == ("succeeded_with_problems", True)
    assert len(stage.starts(job, "B")) == 1


async def test_an_output_is_as_large_as_wanted_and_too_large_on_request(stage: Stage) -> None:
    async with working(stage.url, app):
        fits, bursts = (stage.submit({"label": "A", "output_bytes": size}) for size in (10_000, 2_000_000))
        await ended(stage, fits)
        assert (await asked(stage, bursts)).code == "result_invalid"
    made = output(stage, fits)
    assert (made.label, made.attempt, made.fence, len(made.data)) == ("A", 1, 1, 10_000)


async def test_tasks_wait_for_what_they_come_after(stage: Stage) -> None:
    async with working(stage.url, app):
        job = stage.submit(
            {"label": "join", "after": ["left", "right"]}, {"label": "left", "seconds": 0.1}, {"label": "right", "sync": True}
        )
        await ended(stage, job)
    assert [task.label for task in stage.jobs.tasks(job, principal=OWNER)] == ["left", "right", "join"]
    assert stage.lines(job)[-2]["label"] == stage.lines(job)[-1]["label"] == "join"


@BOTH
async def test_work_stops_at_its_deadline_and_looks_often(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        job = stage.submit({"label": "A", "sync": sync, "seconds": 30, "deadline": 0.3}, max_attempts=1)
        assert (await asked(stage, job)).code == "deadline_exceeded"
    assert not stage.lines(job, event="end")


async def test_blocking_blocks_the_loop_of_a_coroutine_and_only_a_thread_otherwise(stage: Stage) -> None:
    async with working(stage.url, app):
        for sync in (False, True):
            job = stage.submit({"label": "A", "sync": sync, "block_seconds": 1.0})
            longest, last = 0.0, time.monotonic()
            while not stage.lines(job, event="end"):
                await asyncio.sleep(0.01)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            assert (longest >= 0.95) == (not sync)


@BOTH
async def test_a_task_of_the_rehearsal_does_nothing_as_a_job_of_its_own(stage: Stage, *, sync: bool) -> None:
    async with working(stage.url, app):
        task = rehearse_in_thread if sync else rehearse
        job = stage.jobs.submit(task, Rehearsal(tasks=(Part(label="A"),)), owner=OWNER).id
        assert (await asked(stage, job)).code == "not_rehearsed"


async def test_a_key_holds_its_tasks_to_its_limit(stage: Stage) -> None:
    async with working(stage.url, app):
        part = {"seconds": 0.1, "key": "provider"}
        job = stage.submit(*({"label": f"two {n}", **part, "limit": 2} for n in range(4)), {"label": "free", "seconds": 0.1})
        await ended(stage, job)
    at_once = most = 0
    for line in stage.lines(job):
        if line["label"] != "free":
            at_once += 1 if line["event"] == "start" else -1
            most = max(most, at_once)
    assert most == 2
