"""The application of the rehearsal on several hosts: one task that calls a provider again and again, without a store in between."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from dataclasses import dataclass

from starlette.requests import Request

from outlast import Context, Outlast, Plan, Principal

PROVIDER = "OUTLAST_TEST_PROVIDER"
PAUSE = 0.05

jobs = Outlast("postgresql://nowhere/never")


@dataclass
class Calls:
    """How many."""

    count: int


def call(body: dict[str, object]) -> None:
    """One call to the provider."""
    request = urllib.request.Request(os.environ[PROVIDER], json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
        answer.read()


@jobs.task(max_attempts=5, deadline=120)
async def calling(ctx: Context, calls: Calls) -> int:
    """Asks before each call whether it still may."""
    for number in range(calls.count):
        ctx.check()
        await asyncio.to_thread(call, {"job": ctx.job_id, "fence": ctx.fence, "number": number, "pid": os.getppid()})
        await asyncio.sleep(PAUSE)
    return ctx.fence


@jobs.kind("calls")
def calls(plan: Plan[Calls], calls: Calls) -> None:
    """A task of it."""
    plan.task(calling, label="Call", usable=True)


def identify(request: Request) -> Principal | None:
    """Whoever says so: nobody else reaches it."""
    return Principal("acme", "ann") if request.headers.get("x-user") == "ann" else None


application = jobs.asgi(identify=identify)
