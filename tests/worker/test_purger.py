"""The purge beside the work: what is no longer kept goes by itself, a few jobs at a time, and claims go on between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from invariants import check, query
from outlast import Context, Expired, Handle, KeyReused, NotFound, Outlast, Plan, Principal, Settings, Submission
from outlast.client import submitting
from outlast.client.driving import drive_admission
from outlast.domain.work import DueJob, Finished, Stretch
from outlast.store.drive import BadData
from outlast.store.open import open_store
from outlast.store.program import Operation
from outlast.store.programs import claims, completion
from outlast.worker.purger import ENOUGH, MOST_JOBS, MOST_TASKS, STRETCH, Purger, batches
from outlast.worker.runtime import Worker

WHO, BOB = Principal("acme", "ann"), Principal("acme", "bob")
Start = Callable[..., Awaitable[Worker]]


@dataclass
class Note:
    text: str


def shop(url: str, **settings: Any) -> tuple[Outlast, Any]:
    jobs = Outlast(url, settings=Settings(**settings))

    @jobs.task
    async def write(ctx: Context, note: Note) -> str:
        return note.text

    return jobs, write


async def gone(jobs: Outlast, job_id: str) -> Expired:
    async with asyncio.timeout(15):
        while True:
            try:
                await jobs.get(job_id, principal=WHO)
            except Expired as expired:
                return expired
            await asyncio.sleep(0.02)


async def empty(url: str, table: str) -> None:
    async with asyncio.timeout(15):
        while query(url, f"select * from {{{table}}}"):  # noqa: ASYNC110 - who empties it tells nobody
            await asyncio.sleep(0.02)


async def test_b22_what_is_no_longer_kept_goes_by_itself_and_its_key_answers(url: str, start: Start) -> None:
    jobs, write = shop(url, retention=0.1)
    handle = await jobs.submit(write, Note("a"), owner=WHO, key="k")
    keyless = await jobs.submit(write, Note("a"), owner=WHO)
    await start(jobs)
    ended = await gone(jobs, handle.id)
    assert (ended.state, ended.outcome, ended.purged_at >= ended.finished_at) == ("completed", "succeeded", True)
    await empty(url, "job")
    with pytest.raises(NotFound):
        await jobs.get(keyless.id, principal=WHO)
    single = await jobs.submit(write, Note("a"), owner=WHO, key="k")
    (bulk,) = await jobs.submit_many([Submission(write, Note("a"), key="k")], owner=WHO)
    blocking = await asyncio.to_thread(jobs.sync.submit, write, Note("a"), owner=WHO, key="k")
    assert single == bulk == blocking
    assert (single.id, single.state, single.replayed, single.expired) == (handle.id, "completed", True, True)
    for repeat in (jobs.submit(write, Note("b"), owner=WHO, key="k"), jobs.submit_many([Submission(write, Note("b"), key="k")], owner=WHO)):
        with pytest.raises(KeyReused):
            await repeat
    theirs = await jobs.submit(write, Note("a"), owner=BOB, key="k")
    assert (theirs.replayed, theirs.expired) == (False, False)
    await jobs.close()


WAYS = {"python": None, "unnamed": (None,), "named": (1,)}


def press(url: str, version: int) -> tuple[Outlast, Any]:
    """An application whose kind has been through a deploy, or has not."""
    jobs = Outlast(url, settings=Settings(retention=0.1))

    @jobs.task
    async def pages(ctx: Context, note: Note) -> None: ...

    @jobs.kind("printed", version=version)
    def printed(plan: Plan[Any], note: Note) -> None:
        plan.task(pages, label="Pages", usable=True)

    if version > 1:
        printed.upgrade(from_version=1)(dict)
    return jobs, printed


async def ask(jobs: Outlast, kind: Any, way: str, key: str) -> Handle:
    """A request as Python makes it, and as HTTP and the command line do, with a version and without."""
    version = WAYS[way]
    if version is None:
        return await jobs.submit(kind, Note("a"), owner=WHO, key=key)
    known = jobs.desk.app
    sent = submitting.prepare_sent(known, kind.name, version[0], {"text": "a"}, owner=WHO, key=key, not_before=None)
    return await asyncio.to_thread(drive_admission, submitting.submit(known, sent), [sent], jobs.sync.store)


async def test_one_request_under_one_key_is_one_by_every_way_before_and_after_a_deploy_and_after_the_purge(url: str, start: Start) -> None:
    old, kind = press(url, 1)
    first = {way: await ask(old, kind, way, way) for way in WAYS}
    new, raised = press(url, 2)

    both = ((old, kind), (new, raised))

    async def repeat(*, expired: bool) -> None:
        for way, other, one in itertools.product(WAYS, WAYS, both):
            again = await ask(*one, other, way)
            assert (again.id, again.replayed, again.expired) == (first[way].id, True, expired), (way, other)

    await repeat(expired=False)
    await start(new)
    for handle in first.values():
        await gone(new, handle.id)
    await repeat(expired=True)
    await old.close()
    await new.close()


async def test_keys_go_when_their_horizon_is_over(url: str, start: Start) -> None:
    jobs, write = shop(url, retention=0.1, replay_horizon=0.1)
    handle = await jobs.submit(write, Note("a"), owner=WHO, key="k")
    await start(jobs)
    await empty(url, "submission")
    again = await jobs.submit(write, Note("a"), owner=WHO, key="k")
    assert (again.id != handle.id, again.replayed) == (True, False)
    await jobs.close()


class Beside:
    """A store that lets a claim through after each operation of the purge, and notes how many jobs each of them took away."""

    def __init__(self, store: Any, claim: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._claim = claim
        self.taken: list[int] = []

    async def run(self, operation: Operation[Any]) -> Any:
        value = await self._store.run(operation)
        if operation.name == "purge":
            self.taken.append(len(value))
        await self._claim()
        return value


async def test_b43_claims_go_on_between_its_batches(url: str) -> None:
    """Counted, not timed: no transaction takes away more than a few jobs, and between any two of them a claim gets its task."""
    jobs, write = shop(url)
    store = open_store(url, worker=True)
    handlers = tuple(jobs.registry.handlers())
    count = STRETCH + 100
    for _ in range(count // 200):
        await jobs.submit_many([Submission(write, Note("old"))] * 200, owner=WHO)
    while held := await store.run(claims.claim("default", handlers, 500, "w:0", 30_000)):
        await store.run(completion.finish([Finished(one.ref, "w", '"old"') for one in held], 0))
    waiting = 100
    await jobs.submit_many([Submission(write, Note("new"))] * waiting, owner=WHO)
    claimed = asked = 0

    async def claim() -> None:
        nonlocal claimed, asked
        asked += 1
        claimed += len(await store.run(claims.claim("default", handlers, 1, f"w:{asked}", 30_000)))

    beside = Beside(store, claim)
    given: Any = beside
    purger = Purger(given, retention_ms=-60_000, horizon_ms=1_000, interval=1.0)
    reports = [await purger.run_once()]
    while reports[-1].more:
        reports.append(await purger.run_once())
    assert sum(report.jobs for report in reports) == sum(beside.taken) == count // 200 * 200
    assert max(beside.taken) <= MOST_JOBS
    assert claimed == asked <= waiting
    assert asked >= len(beside.taken)
    left = query(url, "select count(*) as n from {job}")
    assert left == [{"n": waiting}]
    check(url)
    await store.close()
    await jobs.close()


def due(n: int, tasks: int = 1, tenant: str = "acme") -> DueJob:
    return DueJob(tenant, f"{n:032x}", tasks, n)


def test_a_batch_is_of_one_tenant_and_of_few_jobs_and_tasks() -> None:
    jobs = [due(n) for n in range(2 * MOST_JOBS + 1)]
    assert [len(few) for few in batches(jobs)] == [MOST_JOBS, MOST_JOBS, 1]
    large = [due(1, MOST_TASKS), due(2, MOST_TASKS + 7), due(3), due(4, MOST_TASKS - 1), due(5)]
    assert [[job.finished_at_ms for job in few] for few in batches(large)] == [[1], [2], [3, 4], [5]]
    mixed = [due(n, tenant="ab"[n % 2]) for n in range(6)]
    assert [[job.finished_at_ms for job in few] for few in batches(mixed)] == [[0, 2, 4], [1, 3, 5]]
    assert list(batches([])) == []


class Told:
    """A store that answers by what it is asked."""

    def __init__(self, stretches: list[Stretch], bad: tuple[str, ...] = (), keys: list[int] | None = None) -> None:
        self.stretches = stretches
        self.bad = bad
        self.keys = keys or []
        self.asked: list[str] = []

    async def run(self, operation: Operation[Any]) -> Any:
        self.asked.append(operation.name)
        if operation.name == "due":
            return self.stretches.pop(0)
        if operation.name == "drop_expired":
            return self.keys.pop(0) if self.keys else 0
        ids = next(operation.start()).params["ids"]
        if any(one in ids for one in self.bad):
            raise BadData("a row that cannot be deleted")
        return [one for one in ids.strip("[]").replace('"', "").split(", ") if one]


async def test_a_row_that_cannot_be_deleted_keeps_no_other() -> None:
    jobs = [due(n) for n in range(4)]
    store: Any = Told([Stretch(tuple(jobs), None)], bad=(jobs[2].id,))
    report = await Purger(store, retention_ms=1, horizon_ms=1, interval=1).run_once()
    assert (report.jobs, report.bad, report.more) == (3, 1, False)
    assert store.asked == ["due", *["purge"] * 5, "drop_expired"]


async def test_a_run_makes_way_and_the_next_one_goes_on_from_there() -> None:
    stretches = [Stretch((), f"{n:032x}") for n in range(ENOUGH)]
    store: Any = Told([*stretches, Stretch((due(7),), None)], keys=[3])
    purger = Purger(store, retention_ms=1, horizon_ms=1, interval=1)
    first = await purger.run_once()
    assert (first.jobs, first.keys, first.more) == (0, 0, True)
    assert store.asked == ["due"] * ENOUGH
    second = await purger.run_once()
    assert (second.jobs, second.keys, second.more) == (1, 3, False)
