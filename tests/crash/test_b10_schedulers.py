"""Many schedulers, some killed or frozen in the middle of a firing: each due time becomes one job (B10)."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from crash.stage import OWNER, Stage, until
from invariants import query
from outlast import Every
from outlast.rehearsal import app as rehearsal_app

REHEARSAL = rehearsal_app.registry.kind("rehearsal")


def schedule(stage: Stage, name: str) -> None:
    stage.jobs.schedule(REHEARSAL, {"tasks": [{"label": "A"}]}, name=name, when=Every(1), owner=OWNER, catch_up=100)


def due_times(stage: Stage) -> Counter[tuple[str, int]]:
    """How many jobs there are of each schedule's due times."""
    rows = query(stage.url, "select s.key, i.caller from {submission} s join {job_input} i on i.tenant = s.tenant and i.job_id = s.job_id")
    found: Counter[tuple[str, int]] = Counter()
    for row in rows:
        _, name, due = row["key"].split()
        caller = row["caller"] if isinstance(row["caller"], dict) else json.loads(row["caller"])
        assert caller["scheduled_for"] == int(due)
        found[name, int(due)] += 1
    return found


def without_gap(stage: Stage, name: str) -> int:
    """That each second since the first has its job; how many."""
    found = sorted(due for (one, due), count in due_times(stage).items() if one == name for _ in range(count))
    assert found == list(range(found[0], found[0] + 1_000 * len(found), 1_000))
    return len(found)


@pytest.mark.timeout(90)
def test_whoever_is_killed_on_the_way_each_due_time_has_one_job(stage: Stage) -> None:
    inside = "admit_task" if stage.dialect == "sqlite" else "admit"
    schedule(stage, "s")
    rounds = (
        {"op": "fire", "at": "before", "do": "kill"},  # decided, nothing written
        {"op": "fire", "at": f"statement {inside}", "do": "kill"},  # half written, not committed
        {"op": "fire", "at": "statement fire_schedule", "do": "kill"},  # all written, not committed
        {"op": "fire", "at": "after", "do": "kill"},  # committed, nobody told
    )
    for hook in rounds:
        victim = stage.worker(hooks=[hook], wait=False)
        assert victim.ended() == -9, hook
    stage.worker()
    count = len(rounds) + 2

    until(lambda: len(due_times(stage)) >= count, "the survivor has made up for all of it")

    assert without_gap(stage, "s") >= count
    jobs = [row["id"] for row in query(stage.url, "select id from {job}")]
    stage.jobs.unschedule("s", principal=OWNER)
    stage.reached([str(job) for job in jobs])
    assert len(stage.lines(event="start")) == len(query(stage.url, "select id from {job}"))


@pytest.mark.timeout(90)
def test_a_scheduler_that_was_frozen_does_no_harm_when_it_goes_on(stage: Stage) -> None:
    """Frozen after its decision: others fire meanwhile, and what it had decided is void."""
    for name in ("a", "b", "c"):
        schedule(stage, name)
    frozen = stage.worker(hooks=[{"op": "fire", "at": "before", "do": "stop"}], wait=False)
    until(frozen.frozen, "it has decided, and is frozen")
    for _ in range(2):
        stage.worker()
    until(lambda: len(due_times(stage)) >= 9, "others have fired")

    frozen.thaw()
    before = len(due_times(stage))
    until(lambda: len(due_times(stage)) >= before + 6, "all go on")

    assert frozen.alive
    for name in ("a", "b", "c"):
        assert without_gap(stage, name) >= 3
    assert set(due_times(stage).values()) == {1}
