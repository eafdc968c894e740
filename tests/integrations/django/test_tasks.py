"""Tasks of Django's framework: stored with the caller's rows, run by a worker, and told about in the framework's words."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.test import override_settings

from integrations.django.conftest import on, tidy
from integrations.django.shop import tasks
from integrations.django.shop.models import Purchase
from outlast import Invalid, NotRegistered, Outlast, Principal
from outlast.client.submitting import prepare_sent
from outlast.integrations.django import framework, jobs
from outlast.integrations.django.running import PLAIN, TaskCall, _tidy_async, task_at
from worker.conftest import start

__all__ = ["start"]

pytestmark = pytest.mark.timeout(90)

_numbers = itertools.count(1)
OWNER = Principal("site", "django-tasks")
BACKEND = "outlast.integrations.django.tasks.OutlastBackend"


def configured(**options: Any) -> Any:
    return override_settings(TASKS={"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}})


@pytest.fixture
def name() -> str:
    return f"task-{next(_numbers)}"


@pytest.fixture
async def work(alias: str, start: Callable[..., Awaitable[Any]]) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Waits until a worker has done a task; gives its result."""

    async def done(result: Any) -> Any:
        await jobs.wait(result.id, principal=OWNER, timeout=60)
        return await sync_to_async(tasks.note.get_backend().get_result)(result.id)

    yield done
    await tidy()


@pytest.fixture
async def worker(alias: str, start: Callable[..., Awaitable[Any]]) -> None:
    await start(jobs)


def states_of(found: Any) -> str:
    return str(found.status.name)


def get(result: Any) -> Any:
    return tasks.note.get_backend().get_result(result.id)


# ── enqueue ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_enqueued_in_the_transaction(alias: str, name: str) -> None:
    with transaction.atomic(using=alias):
        Purchase.objects.using(alias).create(name=name)
        kept = tasks.note.enqueue(name)
        assert states_of(get(kept)) == "READY"  # the transaction sees its own
    with transaction.atomic(using=alias):
        lost = tasks.note.enqueue(name)
        transaction.set_rollback(True, using=alias)
    assert states_of(get(kept)) == "READY"
    with pytest.raises(framework.part("exceptions").TaskResultDoesNotExist):
        get(lost)


async def test_aenqueue_and_aget_result(alias: str, name: str) -> None:
    result = await tasks.note.aenqueue(name, more=[1, {"two": None}])
    found = await tasks.note.aget_result(result.id)
    assert (found.args, found.kwargs, found.backend, found.attempts) == ([name], {"more": [1, {"two": None}]}, "default", 0)
    assert found.task == tasks.note
    assert found.started_at is None
    await tidy()


def test_what_was_asked_for_is_told_again(alias: str) -> None:
    due = datetime.now(UTC) + timedelta(days=2)
    asked = tasks.note.using(priority=-100, queue_name="slow.queue", run_after=due)
    result = asked.enqueue()
    assert result.task == asked
    assert get(result).task == asked
    (queue,) = [queue for queue in jobs.sync.queues(principal=Principal("site", "op", roles=["operator"])) if queue.name == "slow.queue"]
    assert (queue.ready, queue.waiting) == (0, 1)


def test_what_json_does_not_have_is_refused(alias: str) -> None:
    with pytest.raises(TypeError):
        tasks.note.enqueue({1, 2})
    with pytest.raises(Invalid):
        tasks.note.enqueue(float("nan"))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too deeply"):
        tasks.note.enqueue(endless)
    with pytest.raises(framework.part("exceptions").TaskException, match="priority"):
        tasks.note.using(priority=True).enqueue()


@pytest.mark.parametrize("queue", ["a queue", "q" * 101, "ü/x"])
def test_a_queue_of_another_name(queue: str, default: None) -> None:
    with pytest.raises(framework.part("exceptions").TaskException):
        tasks.note.using(queue_name=queue)


def test_a_function_that_a_worker_would_not_find(default: None) -> None:
    hidden = replace(tasks.note, func=tasks.plain)
    with pytest.raises(framework.part("exceptions").TaskException, match="would not find"):
        hidden.enqueue()


def test_whose_the_jobs_are(alias: str) -> None:
    with configured(tenant="acme", subject="integrations.django.test_tasks.subject_of"):
        result = tasks.note.enqueue("ann")
    assert jobs.sync.get(result.id, principal=Principal("acme", "user-ann")).kind == PLAIN
    assert states_of(get(result)) == "READY"


def subject_of(task: Any, args: list[Any], kwargs: dict[str, Any]) -> str:
    return f"user-{args[0]}"


def test_a_receiver_hears_of_it(default: None) -> None:
    heard: list[Any] = []

    def hear(sender: Any, task_result: Any, **_: Any) -> None:
        heard.append((sender.__name__, task_result.id))

    framework.part("signals").task_enqueued.connect(hear)
    try:
        result = tasks.note.enqueue()
    finally:
        framework.part("signals").task_enqueued.disconnect(hear)
    assert heard == [("OutlastBackend", result.id)]


def test_nobody_asks_for_a_task_over_http(default: None) -> None:
    with pytest.raises(NotRegistered):
        prepare_sent(
            jobs.desk.app,
            PLAIN,
            None,
            {"task": "os.system", "backend": "default"},
            owner=Principal("acme", "ann"),
            key="k",
            not_before=None,
        )


@pytest.mark.parametrize(
    "path",
    ["os.system", "subprocess.run", "integrations.django.shop.tasks.plain", "integrations.django.shop.tasks.nothing", "antigravity.x"],
)
def test_only_tasks_are_run(path: str, default: None) -> None:
    import sys  # noqa: PLC0415

    with pytest.raises(ImportError):
        task_at(path)
    assert "antigravity" not in sys.modules


def test_other_jobs_are_no_results(alias: str) -> None:
    from integrations.django.shop.jobs import Order, ship  # noqa: PLC0415

    handle = jobs.sync.submit(ship, Order("x"), owner=OWNER)
    for job_id in (handle.id, "01890000-0000-7000-8000-000000000000", "nonsense", None):
        with pytest.raises(framework.part("exceptions").TaskResultDoesNotExist):
            tasks.note.get_backend().get_result(job_id)


def test_a_result_belongs_to_its_backend(default: None) -> None:
    both = {"default": {"BACKEND": BACKEND, "QUEUES": []}, "other": {"BACKEND": BACKEND, "QUEUES": []}}
    with override_settings(TASKS=both):
        result = tasks.note.using(backend="other").enqueue()
        with pytest.raises(framework.part("exceptions").TaskResultDoesNotExist):
            get(result)
        assert framework.part().task_backends["other"].get_result(result.id).id == result.id


def test_options_are_checked(default: None) -> None:
    with configured(retries=3, subject="nowhere.to.be_found"):
        found = {error.id for error in framework.part().task_backends["default"].check()}
        words = " ".join(error.msg for error in framework.part().task_backends["default"].check())
    assert found == {"outlast.E004"}
    assert "'retries'" in words
    assert "nowhere.to.be_found" in words
    assert not [error for error in run_checks() if error.id == "outlast.E004"]


@pytest.mark.parametrize(
    "options", [{"max_attempts": 0}, {"max_attempts": "5"}, {"deadline": -1}, {"tenant": ""}, {"tenant": 5}, {"subject": "x" * 1000}]
)
def test_options_that_cannot_be_are_found_by_the_check(options: dict[str, Any], default: None) -> None:
    with configured(**options):
        (found,) = framework.part().task_backends["default"].check()
        assert found.id == "outlast.E004"
        assert next(iter(options)) in found.msg
        with pytest.raises((ImproperlyConfigured, Invalid)):
            tasks.note.enqueue()


# ── run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_plain_and_async_tasks_are_done(alias: str, name: str, worker: None, work: Callable[..., Awaitable[Any]]) -> None:
    await Purchase.objects.using("default").acreate(name=name)
    plain = await work(await tasks.note.aenqueue(1, two=[name]))
    assert states_of(plain) == "SUCCESSFUL"
    assert plain.return_value == {"args": [1], "kwargs": {"two": [name]}}
    assert plain.is_finished
    assert plain.attempts == 1
    assert plain.enqueued_at <= plain.started_at == plain.last_attempted_at <= plain.finished_at
    assert (await work(await tasks.note_async.aenqueue(name))).return_value is True
    context = await work(await tasks.with_context.aenqueue(7))
    assert context.return_value == [context.id, 1, 7]


async def test_async_tasks_share_no_connection(default: None) -> None:
    both = asyncio.Barrier(2)

    async def handler() -> Any:
        connection = await sync_to_async(lambda: connections["lite"])()
        await sync_to_async(connection.ensure_connection)()
        await both.wait()
        await asyncio.sleep(0)
        assert await sync_to_async(lambda: connections["lite"])() is connection
        return connection

    ours = await sync_to_async(lambda: connections["lite"])()
    first, second = await asyncio.gather(_tidy_async(handler)(), _tidy_async(handler)())
    assert first is not second
    assert ours not in (first, second)
    assert (first.connection, second.connection) == (None, None)  # closed, each by its own thread


async def test_a_snooze_is_no_attempt(alias: str, worker: None, work: Callable[..., Awaitable[Any]]) -> None:
    assert (await work(await tasks.snoozes_once.aenqueue())).return_value == 1


async def failed(result: Any) -> Any:
    """A task that failed for good needs attention: nobody waits for its end."""
    while True:
        found = await sync_to_async(get)(result)
        if states_of(found) == "FAILED":
            return found
        await asyncio.sleep(0.02)


async def test_what_a_failure_tells(
    alias: str, worker: None, work: Callable[..., Awaitable[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    with configured(max_attempts=1):
        found = await failed(await tasks.fails.aenqueue("hunter2"))
        (error,) = found.errors
        assert error.exception_class is LookupError
        assert "hunter2" not in error.traceback
        assert "nothing for" not in error.traceback
        assert "tasks.py" in error.traceback
        assert error.traceback.endswith("builtins.LookupError (error)\n")
        with pytest.raises(ValueError, match="Task failed"):
            found.return_value  # noqa: B018 - it raises
        assert found.attempts == 1
        assert found.finished_at is not None
        assert (await failed(await tasks.ends_the_process.aenqueue())).errors[0].exception_class is SystemExit
        assert (await failed(await tasks.makes_no_json.aenqueue())).errors[0].exception_class is TypeError
    given_up = await failed(await tasks.gives_up.aenqueue())
    assert "no_such_order" in given_up.errors[0].traceback
    assert given_up.errors[0].exception_class.__name__ == "Permanent"
    chatty = await failed(await tasks.chatters.aenqueue())
    assert "hunter2" not in repr(chatty.errors)
    assert "no_such_order" in chatty.errors[0].traceback
    assert "hunter2" not in caplog.text


async def test_what_will_be_tried_again_is_ready(alias: str, worker: None, work: Callable[..., Awaitable[Any]]) -> None:
    with configured(max_attempts=50):  # so that it waits for its next one sooner or later, when it is looked at
        result = await tasks.fails.aenqueue("x")
    while True:
        found = await sync_to_async(get)(result)
        if found.errors and states_of(found) == "READY":
            break
        await asyncio.sleep(0.02)
    assert states_of(found) == "READY"
    assert found.attempts >= 1


async def test_cancelled_is_failed(alias: str, work: Callable[..., Awaitable[Any]]) -> None:
    result = await tasks.note.aenqueue()
    await jobs.cancel(result.id, principal=OWNER, version=None)
    found = await sync_to_async(get)(result)
    assert states_of(found) == "FAILED"
    assert found.errors[0].traceback == "cancelled\n"


async def test_receivers_hear_of_each_attempt(alias: str, worker: None, work: Callable[..., Awaitable[Any]]) -> None:
    heard: list[tuple[str, str, str]] = []

    def hear(sender: Any, signal: Any, task_result: Any, **_: Any) -> None:
        which = "started" if signal is framework.part("signals").task_started else "finished"
        heard.append((task_result.id, which, task_result.status.name))

    signals = [framework.part("signals").task_started, framework.part("signals").task_finished]
    for signal in signals:
        signal.connect(hear)
    try:
        with configured(max_attempts=1):
            done = await work(await tasks.note.aenqueue())
            lost = await failed(await tasks.fails.aenqueue("x"))
    finally:
        for signal in signals:
            signal.disconnect(hear)
    for result, end in ((done, "SUCCESSFUL"), (lost, "FAILED")):
        assert [told[1:] for told in heard if told[0] == result.id] == [("started", "RUNNING"), ("finished", end)]


async def test_a_task_that_is_not_there_any_more(alias: str, worker: None, work: Callable[..., Awaitable[Any]]) -> None:
    call = TaskCall("integrations.django.shop.tasks.gone", "default")
    handle = await jobs.submit(jobs.registry.kind(PLAIN), call, owner=OWNER)
    while True:
        view = await jobs.get(handle.id, principal=OWNER)
        if view.attention is not None:
            break
        await asyncio.sleep(0.02)
    assert view.attention is not None
    assert view.attention.code == "task_unknown"


def test_the_project_is_one_outlast(default: None) -> None:
    assert isinstance(jobs, Outlast)
    with on("lite"):
        assert jobs.url.startswith("sqlite:////")
    assert jobs.url.startswith("postgresql://")
