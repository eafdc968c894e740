"""The deletion of a person's jobs: all that is theirs goes, nothing else does, and what a worker holds is waited for by nobody."""

from __future__ import annotations

from typing import Any

import pytest

from contract.harness import ANN, HORIZON_MS, RETENTION_MS, Harness
from contract.plans import a
from outlast.client import calls, operating
from outlast.domain.defaults import Settings
from outlast.domain.errors import Forbidden, Invalid
from outlast.domain.model import Forgotten, Principal
from outlast.domain.registry import Registry
from outlast.domain.schedules import Definition, Every, ScheduleKey, firing, stored
from outlast.domain.work import Erased
from outlast.store.programs import forgetting, retention, schedules

OLGA = Principal("acme", "olga", roles=["operator"])
APP = calls.Application(Registry(), Settings(), "")
REASON = "Asked for by letter 17."


def left(h: Harness) -> dict[str, int]:
    return {name: len(rows) for name, rows in h.snapshot().items() if rows}


def forget(h: Harness, subject: str = "ann", *, principal: Principal = OLGA) -> Forgotten:
    return h.drive(operating.forget_person(subject, principal, REASON))


def lively(h: Harness, owner: str, tenant: str = "acme") -> list[str]:
    """Jobs of a person: one that ended, with an effect, one that asks, one that waits for its time; a tombstone, and two schedules."""
    options: dict[str, Any] = {"owner": owner, "tenant": tenant}
    gone = h.admit(key="gone", **options)
    h.finish(h.take())
    assert h.run(retention.purge(tenant, [gone], horizon_ms=HORIZON_MS, older_ms=0)) == [gone]
    done, asks = h.admit(key="done", **options), h.admit(a("one"), a("two", after="one"), **options)
    held = {claimed.ref.job_id: claimed for claimed in h.claim()}
    h.settle(h.intend(held[done]), "confirmed", "1")
    h.finish(held[done])
    h.ask(held[asks])
    for name in ("nightly", "weekly"):
        h.run(schedules.make(ScheduleKey(tenant, owner, name), Definition("kind", 1, "1", "{}", stored(Every(3_600)), 1)))
    return [done, asks, h.admit(a("one"), a("two", after="one"), key="queued", due_in=60_000, **options)]


def test_everything_of_a_person_goes_and_nothing_of_anybody_else(h: Harness) -> None:
    theirs = [*lively(h, "bob"), *lively(h, "ann", "globex")]
    before = h.snapshot()
    lively(h, "ann")
    assert h.run(forgetting.counted("acme", "ann")) == (3, 2, 1, 2, 0)
    assert forget(h) == Forgotten(jobs=3, cancelled=2, stopping=0, keys=1, schedules=2)
    assert {job["id"] for job in h.rows("job")} == {*theirs}
    audit = h.rows_of("audit")
    assert {name: rows for name, rows in h.snapshot().items() if name != "audit"} == {n: r for n, r in before.items() if n != "audit"}
    (record,) = audit
    assert (record["tenant"], record["actor"], record["action"], record["reason"], record["jobs"]) == ("acme", "olga", "forget", REASON, 3)
    assert record["subject"] == operating.person_digest("acme", "ann") != operating.person_digest("globex", "ann")
    assert "ann" not in record["subject"]
    assert forget(h) == Forgotten(0, 0, 0, 0, 0)
    assert sorted(row["jobs"] or 0 for row in h.rows_of("audit")) == [0, 3]


def test_what_a_worker_holds_is_cancelled_and_goes_when_it_has_stopped(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), key="k")
    one = h.take()
    met = h.intend(one)
    assert forget(h) == Forgotten(jobs=0, cancelled=1, stopping=1, keys=0, schedules=0)
    assert (h.view(job).state, h.view(job).stopping) == ("cancelled", True)
    assert h.finish(one).verdict.value == "cancelled"
    assert forget(h) == Forgotten(jobs=0, cancelled=0, stopping=1, keys=0, schedules=0)
    h.settle(met, "confirmed", "1")
    h.lose(one)
    h.sweep()
    assert forget(h) == Forgotten(jobs=1, cancelled=0, stopping=0, keys=0, schedules=0)
    assert left(h) == {"audit": 3}


def test_effects_stay_as_long_as_a_job_of_their_root_does(h: Harness) -> None:
    root = h.admit()
    claimed = h.take()
    h.settle(h.intend(claimed), "confirmed", "1")
    h.cancel(root)
    h.stop(claimed)
    again = h.admission(rerun_of=root, effect_root=root)
    h.rerun(ANN, again)
    held = h.take()
    assert forget(h) == Forgotten(jobs=1, cancelled=1, stopping=1, keys=0, schedules=0)
    assert [row["name"] for row in h.rows("effect")] == ["mail"]
    h.stop(held)
    assert forget(h).jobs == 1
    assert left(h) == {"audit": 2}


def test_a_person_with_many_jobs_is_forgotten_step_by_step(h: Harness) -> None:
    count = 2 * operating.ERASED_AT_ONCE + 1
    for _ in range(count):
        h.admit()
    assert forget(h) == Forgotten(jobs=count, cancelled=count, stopping=0, keys=0, schedules=0)
    assert left(h) == {"audit": 1}


def test_a_step_is_of_one_person(h: Harness) -> None:
    mine, theirs = h.admit(), h.admit(owner="bob")
    assert h.erase(mine, theirs) == Erased(1, 1, 0)
    assert h.erase(theirs, tenant="globex") == Erased(0, 0, 0)
    assert [job["id"] for job in h.rows("job")] == [theirs]


def test_what_was_cancelled_on_the_way_is_not_kept_either(h: Harness) -> None:
    """Should nobody call again, the purge takes it as soon as its holder has stopped."""
    job = h.admit(key="k")
    claimed = h.take()
    assert forget(h).stopping == 1
    h.stop(claimed)
    assert h.purge() == [job]
    assert forget(h) == Forgotten(jobs=0, cancelled=0, stopping=0, keys=1, schedules=0)


def test_a_schedule_that_is_fired_just_before_leaves_no_job(h: Harness) -> None:
    """What was decided before is void afterwards, and what was written before is met."""
    key = ScheduleKey("acme", "ann", "nightly")
    h.run(schedules.make(key, Definition("kind", 1, "1", "{}", stored(Every(60)), 1)))
    h.advance(60_000)
    ((row,), _) = h.run(schedules.due(None, 9))
    decided = firing(Every(60), next_ms=row.next_ms, now_ms=row.now_ms, anchor_ms=row.made_ms, catch_up=1)
    assert h.run(schedules.fire(row, decided, [h.admission(key="schedule nightly 1")])) is not None
    h.advance(60_000)
    ((late,), _) = h.run(schedules.due(None, 9))
    assert forget(h) == Forgotten(jobs=1, cancelled=1, stopping=0, keys=0, schedules=1)
    again = firing(Every(60), next_ms=late.next_ms, now_ms=late.now_ms, anchor_ms=late.made_ms, catch_up=1)
    assert h.run(schedules.fire(late, again, [h.admission(key="schedule nightly 2")])) is None
    assert left(h) == {"audit": 1}


@pytest.mark.parametrize("who", [Principal("acme", "ann"), Principal("acme", "bob"), Principal("acme", "bob", roles=["admin"])])
def test_only_an_operator_may(h: Harness, who: Principal) -> None:
    job = h.admit()
    with pytest.raises(Forbidden):
        forget(h, principal=who)
    assert forget(h, principal=Principal("globex", "olga", roles=["operator"])) == Forgotten(0, 0, 0, 0, 0)
    assert h.job_row(job)["state"] == "open"


@pytest.mark.parametrize(("subject", "reason"), [("", REASON), ("a\nb", REASON), ("ann", ""), ("ann", "x" * 501), ("ann", "two\nlines")])
def test_what_cannot_be_used_is_refused_and_nothing_is_done(h: Harness, subject: str, reason: str) -> None:
    h.admit()
    before = h.snapshot()
    with pytest.raises(Invalid):
        h.drive(operating.forget_person(subject, OLGA, reason))
    assert h.snapshot() == before


def test_retention_goes_on_beside(h: Harness) -> None:
    jobs = [h.admit() for _ in range(3)]
    for claimed in h.claim():
        h.finish(claimed)
    h.advance(RETENTION_MS)
    assert h.erase(jobs[0]) == Erased(1, 0, 0)
    assert h.purge() == jobs[1:]
