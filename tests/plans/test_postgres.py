"""The hot statements read by an index what they name, whatever the statistics say: on empty, full and churned tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from outlast.domain.access import Scope
from outlast.domain.work import Failed, Filter, Finished, Renewal, TaskRef
from outlast.store.postgres.dialect import SCHEMA
from outlast.store.postgres.session import Profile
from outlast.store.postgres.store import PostgresStore
from outlast.store.program import Statement
from outlast.store.programs import admission, claims, completion, control, schedules, status, steps, sweep
from plans.filling import OWNER, QUEUE, TENANT, admission_of, bulk, claim, drain
from plans.reading import Connection, Prepared, buffers, first, scans, session

pytestmark = pytest.mark.timeout(120)

CLAIM_INDEX, DUE_INDEX, OWNER_INDEX = "outlast_entry_claim", "outlast_entry_due", "outlast_job_owner"
SCHEDULE_INDEX = "outlast_schedule_due"
ONE_JOB = "job_pkey or outlast_job_id"  # by (tenant, id) or by id: one row either way
BIG = ("queue_entry", "task", "job", "job_input")
WHOLE = {"(Seq Scan)", "(Bitmap Heap Scan)"}
JOBS = 20_000


def _ref() -> TaskRef:
    """A task that is not there: for a plan, its key is enough."""
    return TaskRef(TENANT, str(uuid.uuid4()), 0, 1, "w:1")


_SCHEDULE = {"tenant": TENANT, "owner": OWNER, "name": "s", "version": 1}
_FAILED = Failed(_ref(), "w", "error", "It failed.")
HOT: dict[str, tuple[Statement, dict[str, str]]] = {
    "claim": (first(claim(1)), {"queue_entry": CLAIM_INDEX, "task": "task_pkey", "job": ONE_JOB, "job_input": "job_input_pkey"}),
    "finish": (
        first(completion.finish([Finished(_ref(), "w", "1") for _ in range(200)], 1_000)),
        {"queue_entry": "queue_entry_pkey", "task": "task_pkey", "job": ONE_JOB, "edge": "edge_pkey"},
    ),
    "renew": (first(claims.renew([Renewal(_ref()) for _ in range(200)], 1_000)), {"queue_entry": "queue_entry_pkey"}),
    "wake": (first(claims.wake(1_000)), {"queue_entry": DUE_INDEX}),
    "next_due": (Statement("next_due", {}), {"queue_entry": DUE_INDEX}),
    "retry": (first(completion.retry(_FAILED, 1_000)), {"queue_entry": "queue_entry_pkey"}),
    "release": (first(claims.snooze(_ref(), 1_000)), {"queue_entry": "queue_entry_pkey"}),
    "entry": (first(completion.budget(_FAILED, 0.5)), {"queue_entry": "queue_entry_pkey", "task": "task_pkey"}),
    "store_step": (first(steps.store_step(_ref(), "s", "1")), {"queue_entry": "queue_entry_pkey"}),
    "admit": (first(admission.admit([admission_of(key=f"k{n}") for n in range(200)])), {}),
    "claimed_rows": (first(claims.claimed_by(QUEUE, "w:1")), {"queue_entry": f"{CLAIM_INDEX} or queue_entry_pkey"}),
    "job_view": (first(status.job(Scope(TENANT, OWNER), str(uuid.uuid4()))), {"job": ONE_JOB}),
    "due_schedules": (first(schedules.due(None, 100)), {"schedule": SCHEDULE_INDEX}),
    "next_schedule": (Statement("next_schedule", {}), {"schedule": SCHEDULE_INDEX}),
    "lock_due_schedule": (Statement("lock_due_schedule", {**_SCHEDULE, "until": 1}), {"schedule": "schedule_pkey"}),
    "fire_schedule": (Statement("fire_schedule", {**_SCHEDULE, "next_at": 1, "due_at": 1, "job_id": None}), {"schedule": "schedule_pkey"}),
    "fail_schedule": (Statement("fail_schedule", {**_SCHEDULE, "next_at": 1, "code": "x"}), {"schedule": "schedule_pkey"}),
    "job_list": (first(status.jobs(Scope(TENANT, OWNER), Filter(), limit=50, before=None)), {"job": f"{OWNER_INDEX} or outlast_job_id"}),
}
_CANCEL = control.cancel(Scope(TENANT, OWNER), str(uuid.uuid4()), version=None, actor=OWNER, retention_ms=1_000)
_PLACE = {"tenant": TENANT, "job_id": str(uuid.uuid4())}
OF_CLIENTS: dict[str, tuple[Statement, dict[str, str]]] = {
    **{name: HOT[name] for name in ("admit", "job_view", "job_list")},
    "lock_job": (first(_CANCEL), {"job": ONE_JOB}),
    "revoke_entries": (Statement("revoke_entries", _PLACE), {"queue_entry": "queue_entry_pkey"}),
    "cancel_tasks": (Statement("cancel_tasks", _PLACE), {"task": "task_pkey", "queue_entry": "queue_entry_pkey"}),
    "delete_unheld": (Statement("delete_unheld", _PLACE), {"queue_entry": "queue_entry_pkey"}),
    "active_job": (Statement("active_job", {"tenant": TENANT, "scope": f"k/{OWNER}", "active": "u"}), {"job": "outlast_job_active"}),
    "job_stands": (Statement("job_stands", _PLACE), {"job": ONE_JOB}),
    "task_list": (Statement("task_list", _PLACE), {"task": "task_pkey", "queue_entry": "queue_entry_pkey"}),
}


def _missing(expected: dict[str, str], read: dict[str, set[str]]) -> dict[str, str]:
    """The tables that are not read by the index that they should be read by."""
    return {table: names for table, names in expected.items() if not set(names.split(" or ")) & read.get(table, set())}


@dataclass(frozen=True, slots=True)
class Stage:
    """A database in some state, and the hot statements as they were prepared while it was empty."""

    conninfo: str
    connection: Connection
    prepared: dict[str, Prepared]


def _nothing(_: str) -> None:
    """As it is."""


def _full(conninfo: str) -> None:
    bulk(conninfo, JOBS)


def _analyzed(conninfo: str) -> None:
    bulk(conninfo, JOBS)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def _churned(conninfo: str) -> None:
    """Most of it done, nothing vacuumed, and more of it here."""
    bulk(conninfo, 4_000)
    store = PostgresStore(conninfo, profile=Profile(worker=True))
    drain(store, renewing=True)
    store.close_sync()
    bulk(conninfo, JOBS)


@pytest.fixture(scope="module", params=[_nothing, _full, _analyzed, _churned], ids=["empty", "full", "analyzed", "churned"])
def stage(request: pytest.FixtureRequest, make: Callable[[], str]) -> Iterator[Stage]:
    conninfo = make()
    with session(conninfo, worker=True) as connection:
        prepared = {name: Prepared(connection, name) for name in (*HOT, "ended_leases")}
        for name, (statement, _) in HOT.items():
            prepared[name].explain(statement.params)
        request.param(conninfo)
        yield Stage(conninfo, connection, prepared)


@pytest.mark.parametrize("name", HOT)
def test_a_workers_statements_read_by_index(stage: Stage, name: str) -> None:
    statement, expected = HOT[name]

    read = scans(stage.prepared[name].explain(statement.params))

    assert {table: how & WHOLE for table, how in read.items() if table in BIG and how & WHOLE} == {}
    assert _missing(expected, read) == {}


def test_a_claim_reads_entries_by_its_own_index_alone(stage: Stage) -> None:
    read = scans(stage.prepared["claim"].explain(HOT["claim"][0].params))

    assert read["queue_entry"] == {CLAIM_INDEX, "(tid)"}


def test_a_claim_looks_at_no_more_than_it_takes(stage: Stage) -> None:
    twenty = first(claim(1, 20))

    looked_at = buffers(stage.prepared["claim"].explain(twenty.params, analyze=True))

    assert looked_at < 1_000  # some 20 pages a task: three key joins and two writes; the table has thousands


def test_a_page_of_jobs_looks_at_little_more_than_itself(stage: Stage) -> None:
    page = HOT["job_list"][0]

    looked_at = buffers(stage.prepared["job_list"].explain(page.params, analyze=True))

    assert looked_at < 3_000  # 51 jobs, a dozen pages each, and the jobs of others in between; all entries and tasks would be thousands


def test_the_sweep_of_ended_leases_goes_over_the_entries_once(stage: Stage) -> None:
    lost = first(sweep.ended_leases(None, 200))

    looked_at = buffers(stage.prepared["ended_leases"].explain(lost.params, analyze=True))

    row = stage.connection.execute(
        f"select (pg_relation_size('{SCHEMA}.queue_entry') + pg_relation_size('{SCHEMA}.queue_entry_pkey')) / 8192, "
        f"count(*) from {SCHEMA}.queue_entry"
    ).fetchone()
    assert row is not None
    pages, entries = row
    assert looked_at <= 2 * pages + entries + 50


@pytest.mark.parametrize("name", OF_CLIENTS)
@pytest.mark.parametrize("stage", [_full, _analyzed], ids=["full", "analyzed"], indirect=True)
def test_a_clients_statements_read_by_index(stage: Stage, name: str) -> None:
    statement, expected = OF_CLIENTS[name]
    with session(stage.conninfo, worker=False) as connection:
        read = scans(Prepared(connection, name).explain(statement.params))

    assert {table: how & WHOLE for table, how in read.items() if table in BIG and how & WHOLE} == {}
    assert _missing(expected, read) == {}
