"""The hot statements read by an index what they name, whatever the statistics say: on empty, full and churned tables."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from outlast.domain.access import Scope
from outlast.domain.work import Failed, Filter, Finished, Renewal, TaskRef
from outlast.store.postgres.dialect import SCHEMA
from outlast.store.postgres.session import Profile, reading
from outlast.store.postgres.store import PostgresStore
from outlast.store.program import Statement
from outlast.store.programs import admission, claims, completion, control, retention, schedules, slots, status, steps, sweep
from plans.filling import OWNER, QUEUE, TENANT, admission_of, bulk, claim, drain
from plans.reading import Connection, Prepared, buffers, first, nodes, scans, session

pytestmark = pytest.mark.timeout(120)

CLAIM_INDEX, KEYED_INDEX, DUE_INDEX, OWNER_INDEX = "outlast_entry_claim", "outlast_entry_keyed", "outlast_entry_due", "outlast_job_owner"
SCHEDULE_INDEX = "outlast_schedule_due"
ONE_JOB = "job_pkey or outlast_job_id"  # by (tenant, id) or by id: one row either way
BIG = ("queue_entry", "task", "job", "job_input", "slot")
WHOLE = {"(Seq Scan)", "(Bitmap Heap Scan)"}
JOBS = 20_000


def _ref() -> TaskRef:
    """A task that is not there: for a plan, its key is enough."""
    return TaskRef(TENANT, str(uuid.uuid4()), 0, 1, "w:1")


_IDS = [str(uuid.uuid4()) for _ in range(50)]
_BATCH = {"tenant": TENANT, "ids": json.dumps(_IDS)}
_ROOTS = {"tenant": TENANT, "roots": json.dumps(_IDS)}
_SCHEDULE = {"tenant": TENANT, "owner": OWNER, "name": "s", "version": 1}
_FAILED = Failed(_ref(), "w", "error", "It failed.")
HOT: dict[str, tuple[Statement, dict[str, str]]] = {
    "claim": (first(claim(1)), {"queue_entry": CLAIM_INDEX, "task": "task_pkey", "job": ONE_JOB, "job_input": "job_input_pkey"}),
    "finish": (
        first(completion.finish([Finished(_ref(), "w", "1") for _ in range(200)], 1_000)),
        {"queue_entry": "queue_entry_pkey", "task": "task_pkey", "job": ONE_JOB, "edge": "edge_pkey", "slot": "outlast_slot_holder"},
    ),
    "renew": (first(claims.renew([Renewal(_ref()) for _ in range(200)], 1_000)), {"queue_entry": "queue_entry_pkey"}),
    "keyed_rooms": (first(slots.claim_keyed(QUEUE, ("k@1:t",), 20, "w:1", 1_000)), {"queue_entry": KEYED_INDEX, "slot": "slot_pkey"}),
    "claim_keyed": (
        Statement(
            "claim_keyed",
            {
                "queue": QUEUE,
                "handlers": ["k@1:t"],
                "holder": "w:1",
                "lease_ms": 1_000,
                "tenants": [TENANT] * 200,
                "keys": [f"key {n}" for n in range(200)],
                "limits": [2] * 200,
                "takes": [1] * 200,
            },
        ),
        {"queue_entry": KEYED_INDEX, "slot": "slot_pkey", "task": "task_pkey", "job": ONE_JOB, "job_input": "job_input_pkey"},
    ),
    "free_slot": (
        Statement("free_slot", {"tenant": TENANT, "key": "k", "job_id": str(uuid.uuid4()), "no": 0, "fence": 1, "pause_ms": None}),
        {"slot": "slot_pkey or outlast_slot_holder"},
    ),
    "wake": (first(claims.wake(1_000)), {"queue_entry": DUE_INDEX}),
    "next_due": (Statement("next_due", {}), {"queue_entry": DUE_INDEX}),
    "retry": (first(completion.retry(_FAILED, 1_000)), {"queue_entry": "queue_entry_pkey", "slot": "outlast_slot_holder"}),
    "release": (first(claims.snooze(_ref(), 1_000)), {"queue_entry": "queue_entry_pkey", "slot": "outlast_slot_holder"}),
    "entry": (first(completion.budget(_FAILED, 0.5)), {"queue_entry": "queue_entry_pkey", "task": "task_pkey"}),
    "store_step": (first(steps.store_step(_ref(), "s", "1")), {"queue_entry": "queue_entry_pkey"}),
    "admit": (first(admission.admit([admission_of(key=f"k{n}") for n in range(200)])), {}),
    "claimed_rows": (first(claims.claimed_by(QUEUE, "w:1")), {"queue_entry": f"{CLAIM_INDEX} or queue_entry_pkey"}),
    "job_view": (first(status.job(Scope(TENANT, OWNER), str(uuid.uuid4()))), {"job": ONE_JOB}),
    "due_schedules": (first(schedules.due(None, 100)), {"schedule": SCHEDULE_INDEX}),
    "next_schedule": (Statement("next_schedule", {}), {"schedule": SCHEDULE_INDEX}),
    "lock_due_schedule": (Statement("lock_due_schedule", {**_SCHEDULE, "until": 1}), {"schedule": "schedule_pkey"}),
    "fire_schedule": (Statement("fire_schedule", {**_SCHEDULE, "next_at": 1, "due_at": 1, "job_id": None}), {"schedule": "schedule_pkey"}),
    "note_schedule": (Statement("note_schedule", {**_SCHEDULE, "code": "x"}), {"schedule": "schedule_pkey"}),
    "fail_schedule": (Statement("fail_schedule", {**_SCHEDULE, "next_at": 1, "code": "x"}), {"schedule": "schedule_pkey"}),
    "job_list": (first(status.jobs(Scope(TENANT, OWNER), Filter(), limit=50, before=None)), {"job": f"{OWNER_INDEX} or outlast_job_id"}),
    "walk_jobs": (first(retention.due(None, limit=500)), {"job": "outlast_job_id"}),
    "lock_due": (first(retention.purge(TENANT, _IDS, horizon_ms=1)), {"job": ONE_JOB, "queue_entry": "queue_entry_pkey"}),
    "bury_submissions": (Statement("bury_submissions", {**_BATCH, "horizon_ms": 1}), {"submission": "outlast_submission_job"}),
    "delete_jobs": (
        Statement("delete_jobs", _BATCH),
        {
            "job": ONE_JOB,
            "task": "task_pkey",
            "job_input": "job_input_pkey",
            "edge": "edge_pkey",
            "output": "output_pkey",
            "attempt": "attempt_pkey",
            "step": "step_pkey",
            "attention": "attention_pkey or outlast_attention_open",
        },
    ),
    "lock_effects": (Statement("lock_effects", _ROOTS), {"effect": "effect_pkey"}),
    "delete_effects": (Statement("delete_effects", _ROOTS), {"effect": "effect_pkey", "job": f"{ONE_JOB} or outlast_job_root"}),
    "drop_expired": (first(retention.drop_expired(500)), {"submission": "outlast_submission_expires"}),
}
_CANCEL = control.cancel(Scope(TENANT, OWNER), str(uuid.uuid4()), version=None, actor=OWNER, retention_ms=1_000)
_PLACE = {"tenant": TENANT, "job_id": str(uuid.uuid4())}
_QUOTA = {"tenant": TENANT, "owner": OWNER, "kind": "k"}
OF_CLIENTS: dict[str, tuple[Statement, dict[str, str]]] = {
    **{name: HOT[name] for name in ("admit", "job_view", "job_list")},
    "lock_job": (first(_CANCEL), {"job": ONE_JOB}),
    "revoke_entries": (Statement("revoke_entries", _PLACE), {"queue_entry": "queue_entry_pkey"}),
    "cancel_tasks": (Statement("cancel_tasks", _PLACE), {"task": "task_pkey", "queue_entry": "queue_entry_pkey"}),
    "delete_unheld": (Statement("delete_unheld", _PLACE), {"queue_entry": "queue_entry_pkey"}),
    "active_job": (Statement("active_job", {"tenant": TENANT, "scope": f"k/{OWNER}", "active": "u"}), {"job": "outlast_job_active"}),
    "job_stands": (Statement("job_stands", _PLACE), {"job": ONE_JOB}),
    "task_list": (Statement("task_list", _PLACE), {"task": "task_pkey", "queue_entry": "queue_entry_pkey"}),
    "take_quota": (
        Statement("take_quota", {"tenant": TENANT, "owner": OWNER, "ids": f'["{uuid.uuid4()}"]'}),
        {"job": f"{ONE_JOB} or {OWNER_INDEX}"},
    ),
    "free_quota": (Statement("free_quota", _QUOTA), {"job": ONE_JOB}),
    "quota_open": (Statement("quota_open", _QUOTA), {"job": ONE_JOB}),
    "jobs_held": (Statement("jobs_held", _BATCH), {"queue_entry": "queue_entry_pkey"}),
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


def test_b43_a_walk_looks_at_a_stretch_and_no_more(stage: Stage) -> None:
    walk = first(retention.due(None, limit=500))

    looked_at = buffers(stage.prepared["walk_jobs"].explain(walk.params, analyze=True))

    assert looked_at < 1_100  # two pages a job, one of the index and one of the table


@pytest.mark.parametrize("name", OF_CLIENTS)
@pytest.mark.parametrize("stage", [_full, _analyzed], ids=["full", "analyzed"], indirect=True)
def test_a_clients_statements_read_by_index(stage: Stage, name: str) -> None:
    statement, expected = OF_CLIENTS[name]
    with session(stage.conninfo, worker=False) as connection:
        read = scans(Prepared(connection, name).explain(statement.params))

    assert {table: how & WHOLE for table, how in read.items() if table in BIG and how & WHOLE} == {}
    assert _missing(expected, read) == {}


@pytest.mark.parametrize("stage", [_full, _analyzed], ids=["full", "analyzed"], indirect=True)
def test_a_quota_counts_its_owners_jobs_and_no_others(stage: Stage) -> None:
    """All of an owner's jobs, once for an owner and kind: a bitmap of the index will do."""
    counting = Statement("take_open_jobs", _QUOTA)
    with session(stage.conninfo, worker=False) as connection:
        plan = Prepared(connection, counting.name).explain(counting.params)

    assert OWNER_INDEX in {node.get("Index Name") for node in nodes(plan)}
    assert "(Seq Scan)" not in scans(plan).get("job", set())


@pytest.mark.parametrize("name", ["lock_jobs_of_person", "delete_jobs"])
@pytest.mark.parametrize("stage", [_full, _analyzed], ids=["full", "analyzed"], indirect=True)
def test_a_client_that_deletes_jobs_looks_at_those_alone(stage: Stage, name: str) -> None:
    with session(stage.conninfo, worker=False) as connection:
        looked_at = buffers(Prepared(connection, name).explain({**_BATCH, "owner": OWNER}, analyze=True))

    assert looked_at < 1_500  # 50 ids, some ten tables; all jobs and their tasks would be thousands


_PAGES = {
    "verify_jobs": ("job", "job_pkey"),
    "verify_tasks": ("task", "task_pkey"),
    "verify_entries": ("queue_entry", "queue_entry_pkey"),
    "verify_inputs": ("job_input", "job_input_pkey"),
}


@pytest.mark.parametrize("name", _PAGES)
@pytest.mark.parametrize("stage", [_full, _analyzed], ids=["full", "analyzed"], indirect=True)
def test_a_page_of_the_whole_store_is_read_along_its_key(stage: Stage, name: str) -> None:
    """However many rows a comparison of keys is believed to leave: each page reads itself, and nothing of the others."""
    table, index = _PAGES[name]
    with psycopg.connect(stage.conninfo) as connection:
        connection.execute(reading())
        rows = connection.execute(f"select tenant, id::text from {SCHEMA}.job order by tenant, id limit 200 offset {JOBS // 2}").fetchall()
        (tenant, first_id), (last_tenant, last_id) = rows[0], rows[-1]
        page = {"tenant": tenant, "job_id": first_id, "last_tenant": last_tenant, "last_id": last_id, "limit": 200}
        plan = Prepared(connection, name).explain(page, analyze=True)

    assert scans(plan)[table] == {index}
    assert buffers(plan) < 2_500  # a page of 200 jobs, each looked up once more; all of a table would be tens of thousands
