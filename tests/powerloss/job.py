"""One whole job on a SQLite file, in a process that is killed on the way. Says what was acknowledged, a line each.

python -m powerloss.job FILE
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass

from outlast import Context, Outlast, Plan, Principal
from outlast.store.open import open_store
from outlast.worker.runtime import Options, Worker

jobs = Outlast(f"sqlite:///{sys.argv[1]}")
who = Principal("acme", "ann")


@dataclass
class Sum:
    numbers: list[int]


def say(*fact: object) -> None:
    """One write of the whole line, when what it says is stored."""
    os.write(1, (json.dumps([str(part) for part in fact]) + "\n").encode())


@jobs.task
async def add(ctx: Context, wanted: Sum) -> int:
    total = await ctx.step("add", sum, wanted.numbers)
    say("step", ctx.job_id, 0, "add", total)
    return total


@jobs.task
async def double(ctx: Context, wanted: Sum) -> int:
    return 2 * sum(wanted.numbers)


@jobs.kind("sum")
def sum_up(plan: Plan[Sum], _input: Sum) -> None:
    plan.task(double, label="Double", after=[plan.task(add, label="Add")])


async def live() -> None:
    """Submits it and works on it; with the job of a process that was killed it goes on."""
    submitted = await jobs.submit(sum_up, Sum([1, 2]), owner=who, key="the-one")
    say("job", submitted.id)
    store = open_store(jobs.url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=0.5))
    running = asyncio.create_task(worker.run())
    done = await jobs.wait(submitted.id, principal=who, timeout=20)
    assert done.state == "completed", done
    say("done", submitted.id, 0, 3)
    say("done", submitted.id, 1, 6)
    worker.stop()
    await running
    await store.close()
    await jobs.close()


if __name__ == "__main__":
    asyncio.run(live())
