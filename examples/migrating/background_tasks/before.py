"""Before: a welcome that is sent after the answer, if the process lives so long."""

from __future__ import annotations

from examples.migrating import outside
from fastapi import BackgroundTasks, FastAPI

app = FastAPI()


def welcome(member: int) -> None:
    outside.send(outside.load(member), "welcome")  # what it raises is logged by the server, and seen by nobody


@app.post("/members/{member}", status_code=202)
async def join(member: int, background: BackgroundTasks) -> dict[str, str]:
    background.add_task(welcome, member)
    return {"state": "accepted"}  # a promise that nothing keeps
