"""What a release does with the jobs of an earlier one beside running them: rights, results that are there, and reading them back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from outlast import Completion, Context, Invalid, JobView, Outlast, Plan, Principal, TargetRef
from outlast.worker.runtime import Worker

WHO = Principal("acme", "ann")
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Draft:
    text: str


@dataclass
class Sheet:
    lines: list[str]


class Release:
    """One release of the application, on a store."""

    def __init__(self, url: str, version: int, *, upgrade: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> None:
        self.asked: list[str] = []
        self.put: list[tuple[str, str, object]] = []
        self.jobs = jobs = Outlast(url)
        put, asked = self.put, self.asked

        @jobs.target("document")
        def put_text(db: Any, ref: str, expected: str, text: str) -> str | None:
            put.append((ref, expected, text))
            return str(int(expected) + 1)

        if version == 1:

            @jobs.task
            async def write(ctx: Context, draft: Draft) -> Completion[str]:
                return ctx.attach(draft.text)

        else:

            @jobs.task(name="write")
            async def write_lines(ctx: Context, sheet: Sheet) -> Completion[str]:
                return ctx.attach("\n".join(sheet.lines))

        def may(owner: Principal, job: JobView) -> bool:
            asked.append(job.id)
            return True

        task: Any = jobs.registry.tasks["write"]

        def build(plan: Plan[Any], given: Any) -> None:
            plan.task(task, label="Text", usable=True)

        build.__annotations__.update(plan=Plan, given=Draft if version == 1 else Sheet)
        self.kind = jobs.kind("letter", version=version, target=put_text, still_permitted=may)(build)
        if upgrade is not None:
            self.kind.upgrade(from_version=1)(upgrade)

    async def ends(self, job_id: str) -> JobView:
        return await self.jobs.wait(job_id, principal=WHO, timeout=15)


def lines_of(old: dict[str, Any]) -> dict[str, Any]:
    return {"lines": old["text"].split("\n")}


async def submitted(release: Release) -> str:
    return (await release.jobs.submit(release.kind, Draft("one\ntwo"), owner=WHO, target=TargetRef("d1", "1"))).id


async def test_an_old_job_is_asked_about_by_the_kind_as_it_is_now(url: str, start: Start) -> None:
    old, new = Release(url, 1), Release(url, 2, upgrade=lines_of)
    job = await submitted(old)
    await start(new.jobs)
    assert (await new.ends(job)).outcome == "succeeded"
    assert (new.asked, old.asked) == ([job], [])
    assert new.put == [("d1", "1", "one\ntwo")]
    await old.jobs.close()
    await new.jobs.close()


async def test_a_parked_result_is_applied_by_a_release_that_cannot_read_the_input(url: str, start: Start) -> None:
    old, new = Release(url, 1), Release(url, 2)
    job = await submitted(old)
    await old.jobs.takeover(job, principal=WHO)
    await start(old.jobs)
    assert (await old.ends(job)).attach == "parked"
    view = await new.jobs.attach(job, 0, principal=WHO, target_version="7")
    assert (view.attach, new.put) == ("attached", [("d1", "7", "one\ntwo")])
    await old.jobs.close()
    await new.jobs.close()


async def test_a_result_of_another_type_is_refused_to_who_reads_it_typed_and_given_as_json(url: str, start: Start) -> None:
    old, new = Release(url, 1), Release(url, 2)
    job = await submitted(old)
    await start(old.jobs)
    await old.ends(job)
    write = new.jobs.registry.tasks["write"]
    write.returns = list[str]
    with pytest.raises(Invalid) as refused:
        await new.jobs.result(job, write, principal=WHO)
    assert refused.value.code == "stored_incompatible"
    assert await new.jobs.result(job, principal=WHO) == "one\ntwo"
    await old.jobs.close()
    await new.jobs.close()


async def test_an_upgrade_runs_beside_the_event_loop(url: str, start: Start) -> None:
    ran: list[int] = []

    def noted(old: dict[str, Any]) -> dict[str, Any]:
        ran.append(threading.get_ident())
        return lines_of(old)

    old, new = Release(url, 1), Release(url, 2, upgrade=noted)
    job = await submitted(old)
    await start(new.jobs)
    assert (await new.ends(job)).outcome == "succeeded"
    assert ran
    assert threading.get_ident() not in ran  # the worker's loop is this thread's
    await old.jobs.close()
    await new.jobs.close()


@pytest.mark.parametrize("error", [asyncio.CancelledError, StopIteration, SystemExit])
async def test_what_an_upgrade_raises_is_an_input_that_cannot_be_read(url: str, start: Start, error: type[BaseException]) -> None:
    def fails(old: dict[str, Any]) -> dict[str, Any]:
        raise error

    old, new = Release(url, 1), Release(url, 2, upgrade=fails)
    job = await submitted(old)
    await start(new.jobs)
    view = await new.ends(job)
    assert view.attention is not None
    assert view.attention.code == "payload_incompatible"
    await old.jobs.close()
    await new.jobs.close()
