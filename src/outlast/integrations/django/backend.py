"""The backend for Django's Tasks framework: enqueued in the caller's transaction, run by `manage.py outlast_worker`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.module_loading import import_string

from outlast.domain.errors import Invalid
from outlast.domain.ids import is_job_id, moment_of
from outlast.domain.kinds import TaskOptions, check_name, check_options
from outlast.domain.model import Principal
from outlast.integrations.django import framework
from outlast.integrations.django.configuration import TENANT
from outlast.integrations.django.project import Project, project
from outlast.integrations.django.results import found, shown
from outlast.integrations.django.running import ASYNC, PLAIN, TaskCall, result_of, task_at
from outlast.store.sessions.calling import Joined, caller_of

if TYPE_CHECKING:

    class Base:
        """What the framework's backends derive from."""

        alias: str
        queues: set[str]
        options: dict[str, Any]

        def __init__(self, alias: str, params: dict[str, Any]) -> None: ...
        def validate_task(self, task: framework.TaskLike) -> None:
            """Refuses what the backend cannot run."""
            ...

else:
    Base = framework.part("backends.base").BaseTaskBackend

SUBJECT: Final = "django-tasks"
"""Who owns the jobs of tasks, unless OPTIONS['subject'] says so."""
APP: Final = "outlast.integrations.django"
_OPTIONS: Final = ("tenant", "subject", "max_attempts", "deadline")


class OutlastBackend(Base):
    """Durable tasks.

    In the settings, all OPTIONS as they are unless said otherwise:

    TASKS = {"default": {"BACKEND": "outlast.integrations.django.tasks.OutlastBackend", "QUEUES": ["default"],
        "OPTIONS": {"tenant": "site", "subject": "django-tasks", "max_attempts": 5, "deadline": 600}}}

    tenant, subject: whose the jobs are; each a text, or the dotted path of a function (task, args, kwargs) that returns one.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._jobs: Project = project()

    def validate_task(self, task: framework.TaskLike) -> None:
        """See the framework; and a queue's name has letters, digits and _ . - only, and a priority is a number."""
        super().validate_task(task)
        if isinstance(task.priority, bool):
            raise framework.invalid("The priority of a task is a whole number, not True or False.")
        try:
            check_name(task.queue_name, what="queue name")
        except Invalid as error:
            raise framework.invalid(error.message) from error

    def enqueue(self, task: framework.TaskLike, args: Iterable[Any], kwargs: Mapping[str, Any]) -> framework.ResultLike:
        """The result, READY: stored if, and as soon as, the transaction that is open commits; at once where none is.

        InvalidTask for what the backend refuses, TypeError or ValueError for arguments that JSON does not have; what `jobs.sync.submit`
        raises.
        """
        self.validate_task(task)
        path = task.module_path
        try:
            known = task_at(path).func is task.func
        except (ImportError, AttributeError):
            known = False
        if not known:
            raise framework.invalid(
                f"A worker would not find {path!r}: let the task be in a module of an installed app, under its own name."
            )
        call = TaskCall(
            task=path,
            backend=self.alias,
            args=framework.normalized(list(args)),
            kwargs=framework.normalized(dict(kwargs)),
            queue=task.queue_name,
            priority=task.priority,
            run_after=None if task.run_after is None else task.run_after.isoformat(),
            max_attempts=self.options.get("max_attempts", 5),
            deadline=self.options.get("deadline", 600.0),
        )
        owner = Principal(self._owner("tenant", TENANT, task, call), self._owner("subject", SUBJECT, task, call))
        kind = self._jobs.registry.kind(ASYNC if inspect.iscoroutinefunction(task.func) else PLAIN)
        handle = self._jobs.sync.submit(kind, call, owner=owner, not_before=_aware(task.run_after), transaction=self._jobs.alias)
        result = result_of(task, call, handle.id, status="READY", enqueued_at=moment_of(handle.id))
        framework.part("signals").task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> framework.ResultLike:
        """The result as it stands, one of an open transaction's own too; TaskResultDoesNotExist."""
        rows = None
        if is_job_id(result_id):
            store = self._jobs.store
            joined = Joined(caller_of(self._jobs.alias), store)
            rows = joined.run_sync(found(result_id)) if joined.enter() else store.run_sync(found(result_id))
        if rows is None:
            raise framework.missing(f"There is no task result {result_id!r}." if isinstance(result_id, str) else "That is no result's id.")
        result = shown(*rows)
        if result.backend != self.alias:
            raise framework.missing("That is a result of another backend.")
        return result

    def check(self, **kwargs: object) -> Iterable[CheckMessage]:
        """What is wrong with OPTIONS, for `manage.py check`."""
        del kwargs
        for name in self.options:
            if name not in _OPTIONS:
                yield Error(f"OPTIONS of the task backend {self.alias!r} has no {name!r}; it has {', '.join(_OPTIONS)}.", id="outlast.E004")
        if not apps.is_installed(APP):
            yield Error(f"The task backend {self.alias!r} needs {APP!r} in INSTALLED_APPS.", id="outlast.E004")
        try:
            owner = {name: self._said(name, "x") if self._function(name) is None else "x" for name in ("tenant", "subject")}
        except ImproperlyConfigured as error:
            yield Error(str(error), id="outlast.E004")
            return
        said = {name: self.options[name] for name in ("max_attempts", "deadline") if name in self.options}
        try:
            check_options(cast("TaskOptions", said))
            Principal(owner["tenant"], owner["subject"])
        except Invalid as error:
            yield Error(f"OPTIONS of the task backend {self.alias!r}: {error.message}", id="outlast.E004")

    def _owner(self, name: str, otherwise: str, task: framework.TaskLike, call: TaskCall) -> str:
        function = self._function(name)
        return self._said(name, otherwise) if function is None else function(task, call.args, call.kwargs)

    def _said(self, name: str, otherwise: str) -> str:
        value = self.options.get(name, otherwise)
        if not isinstance(value, str) or not value:
            raise ImproperlyConfigured(
                f"OPTIONS[{name!r}] of the task backend {self.alias!r} is a text, or a function or the dotted path of one."
            )
        return value

    def _function(self, name: str) -> Callable[..., str] | None:
        value = self.options.get(name)
        if isinstance(value, str) and "." in value:
            try:
                value = import_string(value)
            except ImportError as error:
                raise ImproperlyConfigured(
                    f"OPTIONS[{name!r}] of the task backend {self.alias!r} names {value!r}, which cannot be imported."
                ) from error
        return cast("Callable[..., str]", value) if callable(value) else None


def _aware(moment: datetime | None) -> datetime | None:
    """Without USE_TZ Django's times are naive, and meant in the settings' zone."""
    return timezone.make_aware(moment) if moment is not None and timezone.is_naive(moment) else moment
