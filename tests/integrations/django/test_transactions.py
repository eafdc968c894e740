"""`transaction="default"`: a job in the transaction that Django has open, or, where it has none, one of its own."""

from __future__ import annotations

import itertools
import threading
import unittest
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.test import Client, TestCase, TransactionTestCase

from integrations.django.conftest import on, tidy
from integrations.django.shop.jobs import Order, parcel, ship
from integrations.django.shop.models import Purchase
from outlast import Contended, Invalid, KeyReused, NotFound, OutlastError, Principal, Submission, TransactionMisused, Unique
from outlast.integrations.django import jobs

ANN = Principal("acme", "ann")
_numbers = itertools.count(1)


class Undone(Exception):
    """What makes a transaction roll back."""


@pytest.fixture
async def closing() -> AsyncIterator[None]:
    """Connections of async code belong to the test's loop."""
    yield
    await tidy()


@pytest.fixture
def name() -> str:
    return f"order-{next(_numbers)}"


def buy(alias: str, name: str, **more: Any) -> str:
    Purchase.objects.using(alias).create(name=name)
    return jobs.sync.submit(parcel, Order(name), owner=ANN, transaction=alias, **more).id


def bought(alias: str, name: str) -> bool:
    return Purchase.objects.using(alias).filter(name=name).exists()


def there(job_id: str) -> bool:
    try:
        jobs.sync.get(job_id, principal=ANN)
    except NotFound:
        return False
    return True


def test_committed_both_are_there_and_not_before(alias: str, name: str) -> None:
    with transaction.atomic(using=alias):
        job_id = buy(alias, name)
        if alias == "default":  # a writer of SQLite keeps readers waiting
            assert not there(job_id)
    assert bought(alias, name)
    assert there(job_id)


def test_rolled_back_neither_is_there(alias: str, name: str) -> None:
    found: list[str] = []

    def fail() -> None:
        with transaction.atomic(using=alias):
            found.append(buy(alias, name))
            raise Undone

    with pytest.raises(Undone):
        fail()
    assert not bought(alias, name)
    assert not there(found[0])


def test_a_savepoint_that_is_rolled_back_takes_its_job_along(alias: str, name: str) -> None:
    with transaction.atomic(using=alias):
        outer = buy(alias, name)
        create = getattr(transaction, "savepoint_create", None) or transaction.savepoint  # the name of later releases, or of earlier ones
        point = create(using=alias)
        inner = buy(alias, f"{name}-inner")
        transaction.savepoint_rollback(point, using=alias)
    assert there(outer)
    assert bought(alias, name)
    assert not there(inner)
    assert not bought(alias, f"{name}-inner")


def test_an_inner_atomic_that_fails_takes_its_job_along(alias: str, name: str) -> None:
    inner: list[str] = []

    def fail() -> None:
        with transaction.atomic(using=alias):
            inner.append(buy(alias, f"{name}-inner"))
            raise Undone

    with transaction.atomic(using=alias):
        outer = buy(alias, name)
        with pytest.raises(Undone):
            fail()
    assert there(outer)
    assert not there(inner[0])


def test_a_refused_submit_leaves_the_transaction_usable(alias: str, name: str) -> None:
    with transaction.atomic(using=alias):
        first = buy(alias, name, key=name)
        with pytest.raises(KeyReused):
            jobs.sync.submit(parcel, Order("another"), owner=ANN, key=name, transaction=alias)
        again = jobs.sync.submit(parcel, Order(name), owner=ANN, key=name, transaction=alias)
    assert (again.id, again.replayed) == (first, True)
    assert there(first)
    assert bought(alias, name)


def test_in_autocommit_the_job_is_committed_at_once(alias: str, name: str) -> None:
    assert there(buy(alias, name))
    assert connections[alias].get_autocommit()
    assert not connections[alias].in_atomic_block


def test_a_transaction_begun_by_a_statement_is_joined(alias: str, name: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("BEGIN")
        lost = buy(alias, name)
        cursor.execute("ROLLBACK")
        assert not there(lost)
        assert not bought(alias, name)
        cursor.execute("BEGIN")
        kept = buy(alias, name)
        cursor.execute("COMMIT")
    assert there(kept)


def test_with_autocommit_off_the_caller_commits(alias: str, name: str) -> None:
    transaction.set_autocommit(False, using=alias)
    try:
        kept = buy(alias, name)
        transaction.commit(using=alias)
        lost = buy(alias, f"{name}-lost")
        transaction.rollback(using=alias)
    finally:
        transaction.set_autocommit(True, using=alias)
    assert there(kept)
    assert not there(lost)


def test_several_at_once_are_all_or_none(alias: str, name: str) -> None:
    with transaction.atomic(using=alias):
        handles = jobs.sync.submit_many([Submission(parcel, Order(f"{name}-{n}")) for n in range(3)], owner=ANN, transaction=alias)
        transaction.set_rollback(True, using=alias)
    assert not any(there(handle.id) for handle in handles)


def test_replace_is_refused_in_a_transaction(alias: str, name: str) -> None:
    with transaction.atomic(using=alias), pytest.raises(Invalid, match="replace"):
        buy(alias, name, unique=Unique("one", "replace"))


async def test_async_code_joins_in_djangos_thread(closing: None, alias: str, name: str) -> None:
    handle = await jobs.submit(ship, Order(name), owner=ANN, transaction=alias)
    assert (await jobs.get(handle.id, principal=ANN)).state == "queued"
    many = await jobs.submit_many([Submission(ship, Order(name))], owner=ANN, transaction=alias)
    assert (await jobs.get(many[0].id, principal=ANN)).state == "queued"


async def test_async_code_below_an_atomic_of_the_same_thread(closing: None, alias: str, name: str) -> None:
    def outer(*, fail: bool) -> str:
        from asgiref.sync import async_to_sync  # noqa: PLC0415

        async def inner() -> str:
            return (await jobs.submit(ship, Order(name), owner=ANN, transaction=alias)).id

        with transaction.atomic(using=alias):
            job_id = str(async_to_sync(inner)())
            transaction.set_rollback(fail, using=alias)
        return job_id

    kept, lost = await sync_to_async(outer)(fail=False), await sync_to_async(outer)(fail=True)
    assert await sync_to_async(there)(kept)
    assert not await sync_to_async(there)(lost)


def test_another_thread_is_another_connection(alias: str, name: str) -> None:
    found: list[str] = []

    def elsewhere() -> None:
        found.append(jobs.sync.submit(ship, Order(name), owner=ANN, transaction=alias).id)
        connections[alias].close()

    def fail() -> None:
        with transaction.atomic(using=alias):
            if alias == "default":
                Purchase.objects.using(alias).create(name=name)  # SQLite's other thread would wait for this one
                thread = threading.Thread(target=elsewhere)
                thread.start()
                thread.join()
            raise Undone

    with pytest.raises(Undone):
        fail()
    assert all(there(job_id) for job_id in found)


# ── what cannot be used ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def refusal(alias: str) -> TransactionMisused:
    with pytest.raises(TransactionMisused) as raised:
        jobs.sync.submit(ship, Order("never"), owner=ANN, transaction=alias)
    return raised.value


def test_an_unknown_alias_is_named_with_those_there_are(default: None) -> None:
    error = refusal("typo")
    assert error.code == "session_invalid"
    assert "'typo'" in error.message
    assert "'lite'" in error.message


def test_an_engine_that_can_hold_no_store(default: None) -> None:
    error = refusal("nowhere")
    assert error.code == "session_invalid"
    assert "django.db.backends.dummy" in error.message


def test_another_database_than_the_stores(default: None) -> None:
    assert refusal("elsewhere").code == "session_elsewhere"
    assert refusal("lite").code == "session_elsewhere"


def test_a_broken_atomic_block(alias: str, name: str) -> None:
    with transaction.atomic(using=alias):
        transaction.set_rollback(True, using=alias)
        error = refusal(alias)
    assert error.code == "session_invalid"
    assert "failed already" in error.message


def test_a_transaction_that_a_statement_broke(default: None) -> None:
    def broken() -> TransactionMisused:
        with transaction.atomic():
            with connections["default"].cursor() as cursor, pytest.raises(Exception, match="nothing_there"):
                cursor.execute("select * from nothing_there")
            error = refusal("default")
            transaction.set_rollback(True)
        return error

    assert broken().code == "session_invalid"


def test_a_connection_closed_inside_of_atomic(alias: str) -> None:
    with transaction.atomic(using=alias):
        connections[alias].close()
        error = refusal(alias)
    assert error.code == "session_invalid"
    assert "closed" in error.message
    assert there(jobs.sync.submit(ship, Order("after"), owner=ANN, transaction=alias).id)  # on a new connection


def test_a_database_that_is_away_is_the_stores_refusal(default: None, monkeypatch: pytest.MonkeyPatch) -> None:
    connections["elsewhere"].close()
    monkeypatch.setitem(connections["elsewhere"].settings_dict, "PORT", "1")
    with pytest.raises(OutlastError) as raised:
        jobs.sync.submit(ship, Order("never"), owner=ANN, transaction="elsewhere")
    assert (raised.value.code, raised.value.retryable) == ("store_unavailable", True)


# ── Django's own ways ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_but_our_own_statements_is_sent_and_none_is_logged(alias: str, name: str) -> None:
    connection = connections[alias]
    sent: list[str] = []

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql.strip())
        return execute(sql, params, many, context)

    connection.force_debug_cursor = True
    try:
        with transaction.atomic(using=alias):
            bought(alias, name)
            connection.queries_log.clear()
            with connection.execute_wrapper(listen):
                jobs.sync.submit(parcel, Order(f"secret {name}"), owner=ANN, transaction=alias)
            assert not connection.queries
    finally:
        connection.force_debug_cursor = False
    assert sent
    words = {sql.split()[0].lower() for sql in sent}
    assert words <= {"with", "insert", "select", "pragma", "update", "delete"}, words


def test_the_hosts_wrappers_are_asked(alias: str, name: str) -> None:
    def never(*_: Any) -> Any:
        raise RuntimeError("no queries here")

    with transaction.atomic(using=alias), connections[alias].execute_wrapper(never), pytest.raises(RuntimeError, match="no queries"):
        jobs.sync.submit(parcel, Order(name), owner=ANN, transaction=alias)


@pytest.mark.parametrize("other", ["pooled", "server_side"])
def test_pools_and_cursor_classes(other: str, default: None, name: str) -> None:
    def fail() -> str:
        with transaction.atomic(using=other):
            job_id = buy(other, f"{name}-lost")
            transaction.set_rollback(True, using=other)
        return job_id

    with transaction.atomic(using=other):
        kept = buy(other, name)
    assert there(kept)
    assert not there(fail())


def test_atomic_requests(default: None, name: str) -> None:
    connections["default"].settings_dict["ATOMIC_REQUESTS"] = True
    try:
        client = Client(raise_request_exception=False)
        kept = client.get(f"/buy/{name}")
        assert client.get(f"/buy/{name}-lost", {"fail": "1"}).status_code == 500
    finally:
        connections["default"].settings_dict["ATOMIC_REQUESTS"] = False
    assert there(kept.json()["id"])
    assert bought("default", name)
    assert not bought("default", f"{name}-lost")
    lost = [job for job in jobs.sync.list(principal=ANN, limit=5).items if job.id > kept.json()["id"]]
    assert not lost


def run(case: type[TestCase | TransactionTestCase], method: str) -> None:
    """One test of Django's, as its runner does it in a database that is there."""
    result = unittest.TestResult()
    unittest.TestSuite([case(method)]).run(result)
    problems = [text for _, text in (*result.errors, *result.failures)]
    assert not problems, problems[0]
    assert result.testsRun == 1


def test_django_test_case_takes_its_jobs_back(alias: str, name: str) -> None:
    found: list[str] = []

    class Case(TestCase):
        databases = frozenset({alias})

        def test(self) -> None:
            found.append(buy(alias, name))
            again = jobs.sync.submit(parcel, Order(name), owner=ANN, key=name, transaction=alias)
            assert jobs.sync.submit(parcel, Order(name), owner=ANN, key=name, transaction=alias).id == again.id
            with transaction.atomic(using=alias):
                found.append(again.id)

        async def test_async(self) -> None:
            found.append((await jobs.submit(ship, Order(name), owner=ANN, transaction=alias)).id)
            await jobs.close()

    for method in ("test", "test_async"):
        run(Case, method)
    assert len(found) == 3
    assert not any(there(job_id) for job_id in found)


def test_django_transaction_test_case_commits(alias: str, name: str) -> None:
    found: list[str] = []

    class Case(TransactionTestCase):
        databases = frozenset({alias})
        available_apps = ("integrations.django.shop",)

        def test(self) -> None:
            with transaction.atomic(using=alias):
                found.append(buy(alias, name))
            assert there(found[0])

    run(Case, "test")
    assert there(found[0])
    assert not bought(alias, name)  # flushed by Django, which knows its own tables only


def test_a_database_that_a_test_case_does_not_name_is_not_touched(default: None) -> None:
    class Case(TestCase):
        databases = frozenset({"lite"})

        def test(self) -> None:
            with pytest.raises(AssertionError, match="not allowed"):
                jobs.sync.submit(ship, Order("never"), owner=ANN, transaction="elsewhere")

    connections["elsewhere"].close()
    run(Case, "test")


async def test_an_async_view(closing: None, default: None, name: str) -> None:
    from django.test import AsyncClient  # noqa: PLC0415

    answer = await AsyncClient().get(f"/abuy/{name}")
    assert await sync_to_async(there)(answer.json()["id"])


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def lite(databases: object) -> Iterator[None]:
    with on("lite"):
        yield
    for connection in connections.all():
        connection.close()


def test_a_reader_that_cannot_become_a_writer_is_contended(lite: None, name: str) -> None:
    """Without transaction_mode a transaction begins as a reader, and another that writes meanwhile keeps it from writing."""
    with transaction.atomic(using="deferred"):
        assert not bought("deferred", name)
        with transaction.atomic(using="lite"):
            Purchase.objects.using("lite").create(name=f"{name}-meanwhile")
            with pytest.raises(Contended):
                jobs.sync.submit(ship, Order(name), owner=ANN, transaction="deferred")
            transaction.set_rollback(True, using="lite")
    with transaction.atomic(using="deferred"):  # anew it holds
        job_id = buy("deferred", name)
    assert there(job_id)


def test_an_immediate_transaction_reads_and_writes(lite: None, name: str) -> None:
    with transaction.atomic(using="lite"):
        assert not bought("lite", name)
        job_id = buy("lite", name)
    assert there(job_id)


def test_a_write_beside_the_threads_own_transaction_is_refused_at_once(lite: None, name: str) -> None:
    with transaction.atomic(using="lite"):
        job_id = buy("lite", name)
        for call in (
            lambda: jobs.sync.submit(parcel, Order(name), owner=ANN),
            lambda: jobs.sync.cancel(job_id, principal=ANN),
        ):
            with pytest.raises(TransactionMisused, match="transaction='lite'") as raised:
                call()
            assert raised.value.code == "inside_transaction"
        assert not there(job_id)  # what reads waits for nobody
    jobs.sync.cancel(job_id, principal=ANN)
    with transaction.atomic(using="deferred"):  # began as a reader, and has no lock
        jobs.sync.submit(parcel, Order(name), owner=ANN)
