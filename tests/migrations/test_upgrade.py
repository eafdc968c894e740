"""A store with jobs in it, made by an earlier version: it is brought to this one, and its jobs go on."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import psycopg
import pytest

from migrations.support import applied
from outlast.domain.access import Scope
from outlast.domain.effects import EffectCall, Met
from outlast.domain.errors import NotMigrated, QuotaExceeded
from outlast.domain.work import Control, Finished
from outlast.store import open as stores
from outlast.store.open import open_store, parse
from outlast.store.postgres import migrating as postgres
from outlast.store.programs import admission, claims, completion, control, effects, retention, status
from outlast.store.sqlite import migrating as sqlite
from plans.filling import admission_of

ANN = Scope("acme", "ann")
JOB = "019a0000-0000-7000-8000-000000000001"
ROWS = f"""
insert into {{job}} (tenant, id, owner, kind, schema_version, label, state, version, total, open, required_open, attention, problems,
  usable_marked, accepted_at, effect_root, correlation_id)
values ('acme', '{JOB}', 'ann', 'kind', 1, 'A job', 'needs_attention', 2, 1, 1, 1, 1, 0, false, {{then}}, '{JOB}', 'c');
insert into {{job_input}} (tenant, job_id, input, caller) values ('acme', '{JOB}', '1', '1');
insert into {{task}} (tenant, job_id, no, label, handler, queue, priority, required, usable, state, deps_left, fence, spent, max_attempts,
  base_ms, cap_ms, window_ms, deadline_ms, code)
values ('acme', '{JOB}', 0, 'one', 'kind@1:work', 'q', 0, true, false, 'needs_attention', 0, 1, 1, 3, 0, 0, 0, 60000, 'broken');
insert into {{attempt}} (tenant, job_id, no, fence, number, worker, ended_at, code)
values ('acme', '{JOB}', 0, 1, 1, 'w', {{then}}, 'broken');
insert into {{attention}} (tenant, job_id, id, no, code, message, actions, raised_at, until)
values ('acme', '{JOB}', '0.1', 0, 'broken', 'It broke.', 'retry answer dismiss', {{then}}, {{later}})
""".split(";")
TABLES = ("job", "job_input", "task", "attempt", "attention")


def fill(url: str) -> None:
    """Rows as the first version wrote them."""
    address = parse(url)
    if address.dialect == "sqlite":
        names = {table: f"outlast_{table}" for table in TABLES} | {"then": "0", "later": "4000000000000"}
        connection = sqlite3.connect(address.target)
        with connection:
            for text in ROWS:
                connection.execute(text.format(**names))
        connection.close()
        return
    names = {table: f"outlast.{table}" for table in TABLES} | {"then": "now()", "later": "now() + interval '1 day'"}
    with psycopg.connect(address.target) as server:
        for text in ROWS:
            server.execute(text.format(**names).encode())


@pytest.fixture
def old(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of the first migration alone, with a job that asks."""
    first = {"sqlite": sqlite.schema_migrations()[:1], "postgres": postgres.schema_migrations("outlast")[:1]}
    with monkeypatch.context() as only:
        only.setattr(sqlite, "schema_migrations", lambda: first["sqlite"])
        only.setattr(postgres, "schema_migrations", lambda _schema: first["postgres"])
        assert [m.number for m in stores.migrate(url)] == [1]
        fill(url)
    return url


def test_what_an_older_version_made_is_not_worked_with_before_the_upgrade(old: str) -> None:
    store = open_store(old)
    try:
        with pytest.raises(NotMigrated, match=r"0002_effects.*outlast migrate"):
            store.run_sync(status.clock())
    finally:
        store.close_sync()


def test_a_store_with_rows_is_upgraded_and_its_jobs_go_on(old: str) -> None:
    done = stores.migrate(old)
    assert [m.number for m in done] == [number for number, _ in applied(old)][1:]
    assert stores.pending(old) == ()
    store = open_store(old)
    try:
        found = store.run_sync(status.recovery(ANN, JOB))
        assert found is not None
        job, past = found
        assert (job.state, [q.code for q in past.questions], past.effects) == ("needs_attention", ["broken"], ())
        did = store.run_sync(
            control.act(ANN, JOB, "0.1", action="answer", answer='"any"', request_hash="h", actor="ann", retention_ms=60_000)
        )
        assert did is Control.DONE, "a question of an older version is about no effect, and any answer does"
        (claimed,) = store.run_sync(claims.claim("q", ["kind@1:work"], 1, "w:1", 30_000))
        met = store.run_sync(effects.begin(claimed.ref, EffectCall("mail", "x", 1_000)))
        assert isinstance(met, Met)
        assert (met.state, met.ref.effect_root, met.intent.fence) == ("intended", JOB, 2)
        another = replace(admission_of(), owner="ann", kind="kind", quota=1)
        with pytest.raises(QuotaExceeded):
            store.run_sync(admission.admit_alone(another))  # a job of an older version is open, and counts
        store.run_sync(completion.finish([Finished(claimed.ref, "w", "1")], 0))
        assert store.run_sync(retention.purge("acme", [JOB], horizon_ms=60_000)) == [JOB]
        assert store.run_sync(status.job(ANN, JOB)) is None
    finally:
        store.close_sync()
