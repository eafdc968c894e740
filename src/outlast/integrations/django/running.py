"""Runs what Django's Tasks framework enqueued: one task of ours for its plain functions, one for its async ones.

Both are tasks and no kinds, so that nobody can ask for them over HTTP. What is run is named by an import path, and is run only if there
is a Task of the framework at that place, in a module that is imported already or belongs to an installed app.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final, cast

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.apps import apps
from django.db import close_old_connections, connections

from outlast.domain.errors import OutlastError
from outlast.domain.failures import Failure, Permanent, Snooze
from outlast.domain.ids import moment_of
from outlast.domain.kinds import ItemTask, Plan, Task
from outlast.domain.registry import Registry
from outlast.integrations.django import framework
from outlast.observe.correlation import worker_id
from outlast.worker.context import Context, SyncContext

PLAIN: Final = "django-task"
ASYNC: Final = "django-async-task"
NAMES: Final = frozenset({PLAIN, ASYNC})


@dataclass(frozen=True)
class TaskCall:
    """What was enqueued. `task` is the import path; `run_after` a date and time as ISO 8601 has it."""

    task: str
    backend: str
    args: list[Any] = field(default_factory=list[Any])
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    queue: str = "default"
    priority: int = 0
    run_after: str | None = None
    max_attempts: int = 5
    deadline: float = 600.0


class Raised(Exception):
    """What the function of a task raised. Its text is the class of that and nothing else, so that it can be shown."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.path = framework.path_of(type(error))

    def __str__(self) -> str:
        return self.path


class Unstorable(Permanent):
    """What the function returned is no JSON. Its text is the class of what was raised about it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("result_invalid", "The task's result cannot be stored.")
        self.path = framework.path_of(type(error))

    def __str__(self) -> str:
        return self.path


class DjangoTask(Task[TaskCall, Any]):
    """A task of Django's, in the queue and with the priority of the call."""

    def _alone(self, plan: Plan[TaskCall], input: TaskCall) -> None:
        plan.task(
            self,
            label=input.task.rpartition(".")[2],
            queue=input.queue,
            priority=-input.priority,  # Django's highest comes first, ours last
            max_attempts=input.max_attempts,
            deadline=input.deadline,
        )


class TidyRegistry(Registry):
    """Gives connections of Django's back around each task, where its settings do not keep them, as Django does around each request."""

    def add_task(self, task: Task[Any, Any] | ItemTask[Any, Any, Any]) -> None:
        """See `Registry`."""
        super().add_task(task)
        task.handler = _tidy_async(task.handler) if inspect.iscoroutinefunction(task.handler) else _tidy(task.handler)


def _tidy(handler: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(handler)
    def tidy(*arguments: Any) -> Any:
        close_old_connections()
        try:
            return handler(*arguments)
        finally:
            close_old_connections()

    return tidy


def _tidy_async(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Each run has a thread and connections of its own, as Django's ASGI handler gives to each request.

    Otherwise all async tasks of a process would share one connection, and be in each other's transactions. They end with the thread.
    """

    @functools.wraps(handler)
    async def tidy(*arguments: Any) -> Any:
        async with ThreadSensitiveContext():
            try:
                return await handler(*arguments)
            finally:
                await sync_to_async(connections.close_all, thread_sensitive=True)()

    return tidy


def register(registry: Registry) -> None:
    """Lets an `Outlast` enqueue and run tasks of the framework."""
    for name, handler in ((PLAIN, _run), (ASYNC, _run_async)):
        registry.add_task(DjangoTask(name, handler=handler, input_type=TaskCall, returns=Any, options={}))


def task_at(path: str) -> framework.TaskLike:
    """The Task of the framework at an import path; ImportError if there is none, or in a module that is none of the project's."""
    module_name, _, attribute = path.rpartition(".")
    if module_name not in sys.modules and apps.get_containing_app_config(module_name) is None:
        raise ImportError("The module of the task is not imported, and belongs to no installed app.")
    found = getattr(import_module(module_name), attribute, None)
    if not isinstance(found, framework.part("base").Task):
        raise ImportError("There is no task at that place.")  # noqa: TRY004 - as if nothing were there
    return found


def as_enqueued(call: TaskCall) -> framework.TaskLike:
    """The task with what was asked for when it was enqueued. ImportError if it is not there any more."""
    return task_at(call.task).using(
        priority=call.priority,
        queue_name=call.queue,
        run_after=None if call.run_after is None else datetime.fromisoformat(call.run_after),
        backend=call.backend,
    )


def result_of(task: framework.TaskLike, call: TaskCall, job_id: str, *, status: str, **known: Any) -> framework.ResultLike:
    """A result of the framework. Times are aware datetimes in UTC."""
    base = framework.part("base")
    times = dict.fromkeys(("enqueued_at", "started_at", "finished_at", "last_attempted_at"))
    return base.TaskResult(
        task=task,
        id=job_id,
        status=base.TaskResultStatus[status],
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        **{**times, "errors": [], "worker_ids": [], **known},
    )


class _Run:
    """One attempt: what is told to the framework's receivers, and what comes of the function."""

    def __init__(self, ctx: Context | SyncContext, call: TaskCall) -> None:
        self._ctx = ctx
        self._call = call
        self._started = datetime.now(UTC)
        try:
            self.task = as_enqueued(call)
        except (ImportError, AttributeError, ValueError) as error:
            raise Permanent("task_unknown", "This release has no such task.") from error
        # Of the attempts before this one only their number is known here; `get_result` has their workers.
        workers = [*[""] * (ctx.attempt - 1), worker_id.get() or ""]
        self._known: dict[str, Any] = {
            "enqueued_at": moment_of(ctx.job_id),
            "started_at": self._started,
            "last_attempted_at": self._started,
            "worker_ids": workers,
        }
        self._result = result_of(self.task, call, ctx.job_id, status="RUNNING", **self._known)
        self._tell("task_started")

    @property
    def arguments(self) -> tuple[Any, ...]:
        if self.task.takes_context:
            return framework.part("base").TaskContext(task_result=self._result), *self._call.args
        return tuple(self._call.args)

    def done(self, value: Any) -> Any:
        try:
            stored = framework.normalized(value)
        except (TypeError, ValueError) as error:
            self.over("FAILED")
            raise Unstorable(error) from error
        self.over("SUCCESSFUL")
        return stored

    def failed(self, error: BaseException) -> BaseException:
        """What the attempt ends with. Failures of Outlast's own words keep their meaning."""
        final = isinstance(error, Permanent) or self._ctx.attempt >= self._call.max_attempts
        if not isinstance(error, Failure | Snooze | OutlastError):
            found: BaseException = Raised(error)
            found.__cause__ = error
        else:
            found, final = error, final and not isinstance(error, Snooze)
        if final:
            self.over("FAILED")
        return found

    def over(self, status: str) -> None:
        known = {**self._known, "finished_at": datetime.now(UTC)}
        self._result = result_of(self.task, self._call, self._ctx.job_id, status=status, **known)
        self._tell("task_finished")

    def _tell(self, signal: str) -> None:
        sender = type(cast("object", self.task.get_backend()))
        getattr(framework.part("signals"), signal).send_robust(sender, task_result=self._result)


def _run(ctx: SyncContext, call: TaskCall) -> Any:
    run = _Run(ctx, call)
    return _ended(run, lambda: run.task.func(*run.arguments, **call.kwargs))


def _ended(run: _Run, function: Callable[[], Any]) -> Any:
    failed: BaseException
    try:
        value = function()
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is told, not swallowed
        failed = error
    else:
        return run.done(value)
    raise run.failed(failed)  # outside of the handler: Django's own receiver would log the exception that is handled


async def _run_async(ctx: Context, call: TaskCall) -> Any:
    run = await sync_to_async(_Run, thread_sensitive=True)(ctx, call)
    return await _awaited(run, run.task.func(*run.arguments, **call.kwargs))


async def _awaited(run: _Run, coroutine: Coroutine[Any, Any, Any]) -> Any:
    failed: BaseException
    try:
        value = await coroutine
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is told, not swallowed
        failed = error
    else:
        return await sync_to_async(run.done, thread_sensitive=True)(value)
    raise await sync_to_async(run.failed, thread_sensitive=True)(failed)
