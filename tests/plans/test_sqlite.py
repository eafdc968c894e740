"""SQLite reads by the same indexes; it has no statistics to be misled by, and must have none to be right."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from outlast.domain.access import Scope
from outlast.domain.work import Asking, Filter
from outlast.store.program import Statement
from outlast.store.programs import claims, forgetting, replay, retention, schedules, status, sweep
from outlast.store.sqlite import migrating
from outlast.store.sqlite.dialect import statements
from plans.filling import HANDLER, OWNER, QUEUE, TENANT
from plans.reading import first

JOB = "019a0000-0000-7000-8000-000000000001"
PLACE = {"tenant": TENANT, "job_id": JOB, "no": 0}
QUOTA = {"tenant": TENANT, "owner": OWNER, "kind": "k"}
BATCH = {"tenant": TENANT, "ids": json.dumps([JOB])}
ROOTS = {"tenant": TENANT, "roots": json.dumps([JOB])}
WITHIN = {"tenant": TENANT, "job_id": JOB, "last_tenant": TENANT, "last_id": JOB}
SCHEDULE = {"tenant": TENANT, "owner": OWNER, "name": "s", "version": 1}
HELD = {**PLACE, "fence": 1, "holder": "w:1"}

_MADE = re.compile(r"json_each|walk|w|\(subquery-\d+\)")
"""What a statement makes itself, and reads whole."""
_ROUND = {"queue": QUEUE, "tenant": TENANT, "key": "", "keys": 100}

EXPECTED: dict[str, tuple[Mapping[str, Any], str]] = {
    "claim_candidates": ({"queue": QUEUE, "handlers": json.dumps([HANDLER]), "limit": 20}, "outlast_entry_claim"),
    "keyed_walk": (_ROUND, "outlast_entry_keyed"),
    "keyed_room": ({**_ROUND, "window": 10, "handlers": json.dumps([HANDLER])}, "outlast_entry_keyed"),
    "keyed_candidates": ({**_ROUND, "slot_limit": 2, "limit": 2, "handlers": json.dumps([HANDLER])}, "outlast_entry_keyed"),
    "free_slots": ({"tenant": TENANT, "key": "k", "slot_limit": 2, "take": 2}, "PRIMARY KEY"),
    "free_slot": ({**PLACE, "key": "k", "fence": 1, "pause_ms": None}, "SEARCH outlast_slot USING"),  # by its key or by its holder
    "wake": (first(claims.wake(100)).params, "outlast_entry_due"),
    "next_due": ({}, "outlast_entry_due"),
    "claim_one": ({**PLACE, "holder": "w:1", "lease_ms": 1}, "PRIMARY KEY"),
    "renew_one": ({**HELD, "lease_ms": 1, "progress": None}, "PRIMARY KEY"),
    "end_entry": (HELD, "PRIMARY KEY"),
    "entry": (PLACE, "PRIMARY KEY"),
    "ended_leases": (first(sweep.ended_leases(None, 100)).params, "PRIMARY KEY"),
    "windows_over": (first(sweep.windows_over(None, 100)).params, ""),
    "jobs_asking": (first(replay.asking(Asking(None, None, None, 0), after=None, limit=100)).params, "outlast_attention_open"),
    "job_list": (first(status.jobs(Scope(TENANT, OWNER), Filter(), limit=50, before=None)).params, "outlast_job_owner"),
    "job_view": (first(status.job(Scope(TENANT, OWNER), JOB)).params, "PRIMARY KEY"),
    "task_list": ({"tenant": TENANT, "job_id": JOB}, "PRIMARY KEY"),
    "take_open_jobs": (QUOTA, "outlast_job_owner"),
    "take_quota": ({"tenant": TENANT, "owner": OWNER, "ids": json.dumps([JOB])}, "PRIMARY KEY"),
    "quota_used": (QUOTA, "outlast_quota_job_place"),
    "free_quota": (QUOTA, "outlast_quota_job_place"),
    "quota_open": (QUOTA, "outlast_quota_job_place"),
    "walk_jobs": (first(retention.due(None, limit=500)).params, "outlast_job_id"),
    "lock_due": (first(retention.purge(TENANT, [JOB], horizon_ms=1)).params, "outlast_job_id"),
    "bury_submissions": ({**BATCH, "horizon_ms": 1}, "outlast_submission_job"),
    **{f"delete_{name}": (BATCH, "PRIMARY KEY") for name in ("tasks", "attempts", "edges", "attention")},
    "delete_job_rows": (BATCH, "outlast_job_id"),
    **{f"delete_{name}": (BATCH, "sqlite_autoindex") for name in ("outputs", "steps", "inputs")},
    "lock_effects": (ROOTS, "sqlite_autoindex"),
    "delete_effects": (ROOTS, "sqlite_autoindex"),
    "drop_expired": (first(retention.drop_expired(500)).params, "outlast_submission_expires"),
    "tombstone_of": ({"tenant": TENANT, "owner": OWNER, "job_id": JOB}, "outlast_submission_job"),
    "jobs_of_person": (first(forgetting.owned(TENANT, OWNER, None, 20)).params, "outlast_job_owner"),
    "lock_jobs_of_person": ({**BATCH, "owner": OWNER}, "outlast_job_id"),
    "jobs_held": (BATCH, "PRIMARY KEY"),
    "drop_tombstones": ({"tenant": TENANT, "owner": OWNER, "limit": 9}, "PRIMARY KEY"),
    "verify_jobs": ({"tenant": TENANT, "job_id": JOB, "limit": 200}, "PRIMARY KEY"),
    **{f"verify_{table}": (WITHIN, "x USING PRIMARY KEY") for table in ("tasks", "entries", "edges", "attempts", "questions")},
    "verify_slots": (WITHIN, "outlast_slot_holder"),
    "verify_inputs": (WITHIN, "sqlite_autoindex_outlast_job_input_1 ((tenant,job_id)>"),
    "verify_outputs": (WITHIN, "sqlite_autoindex_outlast_output_1 ((tenant,job_id)>"),
    "verify_steps": (WITHIN, "sqlite_autoindex_outlast_step_1 ((tenant,job_id)>"),
    "verify_effects": (
        {"tenant": TENANT, "effect_root": JOB, "label": "", "name": "", "input_hash": "", "limit": 200},
        "sqlite_autoindex_outlast_effect_1",
    ),
    "due_schedules": (first(schedules.due(None, 100)).params, "outlast_schedule_due"),
    "next_schedule": ({}, "outlast_schedule_due"),
    "lock_due_schedule": ({**SCHEDULE, "until": 1}, "outlast_schedule_1"),
    "fire_schedule": ({**SCHEDULE, "next_at": 1, "due_at": 1, "job_id": JOB}, "outlast_schedule_1"),
    "note_schedule": ({**SCHEDULE, "code": "x"}, "outlast_schedule_1"),
    "fail_schedule": ({**SCHEDULE, "next_at": 1, "code": "x"}, "outlast_schedule_1"),
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path: Path = tmp_path_factory.mktemp("plans") / "jobs.db"
    migrating.apply(str(path))
    with sqlite3.connect(path) as one:
        yield one
    one.close()


def _plan(connection: sqlite3.Connection, statement: Statement, *, top: bool = False) -> list[str]:
    rows = connection.execute(f"explain query plan {statements()[statement.name]}", statement.params)
    return [str(row[3]) for row in rows if not top or row[1] == 0]


@pytest.mark.parametrize("name", EXPECTED)
def test_it_reads_by_index(connection: sqlite3.Connection, name: str) -> None:
    params, index = EXPECTED[name]

    plan = _plan(connection, Statement(name, params))

    assert any(index in line for line in plan), plan
    whole = [line for line in plan if line.startswith("SCAN") and "INDEX" not in line and not _MADE.fullmatch(line.split()[1])]
    assert not whole, plan


@pytest.mark.parametrize(
    "name",
    [
        *("claim_candidates", "keyed_candidates", "job_list", "jobs_asking", "due_schedules", "next_schedule"),
        *("verify_jobs", "verify_effects", "verify_steps"),
    ],
)
def test_the_order_comes_from_the_index(connection: sqlite3.Connection, name: str) -> None:
    plan = _plan(connection, Statement(name, EXPECTED[name][0]), top=True)

    assert not [line for line in plan if "USE TEMP B-TREE" in line], plan
