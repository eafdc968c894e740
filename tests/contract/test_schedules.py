"""Schedules on every store: who makes, sees and changes them, and that each due time becomes one job whoever is at it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from contract.backends import START_MS, Row
from contract.harness import ANN as ANN_SCOPE
from contract.harness import Harness
from contract.plans import a
from contract.plans import plan as tasks_of
from outlast import Cron, Every, Forbidden, Invalid, NotFound, NotRegistered, Outlast, Plan, Principal, ScheduleView, SyncContext
from outlast.client import scheduling
from outlast.domain.schedules import CatchUp, DueSchedule, Firing, Rule, ScheduleKey, firing, read
from outlast.domain.work import Admission
from outlast.store.programs import schedules

ANN = Principal("acme", "ann", roles=["editor"], claims={"mail": "ann@example.org", "secret": "x"})
BOB = Principal("acme", "bob")
OLGA = Principal("acme", "olga", roles=["operator"])
STRANGER = Principal("elsewhere", "ann")
HOUR, DAY = 3_600_000, 86_400_000
MIDNIGHT = START_MS // DAY * DAY  # the last one before the clock's start


@dataclass
class Month:
    name: str


jobs = Outlast("sqlite:///never-opened.db")


@jobs.task
def write(ctx: SyncContext, month: Month) -> str:
    return month.name


@jobs.kind("report", keep_claims=["mail"])
def report(plan: Plan[Month], month: Month) -> None:
    if month.name == "":
        raise ValueError("the secret is x")
    plan.task(write, label="Text")


@jobs.kind("letter", roles=["editor"])
def letter(plan: Plan[Month], month: Month) -> None:
    plan.task(write, label="Text")


APP = jobs._app


@dataclass
class Clerk:
    """Calls on schedules, and a scheduler's firing of them, on the store under test."""

    h: Harness
    made: int = field(default=0)

    def make(
        self, name: str = "nightly", when: Rule | None = None, *, who: Principal = ANN, catch_up: CatchUp = "one", **given: Any
    ) -> ScheduleView:
        kind, value = given.get("kind", report), given.get("input", Month("may"))
        rule = when or Every(HOUR / 1000)
        return self.h.drive(scheduling.make(APP, kind, value, name=name, when=rule, owner=who, catch_up=catch_up))

    def seen(self, who: Principal = ANN) -> tuple[ScheduleView, ...]:
        return self.h.drive(scheduling.listed(who))

    def one(self, who: Principal = ANN) -> ScheduleView:
        (found,) = self.seen(who)
        return found

    def remove(self, name: str = "nightly", who: Principal = ANN) -> None:
        self.h.drive(scheduling.remove(name, who))

    def pause(self, name: str = "nightly", who: Principal = ANN) -> ScheduleView:
        return self.h.drive(scheduling.pause(name, who))

    def resume(self, name: str = "nightly", who: Principal = ANN) -> ScheduleView:
        return self.h.drive(scheduling.resume(name, who))

    def due(self) -> list[DueSchedule]:
        return self.h.run(schedules.due(None, 100))[0]

    def decide(self, row: DueSchedule) -> tuple[Firing, list[Admission]]:
        """As a scheduler does it, with a plan of one task."""
        rule = read(row.definition.rule)
        found = firing(rule, next_ms=row.next_ms, now_ms=row.now_ms, anchor_ms=row.made_ms, catch_up=row.definition.catch_up)
        return found, [self.job(row, at) for at in found.due]

    def job(self, row: DueSchedule, due_ms: int) -> Admission:
        self.made += 1
        body = self.h.admission(a("one"), key=f"schedule {row.key.name} {due_ms}", owner=row.key.owner, tenant=row.key.tenant)
        return replace(body, fingerprint="schedule", caller=json.dumps({"scheduled_for": due_ms}), tasks=tasks_of(a("one")))

    def fire(self) -> list[tuple[str, ...] | None]:
        """All that is due."""
        return [self.h.run(schedules.fire(row, *self.decide(row))) for row in self.due()]

    def fired_for(self) -> list[int]:
        """The due times that became jobs, in order."""
        return sorted(json.loads(row["caller"])["scheduled_for"] for row in self.h.rows("job_input"))

    def row(self) -> Row:
        (row,) = self.h.rows_of("schedule")
        return row


@pytest.fixture
def c(h: Harness) -> Clerk:
    return Clerk(h)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)


# -- making, seeing and changing ------------------------------------------------------------------------------


def test_a_schedule_is_made_and_shown(c: Clerk) -> None:
    view = c.make(catch_up=3, when=Cron("0  2 * * *", zone="Europe/Berlin"))

    assert view == c.one()
    assert (view.name, view.kind, view.owner, view.paused, view.catch_up) == ("nightly", "report", "ann", False, 3)
    assert view.when == "0 2 * * * (Europe/Berlin)"
    assert view.next_at is not None
    assert view.next_at > at(c.h.now)
    assert view.next_at.utcoffset() == at(0).utcoffset()
    assert (view.last_at, view.last_job_id, view.code) == (None, None, None)


def test_what_the_kind_keeps_of_the_owner_is_kept_and_nothing_else(c: Clerk) -> None:
    c.make()

    assert json.loads(c.row()["caller"]) == {"roles": ["editor"], "claims": {"mail": "ann@example.org"}}


def test_the_same_again_changes_nothing(c: Clerk) -> None:
    first = c.make()
    before = c.row()
    c.h.advance(HOUR // 2)

    assert c.make() == first
    assert c.row() == before


def test_another_rule_counts_from_now_and_makes_up_for_nothing(c: Clerk) -> None:
    c.make(when=Cron("*/10 * * * *", zone="America/New_York"), catch_up=100)
    c.h.advance(30 * DAY)

    view = c.make(when=Cron("*/10 * * * *", zone="Asia/Kathmandu"), catch_up=100)

    assert view.next_at is not None
    assert at(c.h.now) < view.next_at <= at(c.h.now + 600_000)
    assert c.due() == []
    c.h.advance(600_000)
    assert len([ids for ids in c.fire() if ids]) == 1
    assert len(c.fired_for()) == 1, "a change of the zone has at most one run to catch up with"


@pytest.mark.parametrize("change", [{"input": Month("june")}, {"kind": letter}, {"catch_up": "skip"}])
def test_another_input_kind_or_policy_leaves_the_due_times(c: Clerk, change: dict[str, Any]) -> None:
    first = c.make()
    c.h.advance(HOUR // 2)

    view = c.make(**change)

    assert view.next_at == first.next_at
    assert c.row()["version"] == 2
    (row,) = c.due() or [None]
    assert row is None
    c.h.advance(HOUR // 2)
    (due,) = c.due()
    assert due.definition.kind == view.kind


def test_names_are_each_owners_own(c: Clerk) -> None:
    for who in (ANN, BOB, STRANGER):
        c.make(who=who)
    c.make("other", who=BOB)

    assert [v.name for v in c.seen(ANN)] == ["nightly"]
    assert [v.name for v in c.seen(BOB)] == ["nightly", "other"]
    assert [(v.owner, v.name) for v in c.seen(OLGA)] == [("ann", "nightly"), ("bob", "nightly"), ("bob", "other")]
    assert len(c.seen(STRANGER)) == 1


@pytest.mark.parametrize("deed", ["remove", "pause", "resume"])
def test_only_the_owner_changes_a_schedule(c: Clerk, deed: str) -> None:
    c.make()
    before = c.row()
    act: Callable[..., Any] = getattr(c, deed)

    for who in (BOB, STRANGER):
        with pytest.raises(NotFound):
            act(who=who)
    with pytest.raises(Forbidden):
        act(who=OLGA)
    with pytest.raises(NotFound):
        act("unknown", who=OLGA)
    with pytest.raises(NotFound):
        act("unknown", who=ANN)
    assert c.row() == before


def test_a_schedule_that_is_removed_is_gone_and_its_jobs_stay(c: Clerk) -> None:
    c.make()
    c.h.advance(HOUR)
    c.fire()

    c.remove()

    assert c.seen() == ()
    assert len(c.fired_for()) == 1
    with pytest.raises(NotFound):
        c.remove()


def test_what_falls_due_in_a_pause_is_not_made_up_for(c: Clerk) -> None:
    c.make(catch_up=100)
    paused = c.pause()
    assert (paused.paused, paused.paused_by, paused.next_at) == (True, "ann", None)
    assert c.pause() == paused
    c.h.advance(10 * HOUR + 1)
    assert c.due() == []
    assert c.make(catch_up=100) == paused, "the same definition leaves the pause"
    assert c.make(catch_up=99).paused, "and so does another"

    resumed = c.resume()

    assert resumed.next_at == at(START_MS + 11 * HOUR)
    assert c.resume() == resumed
    assert c.due() == []
    c.h.advance(HOUR)
    c.fire()
    assert c.fired_for() == [START_MS + 11 * HOUR]


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"name": ""}, Invalid),
        ({"name": "x" * 101}, Invalid),
        ({"name": "two\nlines"}, Invalid),
        ({"name": 7}, Invalid),
        ({"catch_up": 0}, Invalid),
        ({"catch_up": 101}, Invalid),
        ({"catch_up": True}, Invalid),
        ({"catch_up": "all"}, Invalid),
        ({"when": "0 2 * * *"}, Invalid),
        ({"when": 60}, Invalid),
        ({"input": Month(3)}, Invalid),  # type: ignore[arg-type]
        ({"input": float("nan")}, Invalid),
        ({"input": Month("")}, ValueError),
        ({"kind": "report"}, Invalid),
        ({"who": "ann"}, Invalid),
        ({"kind": letter, "who": BOB}, Forbidden),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(c: Clerk, given: dict[str, Any], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        c.make(**given)

    assert c.h.rows_of("schedule") == []


def test_a_kind_of_another_application_is_refused(c: Clerk) -> None:
    other = Outlast("sqlite:///never-opened.db")

    @other.kind("report")
    def strange(plan: Plan[Month], month: Month) -> None: ...

    with pytest.raises(NotRegistered):
        c.make(kind=strange)


# -- firing ---------------------------------------------------------------------------------------------------


def test_each_due_time_becomes_one_job(c: Clerk) -> None:
    c.make()
    assert c.fire() == []
    for _ in range(3):
        c.h.advance(HOUR)
        (ids,) = c.fire()
        assert c.fire() == []
        assert ids is not None
        view = c.one()
        assert (view.last_at, view.last_job_id, view.code) == (at(c.h.now), ids[0], None)
        assert view.next_at == at(c.h.now + HOUR)

    assert c.fired_for() == [START_MS + n * HOUR for n in (1, 2, 3)]
    assert len(c.h.rows("job")) == 3
    assert c.h.view(c.one().last_job_id or "", ANN_SCOPE).state == "queued"


@pytest.mark.parametrize(
    ("catch_up", "made_up"),
    [("skip", []), ("one", [5]), (3, [3, 4, 5]), (100, [1, 2, 3, 4, 5])],
)
def test_of_missed_due_times_the_policy_says_how_many(c: Clerk, catch_up: CatchUp, made_up: list[int]) -> None:
    c.make(catch_up=catch_up)
    c.h.advance(5 * HOUR + 120_000)

    c.fire()

    assert c.fired_for() == [START_MS + n * HOUR for n in made_up]
    assert c.one().next_at == at(START_MS + 6 * HOUR)
    assert c.due() == []


def test_a_due_time_that_is_found_a_little_late_was_not_missed(c: Clerk) -> None:
    c.make(catch_up="skip")
    c.h.advance(HOUR + 60_000)

    c.fire()

    assert c.fired_for() == [START_MS + HOUR]


def test_of_two_who_read_the_same_due_time_one_fires_it(c: Clerk) -> None:
    c.make()
    c.h.advance(HOUR)
    (row,) = c.due()
    mine, others = c.decide(row), c.decide(row)

    assert c.h.run(schedules.fire(row, *mine)) is not None
    assert c.h.run(schedules.fire(row, *others)) is None
    assert c.fired_for() == [START_MS + HOUR]


@pytest.mark.parametrize("meanwhile", ["remove", "pause", "make", "fail"])
def test_who_was_frozen_does_no_harm(c: Clerk, meanwhile: str) -> None:
    """What it had decided is about a schedule that is another by now, or none."""
    c.make()
    c.h.advance(HOUR)
    (row,) = c.due()
    decided = c.decide(row)
    if meanwhile == "make":
        c.make(input=Month("june"))
    elif meanwhile == "fail":
        assert c.h.run(schedules.fail(row, "plan_failed", row.next_ms + HOUR))
    else:
        getattr(c, meanwhile)()
    left = c.h.snapshot()

    assert c.h.run(schedules.fire(row, *decided)) is None
    assert not c.h.run(schedules.fail(row, "plan_failed", row.next_ms + HOUR))
    assert c.h.snapshot() == left


def test_what_was_decided_long_ago_is_decided_anew(c: Clerk) -> None:
    c.make(catch_up="skip")
    c.h.advance(HOUR)
    (row,) = c.due()
    decided = c.decide(row)
    c.h.advance(30_001)

    assert c.h.run(schedules.fire(row, *decided)) is None
    assert c.fired_for() == []
    assert c.fire() != []


def test_a_due_time_that_has_a_job_gets_no_second_one(c: Clerk) -> None:
    """However the schedule came to wait for it again: made anew, say, after the host's clock was set back."""
    c.make()
    c.h.advance(HOUR)
    c.fire()
    c.remove()
    c.h.advance(-HOUR)
    c.make()
    c.h.advance(HOUR)

    c.fire()

    assert c.fired_for() == [START_MS + HOUR]
    assert c.one().next_at == at(START_MS + 2 * HOUR)


def test_a_failure_shows_and_the_schedule_goes_on(c: Clerk) -> None:
    c.make()
    c.h.advance(HOUR)
    (row,) = c.due()

    assert c.h.run(schedules.fail(row, "plan_failed", row.next_ms + HOUR))

    view = c.one()
    assert (view.code, view.next_at, view.last_at) == ("plan_failed", at(START_MS + 2 * HOUR), None)
    c.h.advance(HOUR)
    c.fire()
    assert c.one().code is None
    assert c.fired_for() == [START_MS + 2 * HOUR]


def test_due_schedules_come_in_order_and_page_by_page(c: Clerk) -> None:
    c.make("b", Every(60))
    c.make("a", Every(60))
    c.make("c", Every(30))
    c.make("later", Every(90))
    c.make("paused", Every(1))
    c.pause("paused")
    found, next_in = c.h.run(schedules.due(None, 10))
    assert (found, next_in) == ([], 30_000)
    c.h.advance(60_000)

    found, next_in = c.h.run(schedules.due(None, 2))
    rest, _ = c.h.run(schedules.due(found[-1], 2))

    assert [row.key.name for row in found] == ["c", "a"]
    assert [row.key for row in rest] == [ScheduleKey("acme", "ann", "b")]
    assert next_in == 30_000
    assert {row.now_ms for row in found} == {c.h.now}


# -- many at once ---------------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_b10_many_schedulers_make_one_job_of_each_due_time(c: Clerk) -> None:
    """Each thread reads what is due, waits for all others, and fires all of it, three rounds."""
    names = [f"s{n}" for n in range(20)]
    for name in names:
        c.make(name, Every(60), catch_up=5)
    store, threads = c.h.backend.store, 6
    fired: list[tuple[str, ...]] = []
    for _ in range(3):
        c.h.advance(120_000)
        barrier = threading.Barrier(threads)
        work = [[(row, *c.decide(row)) for row in c.due()] for _ in range(threads)]

        def scheduler(rows: list[tuple[DueSchedule, Firing, list[Admission]]], barrier: threading.Barrier = barrier) -> None:
            barrier.wait(20)
            for row, decided, made in rows:
                ids = store.run_sync(schedules.fire(row, decided, made))
                if ids is not None:
                    fired.append(ids)

        running = [threading.Thread(target=scheduler, args=(rows,)) for rows in work]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(40)
        while c.due():  # whom all passed by, each because another had it
            fired.extend(ids for ids in c.fire() if ids is not None)

    assert len(fired) == 3 * len(names)
    assert c.fired_for() == sorted(START_MS + n * 60_000 for n in range(1, 7) for _ in names)
