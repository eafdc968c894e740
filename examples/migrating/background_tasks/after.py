"""After: the same function as a task. `outlast worker examples.migrating.background_tasks.after:jobs` does the work."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from examples.migrating import outside
from fastapi import Depends, FastAPI, Header
from fastapi.responses import JSONResponse

from outlast import Outlast, Principal, RetryPolicy, SyncContext
from outlast.integrations.fastapi import accepted, mount

jobs = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///shop.db"), base_url="/jobs")
app = FastAPI()


@dataclass
class Member:
    id: int


@jobs.task(retry=RetryPolicy(base=1))  # what it raises is tried again, and when that does not help, its owner is asked
def welcome(ctx: SyncContext, member: Member) -> None:
    to = ctx.step("load", outside.load, member.id)
    ctx.effect("mail", lambda key: outside.send(to, "welcome", key), idempotent=True)


async def principal(x_user: Annotated[str, Header()]) -> Principal:
    """Who calls, by the application's own authentication."""
    return Principal("club", x_user)


mount(app, jobs, identify=principal)


@app.post("/members/{member}", status_code=202)
async def join(member: int, who: Annotated[Principal, Depends(principal)]) -> JSONResponse:
    return accepted(await jobs.submit(welcome, Member(member), owner=who, key=f"welcome-{member}"))
