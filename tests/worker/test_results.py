"""What a handler or step gives back has to be what its annotation says: found when it is made, not by who reads it later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from outlast import Context, Outlast, Plan, Principal, SyncContext
from outlast.worker.runtime import Worker

WHO = Principal("acme", "ann")
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Sum:
    numbers: list[int]


def add_wrongly(numbers: list[int]) -> int:
    return cast("Any", str(sum(numbers)))


async def attention_of(jobs: Outlast, kind: str) -> str:
    handle = await jobs.submit(jobs.registry.kind(kind), Sum([1]), owner=WHO)
    job = await jobs.wait(handle.id, principal=WHO, timeout=0.01)
    for _ in range(100):
        if job.attention is not None or job.final:
            break
        job = await jobs.wait(handle.id, principal=WHO, timeout=0.1)
    assert job.attention is not None, job
    (task,) = await jobs.tasks(handle.id, principal=WHO)
    assert task.attempt == 1
    return job.attention.code


async def test_a_result_of_another_type_is_permanent_at_the_first_attempt(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task
    async def count(ctx: Context, wanted: Sum) -> int:
        return cast("Any", "three")

    await start(jobs)
    assert await attention_of(jobs, "count") == "result_invalid"
    await jobs.close()


async def test_a_step_of_another_type_is_not_stored(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task
    def count(ctx: SyncContext, wanted: Sum) -> int:
        return ctx.step("add", add_wrongly, wanted.numbers)

    await start(jobs)
    assert await attention_of(jobs, "count") == "result_invalid"
    page = await jobs.list(principal=WHO)
    assert (await jobs.recovery(page.items[0].id, principal=WHO)).steps == ()
    await jobs.close()


async def test_a_step_whose_annotation_cannot_be_read_does_not_run(url: str, start: Start) -> None:
    jobs, ran = Outlast(url), []

    def nowhere(numbers: list[int]) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        ran.append(numbers)

    @jobs.task
    def count(ctx: SyncContext, wanted: Sum) -> int:
        ctx.step("add", cast("Any", nowhere), wanted.numbers)
        return 1

    await start(jobs)
    assert await attention_of(jobs, "count") == "invalid"
    assert ran == []
    await jobs.close()


def test_a_context_that_only_type_checkers_import_is_taken(url: str) -> None:
    jobs = Outlast(url)

    async def work(ctx: OnlyForCheckers, wanted: Sum) -> int:  # type: ignore[name-defined]  # noqa: F821
        return 1

    @jobs.kind("sum")
    def plan_sum(plan: Plan[Sum], _input: Sum) -> None:
        plan.task(task, label="Add")

    task = jobs.task(cast("Any", work))
    assert task.name == "work"
