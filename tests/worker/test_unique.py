"""Unique keys from an application's own code: both colours of the client, one and many, and a worker that holds what is replaced."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytest

from outlast import Context, Handle, Invalid, KeyReused, NotFound, Outlast, Plan, Principal, Submission, Unique, UniqueActive
from outlast.worker.runtime import Worker

WHO, BOB = Principal("acme", "ann"), Principal("acme", "bob")
Start = Callable[..., Awaitable[Worker]]
Policy = Literal["existing", "reject", "replace"]


@dataclass
class Month:
    name: str
    seconds: float = 0.0


class Shop:
    """An application with a kind whose unique keys are the owner's, and one whose keys are the tenant's."""

    def __init__(self, url: str) -> None:
        self.jobs = jobs = Outlast(url, base_url="/jobs")

        @jobs.task
        async def write(ctx: Context, month: Month) -> str:
            await asyncio.sleep(month.seconds)
            return month.name

        @jobs.kind("report")
        def report(plan: Plan[Month], input: Month) -> None:
            plan.task(write, label="Text")

        @jobs.kind("closing", unique_scope="tenant")
        def closing(plan: Plan[Month], input: Month) -> None:
            plan.task(write, label="Text")

        self.report, self.closing = report, closing


def plan_nothing(plan: Plan[Month], input: Month) -> None:
    """Never asked."""


@pytest.fixture(params=["async", "sync"])
def submit(request: pytest.FixtureRequest) -> Callable[..., Awaitable[Any]]:
    """`jobs.submit`, or `submit_many` of a list, in each colour."""

    async def run(jobs: Outlast, *args: Any, **options: Any) -> Any:
        name = "submit_many" if isinstance(args[0], list) else "submit"
        if request.param == "async":
            return await getattr(jobs, name)(*args, **options)
        return await asyncio.to_thread(lambda: getattr(jobs.sync, name)(*args, **options))

    return run


async def test_each_policy(url: str, submit: Callable[..., Awaitable[Handle]]) -> None:
    shop = Shop(url)
    jobs = shop.jobs
    first = await submit(jobs, shop.report, Month("5"), owner=WHO, key="a", unique=Unique("m", "reject"))
    given = await submit(jobs, shop.report, Month("6"), owner=WHO, key="b", unique=Unique("m", "existing"))
    assert (given.id, given.replayed, given.state) == (first.id, True, "queued")
    with pytest.raises(UniqueActive) as refused:
        await submit(jobs, shop.report, Month("6"), owner=WHO, key="c", unique=Unique("m", "reject"))
    assert (refused.value.shown, refused.value.job.id, refused.value.code) == (True, first.id, "unique_active")
    new = await submit(jobs, shop.report, Month("6"), owner=WHO, key="c", unique=Unique("m", "replace"))
    assert (new.replayed, (await jobs.get(first.id, principal=WHO)).outcome) == (False, "superseded")
    again = await submit(jobs, shop.report, Month("6"), owner=WHO, key="c", unique=Unique("m", "replace"))
    assert (again.id, again.replayed) == (new.id, True)
    with pytest.raises(KeyReused):
        await submit(jobs, shop.report, Month("6"), owner=WHO, key="c", unique=Unique("m", "existing"))
    await jobs.close()


async def test_many_are_all_or_none(url: str, submit: Callable[..., Awaitable[Any]]) -> None:
    shop = Shop(url)
    jobs = shop.jobs
    first = await submit(jobs, shop.report, Month("5"), owner=WHO, unique=Unique("m", "reject"))
    wanted = [Submission(shop.report, Month("1"), key="a"), Submission(shop.report, Month("2"), unique=Unique("m", "reject"))]
    with pytest.raises(UniqueActive, match="Submission 1") as refused:
        await submit(jobs, wanted, owner=WHO)
    assert refused.value.job.id == first.id
    assert len((await jobs.list(principal=WHO)).items) == 1
    mixed = [*wanted[:1], Submission(shop.report, Month("2"), unique=Unique("m", "existing"))]
    handles = await submit(jobs, mixed, owner=WHO)
    assert [(h.id == first.id, h.replayed) for h in handles] == [(False, False), (True, True)]
    await jobs.close()


async def test_many_of_one_key_cannot_refuse_or_replace_each_other(url: str, submit: Callable[..., Awaitable[Any]]) -> None:
    shop = Shop(url)
    policies = cast("tuple[Policy, ...]", ("existing", "reject", "replace"))
    for first, second in itertools.product(policies, policies):
        wanted = [Submission(shop.report, Month(policy), unique=Unique("m", policy)) for policy in (first, second)]
        if first == second == "existing":
            continue
        with pytest.raises(Invalid, match="Submissions 0 and 1"):
            await submit(shop.jobs, wanted, owner=WHO)
    one = [Submission(shop.report, Month("1"), key="k", unique=Unique("m", "reject"))] * 2
    handles = await submit(shop.jobs, one, owner=WHO)
    assert handles[0].id == handles[1].id, "one request twice is one job"
    await shop.jobs.close()


@pytest.mark.parametrize("policy", ["existing", "reject", "replace"])
async def test_a_key_of_the_tenant_hides_anothers_job(url: str, submit: Callable[..., Awaitable[Any]], policy: Policy) -> None:
    shop = Shop(url)
    jobs = shop.jobs
    theirs = await submit(jobs, shop.closing, Month("5"), owner=BOB, unique=Unique("m", policy))
    operator = Principal("acme", "olga", roles=["operator"])
    for who in (WHO, operator):
        with pytest.raises(UniqueActive) as refused:
            await submit(jobs, shop.closing, Month("5"), owner=who, unique=Unique("m", policy))
        assert not refused.value.shown
        assert theirs.id not in refused.value.message
        with pytest.raises(NotFound):
            _ = refused.value.job
    assert (await jobs.get(theirs.id, principal=BOB)).state == "queued"
    await jobs.close()


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 256, "a\n", None, 7])
def test_a_key_that_is_none_is_refused_where_it_is_made(key: Any) -> None:
    with pytest.raises(Invalid, match="unique key"):
        Unique(key, "reject")


@pytest.mark.parametrize("policy", ["ignore", None, ["reject"]])
def test_a_policy_that_is_none_is_refused_where_it_is_made(policy: Any) -> None:
    with pytest.raises(Invalid, match="policy"):
        Unique("m", policy)


async def test_what_is_no_unique_is_refused(url: str, submit: Callable[..., Awaitable[Any]]) -> None:
    shop = Shop(url)
    with pytest.raises(Invalid, match="unique= takes a Unique"):
        await submit(shop.jobs, shop.report, Month("5"), owner=WHO, unique=cast("Any", "m"))
    assert (await shop.jobs.list(principal=WHO)).items == ()
    await shop.jobs.close()


async def test_the_worker_of_a_replaced_job_stops_and_goes_on_with_the_new_one(url: str, start: Start) -> None:
    shop = Shop(url)
    jobs = shop.jobs
    first = await jobs.submit(shop.report, Month("5", 60), owner=WHO, unique=Unique("m", "replace"))
    await start(jobs)
    for _ in range(750):
        if (await jobs.get(first.id, principal=WHO)).state == "running":
            break
        await asyncio.sleep(0.02)
    new = await jobs.submit(shop.report, Month("6"), owner=WHO, unique=Unique("m", "replace"))
    assert (await jobs.wait(new.id, principal=WHO, timeout=15)).outcome == "succeeded"
    for _ in range(750):
        if not (old := await jobs.get(first.id, principal=WHO)).stopping:
            break
        await asyncio.sleep(0.02)
    assert (old.outcome, old.stopping) == ("superseded", False)
    following = await jobs.submit(shop.report, Month("7"), owner=WHO, unique=Unique("m", "reject"))
    assert not following.replayed
    await jobs.close()


def test_a_scope_that_is_none_is_refused_when_it_is_registered() -> None:
    jobs = Outlast("sqlite:///never-opened.db")
    with pytest.raises(Invalid, match="unique_scope"):
        jobs.kind("k", unique_scope=cast("Any", "kind"))(plan_nothing)
