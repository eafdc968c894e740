"""The explorer finds what it is for: each of these changes to the SQL is wrong in some order of two operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import pytest

from interleave import acts
from interleave.explorer import Explorer, Wrong
from interleave.pairs import Pair
from interleave.scenes import OTHER

Sql = Mapping[str, str]

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change, and the pairs of which at least one has to find it."""

    name: str
    change: Callable[[Sql], Sql]
    pairs: tuple[Pair, ...]


def replaced(name: str, old: str, new: str) -> Callable[[Sql], Sql]:
    def change(sql: Sql) -> Sql:
        assert old in sql[name], f"{name} no longer says {old!r}"
        return {**sql, name: sql[name].replace(old, new)}

    return change


def in_order(*names: str) -> Callable[[Sql], Sql]:
    """Where the program runs the first three statements of a cancel, these are run."""
    return lambda sql: {**sql, **dict(zip(("revoke_entries", "cancel_tasks", "delete_unheld"), (sql[name] for name in names), strict=True))}


def all_of(*changes: Callable[[Sql], Sql]) -> Callable[[Sql], Sql]:
    return lambda sql: reduce(lambda done, change: change(done), changes, sql)


_CLAIM = acts.claim(10, "v", 4, 11)
_LOCK = "for no key update"

MUTANTS = (
    Mutant(
        "a cancel that revokes only what is held",
        replaced("revoke_entries", "job_id = %(job_id)s", "job_id = %(job_id)s and holder is not null"),
        (Pair("grand", _CLAIM, acts.cancel()),),
    ),
    Mutant(
        "a cancel that first deletes what nobody holds",
        in_order("cancel_tasks", "delete_unheld", "revoke_entries"),
        (Pair("grand", acts.hand_back(0), acts.cancel()),),
    ),
    Mutant(
        "a finish that does not lock the job",
        replaced("finish", f"{_LOCK}) j,", ") j,"),
        (Pair("grand", acts.finish(0), acts.cancel()), Pair("grand", acts.finish(0), acts.finish(1))),
    ),
    Mutant(
        "a finish whose counters are not grouped by job",
        replaced("finish", "group by 1, 2 order by 1, 2", "group by 1, 2, no order by 1, 2"),
        (Pair("grand", acts.finish(0, 1), acts.snooze(0)),),
    ),
    Mutant(
        "a step whose guard reads the entry without locking it",
        replaced("store_step", _LOCK, ""),
        (Pair("grand", acts.step(0), acts.cancel()),),
    ),
    Mutant(
        "an intent whose guard reads the entry without locking it",
        replaced("effect_place", _LOCK, ""),
        (Pair("effects", acts.begin(0), acts.cancel()),),
    ),
    Mutant(
        "an intent that reads how the effect stands without locking it",
        replaced("effect_of", _LOCK, ""),
        (Pair("effects", acts.begin(2, 2), acts.settle(2, "refused")), Pair("effects", acts.retake(2, 2), acts.settle(2, "confirmed"))),
    ),
    Mutant(
        "a report about whatever intent stands",
        replaced("settle_effect", "or (job_id", "or true or (job_id"),
        (Pair("effects", acts.retake(2, 2), acts.settle(2, "refused")),),
    ),
    Mutant(
        "a decision that does not lock the job",
        replaced("lock_job", _LOCK, ""),
        (Pair("grand", acts.act(5, "retry"), acts.act(5, "dismiss")),),
    ),
    Mutant(
        "a purge that asks whether effects are the last of their root without locking them",
        replaced("lock_effects", _LOCK, ""),
        (Pair("reruns_ended", acts.purge(), acts.purge(OTHER)),),
    ),
    Mutant(
        "a purge that takes a job which has a holder still",
        replaced("lock_due", "and not exists (select 1", "and true or exists (select 1"),
        (Pair("cancelled_once", acts.purge(), acts.stop(0)),),
    ),
    Mutant(
        "a sweep of open questions that does not lock the job",
        replaced("lock_job_skip", f"{_LOCK} skip locked", ""),
        (Pair("grand", acts.act(5, "retry"), acts.close_window(5)),),
    ),
    Mutant(
        "a claim that takes the slots that it read as free, without a lock",
        replaced("claim_keyed", f"{_LOCK} of s skip locked", ""),
        (Pair("keyed", acts.claim_keyed(1, "u"), acts.claim_keyed(1, "v", 1, 2, "slot k 1")),),
    ),
    Mutant(
        "a quota that is not locked",
        replaced("hold_quota", "do update set counted = q.counted\nreturning cast(counted as integer)", "do nothing\nreturning 1"),
        (Pair("counted", acts.put(quota=2), acts.put(acts.JOB[:-1] + "3", key="b", quota=2)),),
    ),
    Mutant(
        "a claim that looks for no pause",
        replaced("claim", "q.paused_at is not null", "false"),
        (Pair("queue", acts.claim(2, "u", 0, 1, 2), acts.pause()),),
    ),
    Mutant(
        "a pause that takes the place of the one that stands",
        replaced("pause_queue", "q.paused_at is null", "true"),
        (Pair("queue", acts.pause(1), acts.pause(3)),),
    ),
    Mutant(
        "a claim that updates what it read, without a lock",
        all_of(
            replaced("claim", "select e.ctid as place from", "select e.tenant, e.job_id, e.no from"),
            replaced("claim", f"{_LOCK} of e skip locked", ""),
            replaced("claim", "e.ctid = p.place and e.holder is null", "e.tenant = p.tenant and e.job_id = p.job_id and e.no = p.no"),
        ),
        (Pair("queue", acts.claim(2, "u", 0, 1, 2), acts.claim(1, "v", 0, 1, 2)),),
    ),
    Mutant(
        "a firing that does not lock the schedule",
        replaced("lock_due_schedule", f"{_LOCK} skip locked", ""),
        (Pair("schedule", acts.fire(1), acts.fire(2)),),
    ),
    Mutant(
        "a firing of whatever the schedule is by now",
        replaced("lock_due_schedule", "and version = %(version)s", ""),
        (Pair("schedule", acts.fire(1), acts.make("of another rule", every=60)),),
    ),
    Mutant(
        "a change of a schedule that was read without a lock",
        replaced("schedule_to_change", _LOCK, ""),
        (Pair("schedule", acts.fire(1), acts.make("of another input", input='{"n": 1}')),),
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_caught(explorer: Explorer, sql: Sql, mutant: Mutant) -> None:
    changed = mutant.change(sql)
    found = []
    for pair in mutant.pairs:
        explorer.pair(pair.scene, pair.one, pair.other, sql)  # as it is, all is well
        try:
            explorer.pair(pair.scene, pair.one, pair.other, changed, serially=sql)
        except Wrong as wrong:
            found.append(str(wrong))
    print(*found, sep="\n")
    assert found
