"""A whole life on one SQLite file, for a process of its own: prints what the test looks at as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path

from outlast import Outlast, Plan, Principal, SyncContext
from outlast.store.open import migrate, open_store
from outlast.store.sqlite.build import linked
from outlast.worker.runtime import Options, Worker

path = Path(sys.argv[1])
jobs = Outlast(f"sqlite:///{path}")
who = Principal("acme", "ann")


@dataclass
class Sum:
    numbers: list[int]


@jobs.task
def add(ctx: SyncContext, wanted: Sum) -> int:
    return ctx.step("add", sum, wanted.numbers)


@jobs.kind("sum")
def sum_up(plan: Plan[Sum], _input: Sum) -> None:
    plan.task(add, label="Add")


async def live() -> dict[str, object]:
    migrate(jobs.url)
    store = open_store(jobs.url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=2))
    running = asyncio.create_task(worker.run())
    handles = [await jobs.submit(sum_up, Sum([n, n]), owner=who, key=f"k{n}") for n in range(20)]
    results = [(await jobs.wait(h.id, principal=who, timeout=20)).state for h in handles]
    total = sum([await jobs.result(h.id, add, principal=who) for h in handles])
    side = sorted(p.name for p in path.parent.iterdir())
    worker.stop()
    await running
    await store.close()
    await jobs.close()
    return {"states": sorted(set(results)), "total": total, "files": side, "driver": linked().driver, "python": sqlite3.sqlite_version}


print(json.dumps(asyncio.run(live())))
