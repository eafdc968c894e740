"""Jobs by the thousand, admitted as an application would, and drained as a worker would."""

from __future__ import annotations

import itertools
import os
from typing import Any

import psycopg

from outlast.domain.ids import uuid7
from outlast.domain.kinds import TaskSpec
from outlast.domain.work import Admission, Claimed, Finished, Renewal
from outlast.store.postgres.dialect import SCHEMA
from outlast.store.program import Operation
from outlast.store.programs import admission, claims, completion
from outlast.store.protocol import SyncRunner

TENANT, OWNER, QUEUE, HANDLER = "acme", "ada", "default", "k@1:t"
LEASE_MS = 30_000
RETENTION_MS = 2_592_000_000
BATCH = 500
_count = itertools.count(1)


def admission_of(*, handler: str = HANDLER, not_before_ms: int | None = None, key: str | None = None) -> Admission:
    """A job of one task."""
    job_id = uuid7(1_800_000_000_000 + next(_count), os.urandom(10))
    task = TaskSpec(
        no=0,
        label="t",
        handler=handler,
        queue=QUEUE,
        priority=0,
        required=True,
        usable=False,
        max_attempts=5,
        base_ms=1_000,
        cap_ms=600_000,
        window_ms=86_400_000,
        deadline_ms=600_000,
        item=None,
        parents=(),
    )
    return Admission(TENANT, OWNER, key, "f", job_id, "k", 1, "k", "{}", "{}", (task,), not_before_ms, None, job_id, "c", None)


_BULK = """
with r as (
  select n, ('019a0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id
  from generate_series(%(first)s::bigint, %(first)s::bigint + %(jobs)s::bigint - 1) n),
j as (
  insert into "{schema}".job (tenant, id, owner, kind, schema_version, label, state, version, total, open, required_open, attention,
    problems, usable_marked, accepted_at, effect_root, correlation_id)
  select %(tenant)s, id, case when n %% 20 = 0 then %(owner)s else 'owner ' || n %% 20 end,
    'k', 1, 'k', 'open', 1, 1, 1, 1, 0, 0, false, clock_timestamp(), id, 'c' from r),
i as (insert into "{schema}".job_input (tenant, job_id, input, caller) select %(tenant)s, id, '{{}}', '{{}}' from r),
t as (
  insert into "{schema}".task (tenant, job_id, no, label, handler, queue, priority, required, usable, state, deps_left, fence, spent,
    max_attempts, base_ms, cap_ms, window_ms, deadline_ms, slot_key, slot_limit)
  select %(tenant)s, id, 0, 't', %(handler)s, %(queue)s, 0, true, false, 'open', 0, 0, 0, 5, 1000, 600000, 86400000, 600000,
    {key}, {limit} from r)
insert into "{schema}".queue_entry (tenant, job_id, no, queue, priority, handler, ready_at, due_at, fence, spent, deadline_ms, revoked,
  slot_key, slot_limit)
select %(tenant)s, id, 0, %(queue)s, 0, %(handler)s, case when not %(later)s then clock_timestamp() - %(age)s * interval '1 s' end,
  case when %(later)s then clock_timestamp() + interval '1 day' end, 0, 0, 600000, false, {key}, {limit} from r
"""


def bulk(conninfo: str, jobs: int, *, handler: str = HANDLER, later: bool = False, age: float = 0, keys: int = 0) -> None:
    """The rows of so many admitted jobs of one task, of twenty owners, much faster than by admissions. age: seconds since ready.

    keys: how many concurrency keys they share, of one slot each; 0: they have none.
    """
    values = {
        "first": next(_count) * 1_000_000,
        "jobs": jobs,
        "tenant": TENANT,
        "owner": OWNER,
        "handler": handler,
        "queue": QUEUE,
        "later": later,
        "age": age,
    }
    with psycopg.connect(conninfo, autocommit=True) as connection:
        key, limit = (f"'key ' || n %% {keys}", "1") if keys else ("null", "null")
        connection.execute(_BULK.format(schema=SCHEMA, key=key, limit=limit).encode(), values)


def fill(store: SyncRunner, jobs: int, *, handler: str = HANDLER, not_before_ms: int | None = None) -> None:
    """Admits so many jobs."""
    for start in range(0, jobs, BATCH):
        size = min(BATCH, jobs - start)
        store.run_sync(admission.admit([admission_of(handler=handler, not_before_ms=not_before_ms) for _ in range(size)]))


def claim(number: int, limit: int = BATCH, handlers: tuple[str, ...] = (HANDLER,)) -> Operation[list[Claimed]]:
    return claims.claim(QUEUE, handlers, limit, f"w:{number}", LEASE_MS)


def renew(claimed: list[Claimed]) -> Operation[Any]:
    return claims.renew([Renewal(one.ref, "half") for one in claimed], LEASE_MS)


def finish(claimed: list[Claimed]) -> Operation[Any]:
    return completion.finish([Finished(one.ref, "w", '"done"') for one in claimed], RETENTION_MS)


def drain(store: SyncRunner, *, renewing: bool = False) -> int:
    """Claims, renews and finishes until nothing is left; how many."""
    done = 0
    while claimed := store.run_sync(claim(next(_count))):
        if renewing:
            store.run_sync(renew(claimed))
        store.run_sync(finish(claimed))
        done += len(claimed)
    return done
