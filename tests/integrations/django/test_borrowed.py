"""Cases that Django and django-tasks-db have for their own backends, on ours; fetched from the package registry, none of them kept here.

What cannot apply is listed here and, for people, in docs/django.md, with its reason; everything else has to pass.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from outlast.integrations.django import framework

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCES: Final = ("django==6.1.3", "django-tasks-db==0.13.0")
SUITES: Final = ("dummy", "immediate", "tasks", "database")

_INTERNALS = "changes a row or object of its own backend to stand for what a worker does"
_TEXT = "asks for the text of the task's exception, which may hold what is secret and is kept for operators alone"
_SUPPORTED = "asks that something be refused which this backend does"
_AT_ONCE = "asks that the task run inside of enqueue, before the transaction commits"
_COMMAND = "tests options and output of its own command; the worker here is `outlast_worker`"
_TABLE = "tests its own table: columns, constraints, ordering, query plan"
_IDS = "tests its own option for ids"

NOT_APPLICABLE: Final = {
    "DummyBackendTestCase.test_refresh_result": _INTERNALS,
    "DummyBackendTestCase.test_refresh_result_async": _INTERNALS,
    "ImmediateBackendTestCase.test_cannot_get_result": _SUPPORTED,
    "ImmediateBackendTestCase.test_cannot_pass_run_after": _SUPPORTED,
    "ImmediateBackendTestCase.test_cannot_refresh_result": _SUPPORTED,
    "ImmediateBackendTestCase.test_catches_exception": _TEXT,
    "ImmediateBackendTestCase.test_complex_exception": _TEXT,
    "ImmediateBackendTestCase.test_complex_return_value": _TEXT,
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt": _AT_ONCE,
    "ImmediateBackendTransactionTestCase.test_doesnt_wait_until_transaction_commit_by_default": _AT_ONCE,
    "TaskTestCase.test_refresh_result": "calls the blocking refresh() in async code, where Django itself refuses to ask a database",
    "DatabaseBackendTestCase.test_custom_id_function": _IDS,
    "DatabaseBackendTestCase.test_unknown_id_function": _IDS,
    "DatabaseBackendTestCase.test_postgres_db_id_function": _IDS,
    "DatabaseBackendTestCase.test_postgres_id_function_expression": _IDS,
    "DatabaseBackendTestCase.test_database_backend_app_missing": _TABLE,
    "DatabaseBackendTestCase.test_index_scan_for_ready": _TABLE,
    "DatabaseBackendTestCase.test_invalid_task_path": _TABLE,
    "DatabaseBackendTestCase.test_missing_task_path": _TABLE,
    "DatabaseBackendTestCase.test_priority_range_check": _TABLE,
    "DatabaseBackendTestCase.test_run_after_null_0016_migration": _TABLE,
    "DatabaseBackendTestCase.test_task_name": _TABLE,
    "DatabaseBackendWorkerTestCase.test_run_after": _TABLE,
    "DatabaseBackendWorkerTestCase.test_run_after_priority": _TABLE,
    "DatabaseBackendWorkerTestCase.test_task_import_string": _TABLE,
    "DatabaseBackendWorkerTestCase.test_worker_with_locked_rows": _TABLE,
    "DatabaseBackendWorkerTestCase.test_complex_exception": _TEXT,
    "DatabaseBackendWorkerTestCase.test_complex_return_value": _TEXT,
    "DatabaseBackendWorkerTestCase.test_failing_task": _TEXT,
    "DatabaseBackendWorkerTestCase.test_doesnt_process_different_backend": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_exclude_queues_requires_processing_all_queues": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_process_all_queues_excluding_one_queue": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_excluding_unknown_queue_processes_selected_queues": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_max_tasks": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_verbose_logging": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_unknown_backend": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_incorrect_backend": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_negative_interval": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_infinite_interval": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_fractional_interval": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_zero_interval": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_negative_max_tasks": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_zero_max_tasks": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_too_long_worker_id": _COMMAND,
    "DatabaseBackendWorkerTestCase.test_empty_worker_id": _COMMAND,
}

NOT_ON_THE_PACKAGE: Final = {
    "DummyBackendTestCase.test_validate_disallowed_async_task": "the package words the refusal otherwise",
    "TaskTestCase.test_pickle_task": "the package's tasks cannot be pickled",
    "TaskTestCase.test_pickle_task_result": "the package's tasks cannot be pickled",
    "TaskTestCase.test_run_after_in_decorator": "the package words the refusal otherwise",
    "TaskTestCase.test_unpickle_arbitrary_string": "the package's tasks cannot be pickled",
    "TaskTestCase.test_unpickle_non_task_object": "the package's tasks cannot be pickled",
}
"""With django-tasks in place of Django 6."""


@pytest.fixture(scope="module")
def sources() -> Iterator[Path]:
    """What is borrowed, unpacked. In memory where there is a place for that: each case empties its tables."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="outlast-borrowed-"))
    try:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--ignore-requires-python"]
        command += ["--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "10", "--dest", str(folder), *SOURCES]
        try:
            fetched = subprocess.run(command, capture_output=True, text=True, check=False, timeout=80)
        except subprocess.TimeoutExpired:
            pytest.skip("CASES OF DJANGO AND DJANGO-TASKS-DB NOT RUN: the package registry did not answer in time")
        if fetched.returncode:
            pytest.skip(f"CASES OF DJANGO AND DJANGO-TASKS-DB NOT RUN: pip could not fetch {' and '.join(SOURCES)}")
        for archive in folder.glob("*.tar.gz"):
            _unpack(archive, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            inside = member.name.partition("/")[2]
            if inside.startswith("tests/tasks/"):
                member.name = inside.removeprefix("tests/")
            elif inside == "tests/tests.py":
                member.name = "django_tasks_db_tests.py"
            elif inside.startswith("django_tasks_db"):
                member.name = inside
            else:
                continue
            tar.extract(member, folder, filter="data")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("suite", SUITES)
def test_borrowed_cases(suite: str, sources: Path) -> None:
    script = Path(__file__).with_name("borrowed.py")
    ran = subprocess.run([sys.executable, str(script), str(sources), suite], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    told: dict[str, str] = json.loads(ran.stdout)
    left_out = NOT_APPLICABLE if framework.name() == "django.tasks" else {**NOT_APPLICABLE, **NOT_ON_THE_PACKAGE}
    mine = {case: came for case, came in told.items() if case not in left_out}
    assert not {case: came for case, came in mine.items() if came != "passed"}
    assert len(mine) >= {"dummy": 14, "immediate": 12, "tasks": 33, "database": 27}[suite]
    assert {case for case in NOT_APPLICABLE if case.partition(".")[0] in {name.partition(".")[0] for name in told}} <= set(told)


def test_the_list_for_people_has_them_all() -> None:
    text = (ROOT / "docs" / "django.md").read_text()
    for case, reason in {**NOT_APPLICABLE, **NOT_ON_THE_PACKAGE}.items():
        assert f"`{case.partition('.')[2]}`" in text, case
        assert reason in text, reason
