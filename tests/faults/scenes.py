"""One scene for each operation that writes: what stands before, the operation, and what it gives when nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from contract.harness import ANN, HORIZON_MS, OWNER, RETENTION_MS, TENANT, TIMEOUT_MS, WINDOW_MS, Harness
from contract.plans import a
from outlast.domain.cron import Cron
from outlast.domain.effects import Judged, Met
from outlast.domain.limits import Limit
from outlast.domain.model import TargetRef
from outlast.domain.schedules import Definition, DueSchedule, Every, ScheduleKey, ScheduleRow, firing, read, stored
from outlast.domain.work import ActiveTaken, Admitted, Claimed, Control, Erased, OpenWindow, Settled, Swept, Verdict, Woken
from outlast.store.programs import admission, claims, completion, control, forgetting, queues, retention, schedules, slots, sweep
from outlast.store.programs.steps import store_step


@dataclass(frozen=True)
class Scene:
    """`prepare` gives what `act` needs; `act` runs one operation. `good` is its value, or a check of it."""

    prepare: Callable[[Harness], Any]
    act: Callable[[Harness, Any], Any]
    good: Callable[[Any], bool]


ACCEPTED = Settled(Verdict.ACCEPTED)


def is_(value: object) -> Callable[[Any], bool]:
    return lambda given: bool(given == value)


def accepted(given: Settled) -> bool:
    return given.verdict is Verdict.ACCEPTED


def _graph(h: Harness) -> dict[str, Claimed]:
    """A job whose tasks `one`, `extra` and `side` are held, with all kinds of children."""
    h.admit(
        a("one", usable=True, attempts=1),
        a("extra", optional=True, attempts=1),
        a("side"),
        a("join", after="one extra"),
        a("more", optional=True, after="extra"),
        a("end", after="join side"),
    )
    return h.take_all()


def _asked(h: Harness, *, optional: bool = False) -> tuple[str, str]:
    job = h.admit(a("main"), a("one", optional=optional), a("child", after="one"), a("more", optional=True, after="one"))
    h.ask(h.take_all()["one"])
    return job, h.question(job)


def _asked_twice(h: Harness) -> str:
    job = h.admit(a("one", attempts=1), a("two", optional=True), a("more", after="one"))
    held = h.take_all()
    h.fail(held["one"])
    h.ask(held["two"])
    return job


def _cancelled(h: Harness) -> Claimed:
    job = h.admit()
    claimed = h.take()
    h.cancel(job)
    return claimed


def _lost(h: Harness, **options: Any) -> Any:
    h.admit(a("one", **options), a("join", after="one"))
    h.lose(h.take())
    return h.ended_leases()[0]


def _lost_after_a_cancel(h: Harness) -> Any:
    claimed = _cancelled(h)
    h.lose(claimed)
    return h.ended_leases()[0]


def _over(h: Harness, *, optional: bool) -> OpenWindow:
    _asked(h, optional=optional)
    h.advance(WINDOW_MS)
    return h.run(sweep.windows_over(None, 1))[0]


def _final(h: Harness) -> Any:
    job = h.admit()
    h.cancel(job)
    return h.admission(key="again", rerun_of=job, effect_root=job)


def _jobs(h: Harness) -> Any:
    return [h.admission(a("one"), a("two", after="one"), key="k"), h.admission(), h.admission(key="j")]


def _joined(h: Harness) -> Any:
    """What a transaction of the caller's has written of several jobs, one of which stands for a job that was there."""
    jobs, trail = [*_jobs(h), _active(h, "existing")], admission.Trail()
    h.run(admission.admit_joined(jobs, trail))
    return jobs, trail


def _taken(h: Harness) -> Any:
    h.admit(key="k")
    return h.admission(key="k")


def _active(h: Harness, policy: Any) -> Any:
    """A job with a unique key, of which a task is held and another asks; and a request that meets it."""
    h.submit_unique(h.admission(a("one"), a("two"), a("join", after="one two"), unique="u"))
    h.ask(h.take_all()["two"])
    return h.admission(a("one"), a("two", after="one"), unique="u", policy=policy, key="k")


def _many(h: Harness) -> Any:
    h.submit_unique(h.admission(unique="t"))
    replacing = _active(h, "replace")
    return [h.admission(key="b"), replacing, h.admission(unique="t", key="a"), h.admission(unique="free", policy="reject"), h.admission()]


def _at_quota(h: Harness) -> Any:
    """A request under a quota of two, while one job is open and another that has ended is counted still."""
    h.submit_unique(h.admission(quota=2))
    h.cancel(h.rows("quota_job")[0]["job_id"])
    h.submit_unique(h.admission(quota=2))
    return h.admission(a("one"), a("two", after="one"), quota=2, key="k")


def _under_new_quota(h: Harness) -> Any:
    h.admit(key="old")
    return [h.admission(quota=3, key="b"), h.admission(quota=3, key="a"), h.admission(quota=1, kind="other")]


def _final_under_quota(h: Harness) -> Any:
    return replace(_final(h), quota=1)


def _act(action: str, answer: str | None = None) -> Callable[[Harness, tuple[str, str]], Control]:
    return lambda h, given: h.act(given[0], action, attention=given[1], answer=answer)


def _window(h: Harness, given: OpenWindow) -> Swept:
    return h.run(sweep.close_window(given, retention_ms=RETENTION_MS))


def _gave_up(h: Harness, given: Any) -> Swept:
    return h.run(sweep.give_up_lost(given, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))


def _stale(h: Harness) -> Claimed:
    h.admit()
    claimed = h.take()
    h.hand_back(claimed)
    h.take(worker="new")
    return claimed


def _keyed(h: Harness) -> None:
    """Two keys that have their slots: of the one a slot is taken and one is free, of the other its only one is free."""
    h.admit(*(a(label, limit=Limit("k", 2)) for label in ("one", "two", "three")))
    h.admit(a("more", limit=Limit("j", 1)))
    held = {claimed.label: claimed for claimed in h.claim_keyed(worker="w0")}
    h.hand_back_all(held["two"], held["more"])
    h.sql("update {outlast.queue_entry} set priority = 1 where no = 2")
    h.sql("update {outlast.task} set priority = 1 where no = 2")


def _idle(h: Harness) -> None:
    """Two free slots that nobody has used for a second, one that is taken, and one that is new."""
    h.admit(a("one", limit=Limit("k", 3)), a("two", limit=Limit("j", 1)))
    h.claim_keyed(1)
    h.advance(1_000)
    h.claim_keyed()


def _in_slots(h: Harness) -> list[Claimed]:
    """Two tasks of a key that are held."""
    h.admit(a("one", limit=Limit("k", 2)), a("two", limit=Limit("k", 2)), a("join", after="one two"))
    return h.claim_keyed()


def _stopping_in_slot(h: Harness) -> Claimed:
    job = h.admit(a("one", limit=Limit("k", 1)))
    claimed = h.take_keyed()
    h.cancel(job)
    return claimed


def _lost_in_slot(h: Harness, **options: Any) -> Any:
    h.admit(a("one", limit=Limit("k", 1), **options), a("join", after="one"))
    h.lose(h.take_keyed())
    return h.ended_leases()[0]


def _lost_stopping_in_slot(h: Harness) -> Any:
    h.lose(_stopping_in_slot(h))
    return h.ended_leases()[0]


def in_state(state: str) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, Met) and given.state == state


def _intended(h: Harness) -> Met:
    h.admit()
    return h.intend(h.take())


def _confirmed(h: Harness) -> Met:
    met = _intended(h)
    h.settle(met, "confirmed", "1")
    return met


def _left(h: Harness, state: Literal["intended", "confirmed", "refused", "unknown"] = "intended") -> Claimed:
    """The second claim of a task whose first one has an effect in this state, its time over."""
    h.admit()
    first = h.take()
    met = h.intend(first)
    if state != "intended":
        h.settle(met, state, "1" if state == "confirmed" else None)
    h.hand_back(first)
    h.advance(TIMEOUT_MS)
    return h.take()


def _doubted(h: Harness) -> tuple[Claimed, Met]:
    claimed = _left(h)
    met = h.begin(claimed)
    assert isinstance(met, Met)
    return claimed, met


def _asked_about(h: Harness) -> tuple[str, str]:
    claimed, met = _doubted(h)
    h.ask_about(claimed, met)
    return claimed.ref.job_id, h.question(claimed.ref.job_id)


def _for_target(h: Harness) -> Claimed:
    h.admit(a("one"), a("child", after="one"), target=TargetRef("d", "1"))
    return h.take()


DEED = {"audit_id": "00000000-0000-7000-8000-000000000001", "tenant": "acme", "actor": "olga", "reason": "The printer is down."}


AUDIT = "00000000-0000-7000-8000-0000000000f1"


def _ended(h: Harness, *, due: bool = True) -> list[str]:
    """Two jobs of one key each, with steps and effects; one completed, one cancelled; and time has passed."""
    jobs = [h.admit(a("one"), a("two", optional=True, after="one"), key=key) for key in "ab"]
    for claimed in h.claim():
        h.settle(h.intend(claimed), "confirmed", "1")
        h.run(store_step(claimed.ref, "page", "1"))
        h.finish(claimed)
    h.finish(h.take("two"))
    h.cancel(jobs[1])
    if due:
        h.advance(RETENTION_MS)
    return jobs


def _purge(h: Harness, jobs: list[str]) -> list[str]:
    return h.run(retention.purge(TENANT, jobs, horizon_ms=HORIZON_MS))


def _outlived(h: Harness) -> list[str]:
    jobs = _ended(h)
    _purge(h, jobs)
    h.advance(HORIZON_MS)
    return jobs


def _buried(h: Harness) -> list[str]:
    jobs = _ended(h)
    _purge(h, jobs)
    return jobs


def _counted_out(h: Harness) -> list[str]:
    """A person under a quota of whom no job is left."""
    made = h.admission(quota=1)
    h.submit_unique(made)
    h.run(forgetting.erase(TENANT, OWNER, [made.job_id], audit_id=AUDIT, actor="op"))
    return [made.job_id]


def _persons(h: Harness) -> list[str]:
    """A person's jobs: two ended, one held, one that waits; and the record of their deletion."""
    jobs = [*_ended(h, due=False), h.admit(key="c")]
    h.take()
    h.run(_record())
    return [*jobs, h.admit()]


def _record() -> Any:
    return forgetting.record(AUDIT, tenant=TENANT, actor="olga", subject="sha256:1", reason="Asked for.")


def _drop_expired(h: Harness, _: object) -> int:
    return h.run(retention.drop_expired(9))


NIGHTLY = ScheduleKey("acme", "ann", "nightly")
HOURLY = Definition("kind", 1, "1", "{}", stored(Every(3_600)), 3)


def _scheduled(h: Harness, *, paused: bool = False) -> None:
    h.run(schedules.make(NIGHTLY, HOURLY))
    if paused:
        h.run(schedules.pause(NIGHTLY, "ann"))


def _due(h: Harness) -> Any:
    """A schedule of which two due times have come, and their jobs."""
    _scheduled(h)
    h.advance(7_200_000)
    ((row,), _) = h.run(schedules.due(None, 10))
    decided = firing(read(row.definition.rule), next_ms=row.next_ms, now_ms=row.now_ms, anchor_ms=row.made_ms, catch_up=3)
    return row, decided, [h.admission(a("one"), a("two", after="one"), key=f"schedule nightly {at}") for at in decided.due]


def _due_under_quota(h: Harness) -> Any:
    """Under a quota with room for one of them."""
    row, decided, made = _due(h)
    h.submit_unique(h.admission(quota=2))
    return row, decided, [replace(job, quota=2) for job in made]


def _due_row(h: Harness) -> DueSchedule:
    row: DueSchedule = _due(h)[0]
    return row


def paused_is(paused: bool) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, ScheduleRow) and (given.paused_ms is not None) is paused


SCENES: dict[str, Scene] = {
    # A repeat finds nothing more to delete: what the first one did is there.
    "purge": Scene(_ended, _purge, lambda r: len(r) in (2, 0)),
    "drop expired": Scene(_outlived, _drop_expired, lambda r: r in (2, 0)),
    "admit after the horizon": Scene(
        lambda h: (_outlived(h), h.admission(key="a"))[1], lambda h, job: h.submit(job), lambda r: not r[0].replayed
    ),
    "record": Scene(lambda _h: None, lambda h, _: h.run(_record()), is_(None)),
    "erase": Scene(_persons, lambda h, jobs: h.erase(*jobs, audit=AUDIT), lambda r: r in (Erased(3, 2, 1), Erased(0, 0, 1))),
    "drop quotas": Scene(_counted_out, lambda h, _: h.run(forgetting.drop_quotas(TENANT, OWNER)), lambda r: r is None),
    "drop tombstones": Scene(_buried, lambda h, _: h.run(forgetting.drop_tombstones(TENANT, OWNER, 9)), lambda r: r in (2, 0)),
    "make schedule": Scene(lambda h: None, lambda h, _: h.run(schedules.make(NIGHTLY, HOURLY)), paused_is(paused=False)),
    "change schedule": Scene(
        _scheduled,
        lambda h, _: h.run(schedules.make(NIGHTLY, replace(HOURLY, rule=stored(Cron("0 2 * * *", zone="Europe/Berlin"))))),
        paused_is(paused=False),
    ),
    "pause schedule": Scene(_scheduled, lambda h, _: h.run(schedules.pause(NIGHTLY, "ann")), paused_is(paused=True)),
    "resume schedule": Scene(
        lambda h: (_scheduled(h, paused=True), h.advance(7_200_000)), lambda h, _: h.run(schedules.resume(NIGHTLY)), paused_is(paused=False)
    ),
    # A repeat finds that somebody, itself, did it before.
    "remove schedule": Scene(_scheduled, lambda h, _: h.run(schedules.remove(NIGHTLY)), lambda r: isinstance(r, bool)),
    "fire schedule": Scene(_due, lambda h, given: h.run(schedules.fire(*given)), lambda r: r is None or len(r) == 2),
    "fire schedule within a quota": Scene(
        _due_under_quota, lambda h, given: h.run(schedules.fire(*given)), lambda r: r is None or len(r) == 1
    ),
    "note schedule": Scene(_due_row, lambda h, row: h.run(schedules.note(row, "not_registered")), lambda r: isinstance(r, bool)),
    "fail schedule": Scene(
        _due_row, lambda h, row: h.run(schedules.fail(row, "plan_failed", row.next_ms + 9_999_999)), lambda r: isinstance(r, bool)
    ),
    "park": Scene(_for_target, lambda h, claimed: h.park(claimed), accepted),
    "takeover": Scene(
        _for_target, lambda h, claimed: h.takeover(claimed.ref.job_id, version=1), lambda r: r in (Control.DONE, Control.REPEATED)
    ),
    "admit": Scene(_jobs, lambda h, jobs: h.submit(*jobs), lambda r: all(isinstance(x, Admitted) and not x.replayed for x in r)),
    "admit again": Scene(_taken, lambda h, job: h.submit(job), lambda r: r[0].replayed),
    "admit all": Scene(_jobs, lambda h, jobs: h.submit_all(*jobs), lambda r: [x.replayed for x in r] == [False] * 3),
    "admit joined": Scene(
        lambda h: [*_jobs(h), _active(h, "existing")],
        lambda h, jobs: h.run(admission.admit_joined(jobs, admission.Trail())),
        lambda r: [x.replayed for x in r] == [False] * 3 + [True],
    ),
    "take back": Scene(
        _joined,
        lambda h, given: h.run(admission.take_back(*given)),
        is_(None),
    ),
    "admit unique": Scene(
        lambda h: h.admission(a("one"), a("two", after="one"), unique="u", key="k"),
        lambda h, job: h.submit_unique(job),
        lambda r: not r.replayed,
    ),
    "admit unique existing": Scene(lambda h: _active(h, "existing"), lambda h, job: h.submit_unique(job), lambda r: r.replayed),
    "admit unique reject": Scene(lambda h: _active(h, "reject"), lambda h, job: h.submit_unique(job), lambda r: isinstance(r, ActiveTaken)),
    "admit unique replace": Scene(
        lambda h: _active(h, "replace"), lambda h, job: h.submit_unique(job), lambda r: isinstance(r, Admitted) and not r.replayed
    ),
    "admit all unique": Scene(
        _many, lambda h, jobs: h.submit_all(*jobs), lambda r: [x.replayed for x in r] == [False, False, True, False, False]
    ),
    "admit within a quota": Scene(_at_quota, lambda h, job: h.submit_unique(job), lambda r: isinstance(r, Admitted) and not r.replayed),
    "admit all within a new quota": Scene(
        _under_new_quota, lambda h, jobs: h.submit_all(*jobs), lambda r: [x.replayed for x in r] == [False] * 3
    ),
    "rerun within a quota": Scene(
        _final_under_quota, lambda h, job: h.rerun(ANN, job), lambda r: isinstance(r, Admitted) and not r.replayed
    ),
    "rerun": Scene(_final, lambda h, job: h.rerun(ANN, job), lambda r: isinstance(r, Admitted) and not r.replayed),
    # A repeat finds nothing to wake; what the first one woke is found by polling.
    "wake": Scene(
        lambda h: (h.admit(due_in=1), h.advance(1)),
        lambda h, _: h.wake(),
        lambda r: r in (Woken(1, ("default",), 0), Woken(0, (), None)),
    ),
    "claim": Scene(
        lambda h: (h.admit(a("one"), a("two")), h.admit(a("three"))),
        lambda h, _: h.run(claims.claim("default", ("kind@1:work",), 3, "w1:1", 1_000)),
        lambda r: sorted(c.label for c in r) == ["one", "three", "two"],
    ),
    "claim keyed": Scene(
        _keyed,
        lambda h, _: h.run(slots.claim_keyed("default", ("kind@1:work",), 3, "w1:1", 1_000)),
        lambda r: sorted(c.label for c in r.claimed) == ["more", "two"],
    ),
    "drop idle slots": Scene(_idle, lambda h, _: h.run(slots.drop_idle(1_000, 10)), lambda r: r in (0, 2)),
    "finish keyed": Scene(_in_slots, lambda h, held: h.finish_all(*((c, "1", None) for c in held)), lambda r: all(map(accepted, r))),
    "hand back keyed": Scene(_in_slots, lambda h, held: h.hand_back(held[0]), accepted),
    "snooze keyed": Scene(_in_slots, lambda h, held: h.snooze(held[0]), accepted),
    "retry keyed": Scene(_in_slots, lambda h, held: h.run(completion.retry(h.failure(held[0], pause_ms=900), 500)), accepted),
    "give up keyed": Scene(_in_slots, lambda h, held: h.give_up(h.failure(held[0])), accepted),
    "ask keyed": Scene(_in_slots, lambda h, held: h.ask(held[0]), accepted),
    "stop keyed": Scene(_stopping_in_slot, lambda h, claimed: h.run(control.stop(claimed.ref)), accepted),
    "sweep retries keyed": Scene(
        _lost_in_slot, lambda h, row: h.run(sweep.retry_lost(row, 500)), lambda r: r in (Swept.RETRIED, Swept.PASSED)
    ),
    "sweep gives up keyed": Scene(lambda h: _lost_in_slot(h, attempts=1), _gave_up, lambda r: r in (Swept.GAVE_UP, Swept.PASSED)),
    "sweep stops keyed": Scene(
        _lost_stopping_in_slot, lambda h, row: h.run(sweep.stop_lost(row)), lambda r: r in (Swept.STOPPED, Swept.PASSED)
    ),
    "renew": Scene(_graph, lambda h, held: h.renew(*held.values(), progress="half"), is_([Verdict.ACCEPTED] * 3)),
    "snooze": Scene(_graph, lambda h, held: h.snooze(held["one"]), accepted),
    "hand back": Scene(_graph, lambda h, held: h.hand_back(held["one"]), accepted),
    "store step": Scene(_graph, lambda h, held: h.run(store_step(held["one"].ref, "page", "1")), is_((Verdict.ACCEPTED, "1"))),
    "begin effect": Scene(_graph, lambda h, held: h.begin(held["one"]), in_state("intended")),
    "begin effect that another left": Scene(_left, lambda h, claimed: h.begin(claimed), in_state("unknown")),
    "begin effect that was refused": Scene(lambda h: _left(h, "refused"), lambda h, claimed: h.begin(claimed), in_state("intended")),
    "begin effect that was confirmed": Scene(lambda h: _left(h, "confirmed"), lambda h, claimed: h.begin(claimed), in_state("confirmed")),
    "begin effect too late": Scene(_stale, lambda h, claimed: h.begin(claimed), is_(Verdict.STALE)),
    "retake effect": Scene(lambda h: _left(h, "unknown"), lambda h, claimed: h.retake(claimed), in_state("intended")),
    "settle effect": Scene(_intended, lambda h, met: h.settle(met, "confirmed", "1"), is_(Judged("confirmed", "1"))),
    "settle effect as refused": Scene(_intended, lambda h, met: h.settle(met, "refused"), is_(Judged("refused", None))),
    "settle effect as unknown": Scene(_intended, lambda h, met: h.settle(met, "unknown"), is_(Judged("unknown", None))),
    "settle effect too late": Scene(_confirmed, lambda h, met: h.settle(met, "refused"), is_(Judged("confirmed", "1"))),
    "ask about effect": Scene(_doubted, lambda h, given: h.ask_about(*given), accepted),
    "act retry about effect": Scene(_asked_about, _act("retry"), lambda r: r in (Control.DONE, Control.REPEATED)),
    "act answer about effect": Scene(
        _asked_about, _act("answer", '{"happened":true,"outcome":1}'), lambda r: r in (Control.DONE, Control.REPEATED)
    ),
    "act answer of another shape": Scene(_asked_about, _act("answer", '"yes"'), is_(Control.MISANSWERED)),
    "finish": Scene(
        _graph, lambda h, held: h.finish_all((held["one"], '"1"', "ref"), (held["side"], "2", None)), lambda r: all(map(accepted, r))
    ),
    "finish too late": Scene(_stale, lambda h, claimed: h.finish(claimed), is_(Settled(Verdict.STALE))),
    "retry": Scene(_graph, lambda h, held: h.run(completion.retry(h.failure(held["side"]), 500)), accepted),
    "give up required": Scene(_graph, lambda h, held: h.give_up(h.failure(held["one"])), accepted),
    "give up optional": Scene(_graph, lambda h, held: h.give_up(h.failure(held["extra"])), accepted),
    "ask": Scene(_graph, lambda h, held: h.ask(held["one"]), accepted),
    "cancel": Scene(_graph, lambda h, held: h.cancel(held["one"].ref.job_id, version=1), lambda r: r in (Control.DONE, Control.REPEATED)),
    "act retry": Scene(_asked, _act("retry"), lambda r: r in (Control.DONE, Control.REPEATED)),
    "act answer": Scene(_asked, _act("answer", '"A4"'), lambda r: r in (Control.DONE, Control.REPEATED)),
    "act skip": Scene(lambda h: _asked(h, optional=True), _act("skip"), lambda r: r in (Control.DONE, Control.REPEATED)),
    "act dismiss": Scene(_asked, _act("dismiss"), lambda r: r in (Control.DONE, Control.REPEATED)),
    "replay": Scene(_asked_twice, lambda h, job: h.replay(job), lambda r: r in (Control.DONE, Control.REPEATED)),
    "pause": Scene(lambda h: h.admit(), lambda h, _: h.run(queues.pause("default", **DEED)), is_(Control.DONE)),
    "resume": Scene(
        lambda h: h.run(queues.pause("default", **{**DEED, "audit_id": "00000000-0000-7000-8000-000000000002"})),
        lambda h, _: h.run(queues.resume("default", **DEED)),
        is_(Control.DONE),
    ),
    "stop": Scene(_cancelled, lambda h, claimed: h.run(control.stop(claimed.ref)), accepted),
    # The sweep's verdict on a repeat is that somebody, itself, moved the row before.
    "sweep retries": Scene(_lost, lambda h, row: h.run(sweep.retry_lost(row, 500)), lambda r: r in (Swept.RETRIED, Swept.PASSED)),
    "sweep gives up": Scene(lambda h: _lost(h, attempts=1), _gave_up, lambda r: r in (Swept.GAVE_UP, Swept.PASSED)),
    "sweep stops": Scene(_lost_after_a_cancel, lambda h, row: h.run(sweep.stop_lost(row)), lambda r: r in (Swept.STOPPED, Swept.PASSED)),
    "sweep skips": Scene(lambda h: _over(h, optional=True), _window, lambda r: r in (Swept.SKIPPED, Swept.PASSED)),
    "sweep abandons": Scene(lambda h: _over(h, optional=False), _window, lambda r: r in (Swept.ABANDONED, Swept.PASSED)),
}
