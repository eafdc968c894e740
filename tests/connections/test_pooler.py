"""Behind a transaction pooler: every transaction may meet another server session, and there is nothing to listen to."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import psycopg
import pytest

from connections.pooler import Pooler, installed
from connections.shop import WHO, Order, opened, shop
from connections.working import events, working
from invariants import check
from outlast import AlreadyCompleted, Context, Outlast, Permanent
from outlast.domain.work import Failed, Finished, Renewal, Settled, Verdict
from outlast.observe.events import ListenUnavailable
from outlast.store.open import migrate
from outlast.store.postgres.session import Profile
from outlast.store.postgres.store import PostgresStore
from outlast.store.program import Access, Operation, Program, Statement
from outlast.store.programs import admission, claims, completion, sweep
from plans.filling import QUEUE, admission_of
from servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def pooler(postgres_server: PostgresServer) -> Iterator[Pooler]:
    if not installed():
        pytest.skip("NOT TESTED BEHIND A POOLER: pgbouncer is not installed (apt-get install it)")
    with Pooler(postgres_server.port) as one:
        yield one


@pytest.fixture
def direct(postgres_server: PostgresServer) -> str:
    """A new database, without the pooler."""
    return postgres_server.create_database(f"pooled_{next(_numbers)}")


@pytest.fixture
def url(pooler: Pooler, direct: str) -> str:
    """The same through the pooler, and migrated through it."""
    through = pooler.dsn(direct.rpartition("/")[2])
    assert migrate(through)
    return through


async def test_the_whole_of_it(url: str, direct: str) -> None:
    jobs, ship = shop(url)

    @jobs.task(name="refuse")
    async def refuse(ctx: Context, order: Order) -> int:
        raise Permanent("out of stock")

    async with working(jobs, lease=3), working(jobs, lease=3):
        handles = await asyncio.gather(*(jobs.submit(ship, Order(n), owner=WHO, key=f"k{n}") for n in range(40)))
        again = await jobs.submit(ship, Order(0), owner=WHO, key="k0")
        assert (again.id, again.replayed) == (handles[0].id, True)
        for n, handle in enumerate(handles):
            assert (await jobs.wait(handle.id, principal=WHO, timeout=30)).state == "completed"
            assert await jobs.result(handle.id, ship, principal=WHO) == n
        with pytest.raises(AlreadyCompleted):
            await jobs.cancel(handles[0].id, principal=WHO)
        asking = await jobs.submit(refuse, Order(1), owner=WHO)
        await _state(jobs, asking.id, "needs_attention")
        view = await jobs.get(asking.id, principal=WHO)
        assert view.attention is not None
        await jobs.act(asking.id, view.attention.id, action="dismiss", principal=WHO)
        await _state(jobs, asking.id, "cancelled")
    await jobs.close()
    check(direct, settled=True)


async def _state(jobs: Outlast, job_id: str, state: str) -> None:
    for _ in range(300):
        if (await jobs.get(job_id, principal=WHO)).state == state:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(await jobs.get(job_id, principal=WHO))


async def test_one_warning_and_then_polling(url: str) -> None:
    jobs, ship = shop(url)
    async with events() as seen, working(jobs, lease=3):
        for n in range(3):
            handle = await jobs.submit(ship, Order(n), owner=WHO)
            assert (await jobs.wait(handle.id, principal=WHO, timeout=15)).state == "completed"
            await asyncio.sleep(0.7)
    await jobs.close()
    assert len([e for e in seen if isinstance(e, ListenUnavailable)]) == 1


def test_lease_and_fence_hold(url: str, direct: str) -> None:
    """A holder whose lease ended, and the one that replaced it; each statement meets whatever session is free."""
    one, other = PostgresStore(url, profile=Profile(worker=True)), PostgresStore(url, profile=Profile(worker=True))
    one.run_sync(admission.admit([admission_of()]))
    (first,) = one.run_sync(claims.claim(QUEUE, ["k@1:t"], 5, "a:1", 60_000))
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("update outlast.queue_entry set lease_until = clock_timestamp() - interval '1 s'")
        (lost,) = other.run_sync(sweep.ended_leases(None, 10))
        other.run_sync(sweep.retry_lost(lost, 0))
        other.run_sync(claims.wake(10))
    (second,) = other.run_sync(claims.claim(QUEUE, ["k@1:t"], 5, "b:1", 60_000))

    assert second.ref.fence == first.ref.fence + 1
    assert one.run_sync(claims.renew([Renewal(first.ref)], 1_000)) == [Verdict.STALE]
    assert one.run_sync(completion.finish([Finished(first.ref, "a", "1")], 1_000)) == [Settled(Verdict.STALE)]
    failed = Failed(first.ref, "a", "error", "It failed.", permanent=True)
    assert one.run_sync(completion.give_up(failed, window_ms=1_000, retention_ms=1_000)).verdict is Verdict.STALE
    assert other.run_sync(completion.finish([Finished(second.ref, "b", "2")], 1_000))[0].verdict is Verdict.ACCEPTED
    one.close_sync()
    other.close_sync()
    check(direct, settled=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plan_cache_mode", "force_custom_plan"),
        ("enable_seqscan", "off"),
        ("synchronous_commit", "on"),
        ("transaction_isolation", "read committed"),
    ],
)
def test_settings_hold_in_each_transaction_and_do_not_leak(url: str, direct: str, name: str, value: str) -> None:
    database = direct.rpartition("/")[2]
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(f"alter database {database} set synchronous_commit = off".encode())
        connection.execute(f"alter database {database} set default_transaction_isolation = 'repeatable read'".encode())
    store = PostgresStore(url, profile=Profile(worker=True))
    store._sql["setting"] = b"select current_setting(%(name)s)"

    def ask() -> Program[str]:
        rows = yield Statement("setting", {"name": name})
        return str(rows[0][0])

    seen = {store.run_sync(Operation("setting", Access.READ, ask)) for _ in range(5)}
    store.close_sync()
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as others:
        outside = others.execute("select current_setting('enable_seqscan')").fetchone()

    assert seen == {value}
    assert outside == ("on",)


async def test_many_callers_share_few_sessions(url: str, direct: str) -> None:
    apps = [shop(url) for _ in range(10)]
    handles = await asyncio.gather(*(jobs.submit(ship, Order(n), owner=WHO) for jobs, ship in apps for n in range(5)))
    assert len({handle.id for handle in handles}) == 50
    with psycopg.connect(direct) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'outlast%'"
        )
        assert (row.fetchone() or (0,))[0] <= 4
    for jobs in opened:
        await jobs.close()
    check(direct)
