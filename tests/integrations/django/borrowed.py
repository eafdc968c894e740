"""Runs cases that Django, or django-tasks-db, has for its own backends, on ours. A process of its own: `borrowed.py FOLDER SUITE`.

FOLDER holds what the test has fetched: `tasks/` of Django's tests, and the package django_tasks_db with its `tests.py`. The cases are
subclassed, told our backend in place of theirs, and run on an SQLite file. Standard output is one JSON object: what came of each case.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import sys
import threading
import types
import unittest
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
SUITE = sys.argv[2]
OURS = "borrowed.Recorded"
sys.modules["borrowed"] = sys.modules[__name__]
sys.path.insert(0, str(FOLDER))

from django.conf import settings  # noqa: E402 - the path comes first

warnings.simplefilter("ignore")
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": FOLDER / f"{SUITE}.sqlite3",
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "init_command": "pragma synchronous = off"},
        }
    },
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "outlast.integrations.django",
        *(["django_tasks_db"] if SUITE.startswith("database") else []),
    ],
    SECRET_KEY="for-tests",
    USE_TZ=True,
    LOGGING_CONFIG=None,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    OUTLAST={"database": "default"},
    TASKS={"default": {"BACKEND": OURS, "QUEUES": ["default", "queue-1"] if SUITE == "database" else []}},
)

import django  # noqa: E402

django.setup()

import django.test  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, connections, transaction  # noqa: E402

from outlast import Principal  # noqa: E402
from outlast.integrations.django import framework, jobs  # noqa: E402
from outlast.integrations.django.backend import OutlastBackend  # noqa: E402
from outlast.integrations.django.results import _STATES  # noqa: E402
from outlast.integrations.django.running import PLAIN, TaskCall  # noqa: E402
from outlast.worker.runtime import Options, Worker  # noqa: E402

LOGGER = framework.name()
if LOGGER == "django_tasks":  # what Django has under another name from version 6 on
    for name in ("", ".base", ".exceptions", ".signals", ".backends", ".backends.base", ".backends.dummy", ".backends.immediate"):
        sys.modules[f"django.tasks{name}"] = importlib.import_module(f"django_tasks{name}")
    sys.modules["django.tasks.exceptions"].InvalidTask = framework.part("exceptions").InvalidTaskError  # type: ignore[attr-defined]
    sys.modules["django.tasks.exceptions"].InvalidTaskBackend = framework.part("exceptions").InvalidTaskBackendError  # type: ignore[attr-defined]
    framework.part().Task = framework.part("base").Task  # type: ignore[attr-defined]


class Recorded(OutlastBackend):
    """Ours, which also knows what was enqueued, as the backend for tests does. One attempt: the cases expect no second one."""

    ids: list[str] = []  # noqa: RUF012 - of all backends, which are made anew for each thread

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._single = {"max_attempts": 1}

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        given, self.options = self.options, {**self.options, **self._single}
        try:
            result = super().enqueue(task, args, kwargs)
        finally:
            self.options = given
        self.ids.append(result.id)
        return result

    @property
    def results(self) -> list[Any]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return [self.get_result(one) for one in self.ids]
        with ThreadPoolExecutor(1) as apart:  # Django refuses to be asked in async code itself
            return list(apart.map(self._seen, self.ids))

    def _seen(self, result_id: str) -> Any:
        try:
            return self.get_result(result_id)
        finally:
            connections.close_all()

    def clear(self) -> None:
        self.ids.clear()
        empty()


class Worked(Recorded):
    """As Recorded, and a worker does the task before `enqueue` returns."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        drain()
        return self.get_result(result.id)


def empty() -> None:
    """Leaves the store as it was when it was made."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "select name from sqlite_master where type = 'table' and name like 'outlast_%%' and name not like '%%migration%%'", []
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"delete from {table}")


def drain(queues: dict[str, int] | None = None) -> None:
    """Lets a worker do what is ready, in a thread with a loop of its own."""

    async def work() -> None:
        store = jobs.store
        worker = Worker(store, jobs.registry, jobs.settings, Options(queues), sessions=jobs.sessions)
        running = asyncio.create_task(worker.run(on_ready=lambda _: None))
        while await asyncio.to_thread(waiting, queues):  # noqa: ASYNC110 - the store says nothing by itself
            await asyncio.sleep(0.01)
        worker.stop()
        await running

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()


def waiting(queues: dict[str, int] | None) -> int:
    """How many tasks are ready or running."""
    from outlast.store.programs import status  # noqa: PLC0415

    rows = jobs.store.run_sync(status.queues())
    return sum(row.ready + row.held for row in rows if queues is None or row.queue in queues)


class Rows:
    """What the cases ask of a table of theirs, answered by our results."""

    def __init__(self, wanted: str | None = None) -> None:
        self._wanted = wanted

    def all(self) -> Rows:
        return self

    def ready(self) -> Rows:
        return Rows("READY")

    def successful(self) -> Rows:
        return Rows("SUCCESSFUL")

    def failed(self) -> Rows:
        return Rows("FAILED")

    def count(self) -> int:
        found = Recorded("default", {"QUEUES": []}).results
        return sum(self._wanted in (None, result.status.name) for result in found)

    def get(self, *, id: str) -> Any:
        return Recorded("default", {"QUEUES": []}).get_result(id)

    def update(self, **_: Any) -> None:
        """They write what a worker would have written; ours is written by one."""
        drain()

    async def aupdate(self, **_: Any) -> None:
        await asyncio.to_thread(drain)

    def create(self, *, task_path: str, args_kwargs: dict[str, Any], **_: Any) -> Row:
        call = TaskCall(task_path, "default", **args_kwargs)
        return Row(jobs.sync.submit(jobs.registry.kind(PLAIN), call, owner=Principal("site", "django-tasks")).id)


class Row:
    """What the store holds about a task that cannot be named: a result of the framework would have to name it."""

    def __init__(self, job_id: str) -> None:
        self._id = job_id
        self.status: Any = None

    def refresh_from_db(self) -> None:
        state = jobs.sync.get(self._id, principal=Principal("site", "django-tasks")).state
        self.status = framework.part("base").TaskResultStatus[_STATES[state]]


class Ids(types.ModuleType):
    """The module uuid, to which ours of version 7 are what theirs of version 4 are."""

    uuid4 = staticmethod(uuid.uuid4)

    @staticmethod
    def UUID(text: str) -> Any:  # noqa: N802 - the module's name for it
        return types.SimpleNamespace(version=4 if uuid.UUID(text).version == 7 else 0)


class Translating(django.test.override_settings):
    """Settings that name their backend name ours."""

    names: dict[str, str] = {}  # noqa: RUF012 - filled once

    def __init__(self, **given: Any) -> None:
        tasks = given.get("TASKS")
        if tasks:
            given["TASKS"] = {alias: {**said, "BACKEND": self.names.get(said["BACKEND"], said["BACKEND"])} for alias, said in tasks.items()}
        super().__init__(**given)


class Apart(django.test.TransactionTestCase):
    """Each case on an empty store, with the database at hand."""

    databases = {"default"}  # noqa: RUF012 - Django's word
    available_apps = None

    def setUp(self) -> None:
        Recorded.ids.clear()
        empty()
        super().setUp()

    @contextlib.contextmanager
    def assertNumQueries(self, *_: Any, **__: Any) -> Iterator[None]:  # noqa: N802 - how many there are is each backend's own
        yield

    def assertLogs(self, logger: Any = None, level: Any = None) -> Any:  # noqa: N802 - unittest's
        return super().assertLogs(LOGGER if logger == "django.tasks" else logger, level)

    @staticmethod
    def run_worker(queue_name: str = "default", **_: Any) -> None:
        drain(None if queue_name == "*" else dict.fromkeys(queue_name.split(","), 4))


_DJANGO = {
    "dummy": ("tasks.test_dummy_backend", "DummyBackend", "Recorded"),
    "immediate": ("tasks.test_immediate_backend", "ImmediateBackend", "Worked"),
    "tasks": ("tasks.test_tasks", "DummyBackend", "Recorded"),
    "database": ("django_tasks_db_tests", "DatabaseBackend", "Recorded"),
}
_CASES = {
    "dummy": ("DummyBackendTestCase", "DummyBackendTransactionTestCase"),
    "immediate": ("ImmediateBackendTestCase", "ImmediateBackendTransactionTestCase"),
    "tasks": ("TaskTestCase",),
    "database": ("DatabaseBackendTestCase", "DatabaseBackendWorkerTestCase"),
}


def borrowed() -> Iterator[unittest.TestCase]:
    """The cases of the suite, each told our backend."""
    module_name, theirs, ours = _DJANGO[SUITE]
    kind = theirs.removesuffix("Backend").lower()
    Translating.names = {
        f"django.tasks.backends.{kind}.{theirs}": f"borrowed.{ours}",
        f"django_tasks.backends.{kind}.{theirs}": f"borrowed.{ours}",
        f"django_tasks_db.{theirs}": f"borrowed.{ours}",
    }
    django.test.override_settings = Translating  # type: ignore[misc]
    if SUITE == "database":
        tests = types.ModuleType("tests")
        tests.tasks = importlib.import_module("tasks.tasks")  # type: ignore[attr-defined]  # left out of what they publish
        sys.modules["tests"] = tests
    module: Any = importlib.import_module(module_name)
    setattr(module, theirs, globals()[ours])
    if SUITE == "database":
        module.DBTaskResult = types.SimpleNamespace(objects=Rows())
        module.uuid = Ids("uuid")
    for name in _CASES[SUITE]:
        case = getattr(module, name)
        more = {} if issubclass(case, django.test.TransactionTestCase) else {"setUp": Apart.setUp}
        plain = {
            "databases": {"default"},
            "available_apps": None,
            "run_worker": staticmethod(Apart.run_worker),
            "setUp": Apart.setUp,
            **more,
        }
        adapted = type(f"{name}OnOutlast", (Apart, case), plain)
        yield from unittest.defaultTestLoader.loadTestsFromTestCase(adapted)  # type: ignore[misc]


class Told(unittest.TestResult):
    """What came of each case, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, str] = {}

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's
        super().stopTest(test)
        name = test._testMethodName
        found = [text for one, text in (*self.errors, *self.failures) if getattr(one, "test_case", one) is test]
        skipped = [reason for one, reason in self.skipped if one is test]
        where = f"{type(test).__name__.removesuffix('OnOutlast')}.{name}"
        self.told[where] = f"failed: {found[0]}" if found else f"skipped: {skipped[0]}" if skipped else "passed"


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    told = Told()
    unittest.TestSuite(borrowed()).run(told)
    print(json.dumps(told.told))
    jobs.sync.close()
    for one in connections.all():
        one.close()
