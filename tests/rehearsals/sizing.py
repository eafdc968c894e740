"""`make sizing`: what one job costs a PostgreSQL store, so that a machine can be chosen for a load: rows, WAL, commits, bytes kept.

    python -m rehearsals.sizing [--jobs 3000]

Counted by the server itself, not timed: the figures are those of any machine. The jobs do nothing; each of your payloads adds its size,
once to the input or output and once to the WAL.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from outlast import Context, Outlast, Plan, Principal, Submission
from outlast.store.open import migrate, open_store
from outlast.worker.runtime import Options, Worker
from servers.postgres import PostgresServer

BATCH = 500
ANN = Principal("acme", "ann")
COUNTERS = """
select w.wal_bytes, d.xact_commit, d.tup_inserted, d.tup_updated, d.tup_deleted
from pg_stat_wal w, pg_stat_database d where d.datname = 'sizing'
"""
KEPT = """
select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'outlast' and c.relkind = 'r' and c.relname in ('job', 'job_input', 'task', 'edge', 'output', 'submission')
"""


@dataclass
class Nothing:
    """An input without content."""


@dataclass(frozen=True)
class Cost:
    """What one job cost, on average."""

    wal: float
    commits: float
    inserted: float
    updated: float
    deleted: float

    def line(self, what: str) -> str:
        """A row of the table."""
        return f"{what:<56}{self.inserted:>9.1f}{self.updated:>9.1f}{self.deleted:>9.1f}{self.wal:>11,.0f}{self.commits:>10.3f}"


def application(url: str) -> tuple[Outlast, dict[str, Any]]:
    """A job of one task, and one of three."""
    jobs = Outlast(url)

    @jobs.task
    async def nothing(ctx: Context, given: Nothing) -> None:
        """Does nothing."""

    @jobs.kind("three")
    def three(plan: Plan[Nothing], given: Nothing) -> None:
        first = plan.task(nothing, label="one", usable=True)
        second = plan.task(nothing, label="two", after=[first])
        plan.task(nothing, label="three", after=[second])

    return jobs, {"one task": nothing, "three tasks, one after the other": three}


def measure(count: int, *, short: bool = False) -> tuple[dict[str, Cost], float]:
    """The cost of each part, and the bytes that a finished job of one task keeps, its idempotency key included. short: only that job."""
    found: dict[str, Cost] = {}
    with PostgresServer(fsync=True, settings={"autovacuum": "off"}) as server:
        url = server.create_database("sizing")
        migrate(url)
        jobs, kinds = application(url)
        kept = 0.0
        for name, kind in kinds.items():
            before = _bytes(server)
            found[f"{name}: asked for, {BATCH} at once"] = _counted(server, count, lambda kind=kind: _ask(jobs, kind, count))  # type: ignore[misc]
            found[f"{name}: done"] = _counted(server, count, lambda: asyncio.run(_work(jobs, url)))
            kept = kept or (_bytes(server) - before) / count
            if short:
                return found, kept
        found["one task: asked for, one by one"] = _counted(server, 300, lambda: _ask_singly(jobs, kinds["one task"], 300))
    return found, kept


def _counted(server: PostgresServer, count: int, act: Callable[[], None]) -> Cost:
    before = _read(server)
    act()
    after = _read(server)
    return Cost(*((later - earlier) / count for earlier, later in zip(before, after, strict=True)))


def _read(server: PostgresServer) -> list[float]:
    """The server's counters, once they stand still: its processes report when they are idle."""
    last: list[float] = []
    while True:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            row = connection.execute(COUNTERS).fetchone()
        found = [float(value) for value in row or ()]
        if found == last:
            return found
        last = found
        time.sleep(1.2)


def _bytes(server: PostgresServer) -> float:
    with psycopg.connect(server.dsn("sizing"), autocommit=True) as connection:
        row = connection.execute(KEPT).fetchone()
    return float(row[0]) if row else 0.0


def _ask(jobs: Outlast, kind: Any, count: int) -> None:
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        jobs.sync.submit_many([Submission(kind, Nothing(), key=f"{kind.name}-{n}") for n in numbers], owner=ANN)
    jobs.sync.close()  # a connection reports what it did when it ends


def _ask_singly(jobs: Outlast, kind: Any, count: int) -> None:
    for number in range(count):
        jobs.sync.submit(kind, Nothing(), owner=ANN, key=f"single-{number}")
    jobs.sync.close()


async def _work(jobs: Outlast, url: str) -> None:
    """A worker, until nothing is left."""
    store = open_store(url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(queues={"default": 200}))
    running = asyncio.create_task(worker.run())
    for job in (await jobs.list(principal=ANN, limit=200)).items:
        await jobs.wait(job.id, principal=ANN, timeout=120)  # the newest, which come last
    worker.stop()
    await running
    await store.close()
    await jobs.close()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="make sizing", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=3000)
    found, kept = measure(parser.parse_args().jobs)
    print(f"{'a job':<56}{'inserted':>9}{'updated':>9}{'deleted':>9}{'WAL bytes':>11}{'commits':>10}")
    for name, cost in found.items():
        print(cost.line(name))
    print(f"kept of a finished job of one task, indexes and key included: {kept:,.0f} bytes")


if __name__ == "__main__":
    main()
