"""Rights and data of now: what was allowed and there when it was asked for may be neither when a worker begins with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from outlast import Context, Invalid, JobView, Outlast, Permanent, Plan, Principal, SyncContext
from outlast.worker.runtime import Worker

WHO = Principal("acme", "ann", roles=["editor"], claims={"team": "north", "secret": "x"})
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Row:
    id: str


@dataclass
class Host:
    """The rows and rights of an application, as they are now."""

    rows: dict[str, str] = field(default_factory=lambda: {"r1": "as it was"})
    editors: set[str] = field(default_factory=lambda: {"ann"})
    asked: list[tuple[Principal, JobView, bool]] = field(default_factory=list[tuple[Principal, JobView, bool]])
    ran: list[str] = field(default_factory=list[str])
    error: Exception | None = None

    def may(self, owner: Principal, job: JobView) -> bool:
        self.asked.append((owner, job, threading.current_thread() is threading.main_thread()))
        if self.error is not None:
            raise self.error
        return owner.subject in self.editors

    async def may_async(self, owner: Principal, job: JobView) -> bool:
        await asyncio.sleep(0)
        return self.may(owner, job)

    def may_later(self, owner: Principal, job: JobView) -> Awaitable[bool]:
        return self.may_async(owner, job)


def application(url: str, host: Host, ask: Any, *, optional: bool = False) -> Outlast:
    jobs = Outlast(url, base_url="https://shop.example")

    @jobs.task(max_attempts=2, deadline=5)
    async def copy(ctx: Context, row: Row) -> str:
        host.ran.append(row.id)
        if row.id not in host.rows:
            raise Permanent("input_gone", "The row is no longer there.")
        return host.rows[row.id]

    @jobs.task(max_attempts=2)
    def extra(ctx: SyncContext, row: Row) -> str:
        host.ran.append("extra")
        return ""

    @jobs.kind("copy-row", still_permitted=ask, keep_claims=["team"])
    def copy_row(plan: Plan[Row], input: Row) -> None:
        text = plan.task(copy, label="Copy")
        if optional:
            plan.task(extra, label="Extra", after=[text], optional=True)

    return jobs


@pytest.fixture
def host() -> Host:
    return Host()


async def submitted(jobs: Outlast) -> str:
    return (await jobs.submit(cast("Any", jobs.registry.kind("copy-row")), Row("r1"), owner=WHO)).id


async def until(jobs: Outlast, job_id: str, holds: Callable[[JobView], bool]) -> JobView:
    for _ in range(1_500):
        if holds(job := await jobs.get(job_id, principal=WHO)):
            return job
        await asyncio.sleep(0.02)
    raise AssertionError(job)


def settled(job: JobView) -> bool:
    return job.final or job.attention is not None


@pytest.mark.parametrize("form", ["may", "may_async", "may_later"])
async def test_the_owner_and_the_job_of_now_are_asked_about_before_each_attempt(url: str, start: Start, host: Host, form: str) -> None:
    jobs = application(url, host, getattr(host, form), optional=True)
    job_id = await submitted(jobs)
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert (job.outcome, host.ran) == ("succeeded", ["r1", "extra"])
    first, second = host.asked
    owner, seen, on_the_loop = first
    assert (owner.tenant, owner.subject, owner.roles, dict(owner.claims)) == ("acme", "ann", {"editor"}, {"team": "north"})
    assert (seen.id, seen.kind, seen.state, seen.url) == (job_id, "copy-row", "running", f"https://shop.example/v1/jobs/{job_id}")
    assert (first[1].progress.done, second[1].progress.done) == (0, 1), "as it stands now"
    assert on_the_loop is (form != "may"), "a def is asked in a thread"
    await jobs.close()


@pytest.mark.parametrize("form", ["may", "may_async"])
async def test_a_right_that_was_taken_away_ends_it_for_good_before_anything_ran(url: str, start: Start, host: Host, form: str) -> None:
    jobs = application(url, host, getattr(host, form))
    job_id = await submitted(jobs)
    host.editors.clear()
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert job.attention is not None
    assert (job.state, job.attention.code, job.attention.actions) == ("needs_attention", "not_permitted", ("retry", "dismiss"))
    assert "You may no longer have this done" in job.attention.message
    assert (host.ran, len(host.asked)) == ([], 1), "a permanent failure: no second attempt"
    host.editors.add("ann")
    await jobs.act(job_id, job.attention.id, action="retry", principal=WHO)
    assert (await until(jobs, job_id, settled)).outcome == "succeeded"
    await jobs.close()


async def test_optional_work_that_is_not_permitted_any_more_takes_nothing_away(url: str, start: Start, host: Host) -> None:
    def may(owner: Principal, job: JobView) -> bool:
        return job.progress.done == 0

    jobs = application(url, host, may, optional=True)
    job_id = await submitted(jobs)
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert (job.outcome, host.ran) == ("succeeded_with_problems", ["r1"])
    _, extra = await jobs.tasks(job_id, principal=WHO)
    assert (extra.state, extra.code) == ("failed", "not_permitted")
    await jobs.close()


@pytest.mark.parametrize("form", ["may", "may_async"])
async def test_what_cannot_be_learnt_is_tried_again_and_never_run(url: str, start: Start, host: Host, form: str) -> None:
    host.error = ConnectionError("the directory of rights does not answer")
    jobs = application(url, host, getattr(host, form))
    job_id = await submitted(jobs)
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert job.attention is not None
    assert (job.attention.code, host.ran) == ("permission_unknown", [])
    assert "directory" not in job.attention.message
    past = await jobs.recovery(job_id, principal=WHO)
    assert [a.code for a in past.attempts] == ["permission_unknown", "permission_unknown"], "transient: both attempts were used"
    await jobs.close()


@pytest.mark.parametrize("said", [None, 0, 1, "no", ""])
async def test_only_true_and_false_are_answers(url: str, start: Start, host: Host, said: Any) -> None:
    jobs = application(url, host, lambda owner, job: said)
    job_id = await submitted(jobs)
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert job.attention is not None
    assert (job.attention.code, host.ran) == ("permission_unknown", [])
    await jobs.close()


@pytest.mark.timeout(40)
async def test_a_hook_that_hangs_ends_with_the_attempts_deadline(url: str, start: Start, host: Host) -> None:
    async def may(owner: Principal, job: JobView) -> bool:
        host.asked.append((owner, job, True))
        await asyncio.sleep(600 if len(host.asked) == 1 else 0)
        return True

    jobs = application(url, host, may)
    job_id = await submitted(jobs)
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert (job.outcome, host.ran, len(host.asked)) == ("succeeded", ["r1"], 2)
    await jobs.close()


async def test_a_cancel_while_it_is_asked_runs_nothing(url: str, start: Start, host: Host) -> None:
    asked = asyncio.Event()

    async def may(owner: Principal, job: JobView) -> bool:
        asked.set()
        await asyncio.sleep(600)
        return True

    jobs = application(url, host, may)
    job_id = await submitted(jobs)
    await start(jobs)
    await asyncio.wait_for(asked.wait(), 15)
    await jobs.cancel(job_id, principal=WHO)
    job = await until(jobs, job_id, lambda job: job.final and not job.stopping)
    assert (job.outcome, host.ran) == ("user", [])
    await jobs.close()


async def test_a_row_that_was_deleted_is_said_in_words(url: str, start: Start, host: Host) -> None:
    jobs = application(url, host, host.may)
    job_id = await submitted(jobs)
    host.rows.clear()
    await start(jobs)
    job = await until(jobs, job_id, settled)
    assert job.attention is not None
    assert (job.attention.code, job.attention.message, len(host.ran)) == ("input_gone", "The row is no longer there.", 1)
    await jobs.close()


async def test_a_row_that_was_changed_is_read_as_it_is_now(url: str, start: Start, host: Host) -> None:
    jobs = application(url, host, host.may)
    job_id = await submitted(jobs)
    host.rows["r1"] = "as it is now"
    await start(jobs)
    await until(jobs, job_id, settled)
    assert await jobs.result(job_id, principal=WHO) == "as it is now"
    await jobs.close()


def test_what_is_no_function_is_refused_when_it_is_registered() -> None:
    jobs = Outlast("sqlite:///never-opened.db")
    with pytest.raises(Invalid, match="still_permitted"):
        jobs.kind("k", still_permitted=cast("Any", "yes"))
