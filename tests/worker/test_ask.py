"""`ctx.ask`: what cannot be answered is refused when it is asked, and an answer that cannot be read is asked for again with the reason."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import pytest

from outlast import Attention, Context, Invalid, Outlast, Principal, SyncContext
from outlast.worker.runtime import Worker

ANN = Principal("acme", "ann")
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Trip:
    """What to ask for."""

    ask: str


@dataclass
class Even:
    """A number with a check of its own."""

    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("the secret of this check")


TYPES: dict[str, Any] = {"socket": socket.socket, "five": 5, "text": "str", "when": datetime, "even": Even}


def asking(url: str, *, sync: bool) -> Outlast:
    jobs = Outlast(url)

    @jobs.task(name="ask")
    async def ask(ctx: Context, trip: Trip) -> str:
        return repr(await ctx.ask("well", "Well?", answer=TYPES[trip.ask]))

    @jobs.task(name="ask-in-a-thread")
    def ask_now(ctx: SyncContext, trip: Trip) -> str:
        return repr(ctx.ask("well", "Well?", answer=TYPES[trip.ask]))

    vars(jobs)["wanted"] = ask_now if sync else ask
    return jobs


async def submit(jobs: Outlast, ask: str) -> str:
    return (await jobs.submit(cast("Any", vars(jobs)["wanted"]), Trip(ask), owner=ANN)).id


async def asked(jobs: Outlast, job_id: str, *, but: str = "") -> Attention:
    async with asyncio.timeout(15):
        while (found := (await jobs.get(job_id, principal=ANN)).attention) is None or found.id == but:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_type_that_nobody_can_answer_is_refused_at_the_first_run(url: str, start: Start, sync: bool) -> None:
    jobs = asking(url, sync=sync)
    await start(jobs)
    for ask in ("socket", "five", "text"):
        found = await asked(jobs, await submit(jobs, ask))
        assert (found.code, found.actions) == ("invalid", ("retry", "dismiss")), ask
        assert "answer of ctx.ask" in found.message
    await jobs.close()


async def test_a_time_is_a_time_when_it_is_given(url: str, start: Start) -> None:
    jobs = asking(url, sync=False)
    await start(jobs)
    job_id = await submit(jobs, "when")
    found = await asked(jobs, job_id)
    assert found.input is not None
    assert found.input["format"] == "date-time"
    with pytest.raises(Invalid, match="is not a date and time"):
        await jobs.act(job_id, found.id, action="answer", input="tomorrow", principal=ANN)
    await jobs.act(job_id, found.id, action="answer", input="2030-01-31T08:00:00Z", principal=ANN)
    assert (await jobs.wait(job_id, principal=ANN, timeout=15)).outcome == "succeeded"
    await jobs.close()


async def test_what_only_reading_can_refuse_is_asked_for_again_with_the_reason(url: str, start: Start) -> None:
    jobs = asking(url, sync=False)
    await start(jobs)
    job_id = await submit(jobs, "even")
    first = await asked(jobs, job_id)
    assert first.message == "Well?"
    await jobs.act(job_id, first.id, action="answer", input={"number": 3}, principal=ANN)
    second = await asked(jobs, job_id, but=first.id)
    assert second.message == "Well? The answer before does not fit Even: its own check failed with ValueError."
    await jobs.act(job_id, second.id, action="answer", input={"number": 4}, principal=ANN)
    assert (await jobs.wait(job_id, principal=ANN, timeout=15)).outcome == "succeeded"
    await jobs.close()
