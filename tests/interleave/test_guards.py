"""A guard is judged after the wait: a lease that ended while its holder stood in line for a lock is over.

PostgreSQL judges it anew where the row was changed meanwhile. Behind a mere lock (a step's, say) the row is the same, and the guard
that passed before the wait counts; the sweep then stands in the same line, so that still only one of the two gets the row.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

import psycopg
import pytest

from interleave import acts
from interleave.checks import violations
from interleave.explorer import Act, Explorer
from interleave.scenes import LEASE_MS
from outlast.store.loader import expand
from outlast.store.postgres.dialect import SCHEMA, table_of, tokens
from servers.postgres import PostgresServer

SCENE = "grand"
_WAIT_FOR_ENTRY = (
    acts.fail(0),
    acts.snooze(0),
    acts.hand_back(0),
    acts.step(0),
    acts.begin(0),
    acts.finish(0),
    acts.give_up(0),
    acts.ask(0),
)
_WAIT_FOR_JOB = (acts.finish(0), acts.finish(0, 1), acts.give_up(0), acts.give_up(8), acts.ask(0))
_CASES = [*((act, 0) for act in _WAIT_FOR_ENTRY), *((act, "job") for act in _WAIT_FOR_JOB)]


def _refused(explorer: Explorer, act: Act, sql: Mapping[str, str], row: int | str, *, written: bool) -> bool:
    (told,), waited, rows = explorer.held_up(SCENE, [act], sql, [row], written=written)
    assert waited, "the operation did not meet the lock"
    before = explorer.stage.normal(json.dumps(explorer.stage.first[SCENE]))
    return rows == before and all("STALE" in one for one in told)


@pytest.mark.parametrize(("act", "row"), _CASES, ids=[f"{act.name} behind {row}" for act, row in _CASES])
def test_a_lease_that_ended_during_the_wait_is_over(explorer: Explorer, sql: Mapping[str, str], act: Act, row: int | str) -> None:
    assert _refused(explorer, act, sql, row, written=True)


@pytest.mark.parametrize("act", _WAIT_FOR_JOB, ids=lambda act: act.name)
def test_also_behind_a_mere_lock_of_the_job(explorer: Explorer, sql: Mapping[str, str], act: Act) -> None:
    assert _refused(explorer, act, sql, "job", written=False)


@pytest.mark.parametrize("act", _WAIT_FOR_ENTRY, ids=lambda act: act.name)
@pytest.mark.parametrize("written", [False, True])
def test_of_holder_and_sweep_in_one_line_one_gets_the_entry(explorer: Explorer, sql: Mapping[str, str], act: Act, written: bool) -> None:
    (holder, sweep), waited, rows = explorer.held_up(SCENE, [act, acts.retry_lost(0)], sql, [0], written=written)

    assert waited
    stale = any("STALE" in one for one in holder)
    assert sweep == (("Swept.RETRIED",) if stale or act.name.startswith(("step", "begin")) else ("Swept.PASSED",))
    assert not violations(json.loads(rows), explorer.stage.first[SCENE])


@pytest.mark.parametrize("row", [0, "job"])
def test_a_renewal_waits_for_nobody(explorer: Explorer, sql: Mapping[str, str], row: int | str) -> None:
    (told,), waited, _ = explorer.held_up(SCENE, [acts.renew(0, 1)], sql, [row], written=False)

    assert not waited
    assert told == (("Verdict.BUSY" if row == 0 else "Verdict.ACCEPTED"), "Verdict.ACCEPTED")


@pytest.mark.parametrize("row", [4, "job"])
def test_a_claim_waits_for_nobody(explorer: Explorer, sql: Mapping[str, str], row: int | str) -> None:
    _, waited, rows = explorer.held_up(SCENE, [acts.claim(10, "v", 4, 11)], sql, [row], written=False)

    assert not waited
    taken = {entry["no"]: entry["lease_until"] for entry in json.loads(rows)["queue_entry"] if entry["holder"] == "v:9"}
    assert taken == dict.fromkeys([11] if row == 4 else [4, 11], LEASE_MS / 1000)


def test_a_clock_read_before_the_wait_is_caught(explorer: Explorer, sql: Mapping[str, str]) -> None:
    early = {**sql, "store_step": sql["store_step"].replace("lease_until > fake.now()", "lease_until > (select fake.now())")}
    assert early["store_step"] != sql["store_step"]

    assert not _refused(explorer, acts.step(0), early, 0, written=True)


@pytest.mark.parametrize("token", ["{now}", "{now_once}"])
def test_the_clock_goes_on_within_a_transaction(postgres_server: PostgresServer, token: str) -> None:
    """Elsewhere the clock is the test's. A transaction that waited for a lock would else judge by the time at which it began."""
    with psycopg.connect(postgres_server.create_database(f"clock_{secrets.token_hex(4)}")) as connection:
        connection.execute("select pg_sleep(0.002)")
        found = connection.execute(expand(f"select {token} > transaction_timestamp()", tokens(), table_of(SCHEMA))).fetchone()
    assert found == (True,)
