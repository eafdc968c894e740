"""A store with a row of every kind: jobs by their labels, in every state, with all that can happen to a task."""

from __future__ import annotations

from contract.backends import Backend
from contract.harness import ANN, TENANT, Harness
from contract.plans import a
from outlast.domain.limits import Limit
from outlast.domain.model import TargetRef
from outlast.domain.schedules import Definition, Firing, ScheduleKey
from outlast.domain.work import Admitted
from outlast.store.programs import forgetting, schedules, steps


def told(backend: Backend) -> None:
    """Fills the store."""
    h = Harness(backend)
    _purged(h)
    _scheduled(h)
    _done(h)
    _asks(h)
    _cancelled(h)
    _effects(h)
    _targets(h)
    _limited(h)
    for label, key in (("unique", "u"), ("unique too", "v")):
        h.submit_unique(h.admission(a(f"the one of {label}", queue="idle"), label=label, unique=key))
    h.admit(a("first"), a("second", optional=True), label="fresh", key="k9", due_in=10**9)
    h.admit(a("elsewhere"), label="elsewhere", tenant="other", due_in=10**9)
    h.check()


def _purged(h: Harness) -> None:
    """A job that is no longer kept: of it there are a key, which answers, and an effect, which a rerun carries on; and a deletion."""
    gone = h.admit(a("called"), label="gone", key="k0")
    claimed = h.take("called")
    h.settle(h.intend(claimed, "letter"), "confirmed")
    h.finish(claimed)
    again = h.admission(a("calls", queue="idle"), label="carries on", rerun_of=gone, effect_root=gone)
    assert h.rerun(ANN, again) == Admitted(again.job_id, replayed=False)
    h.outlive(gone)
    audit_id = "00000000-0000-7000-8000-0000000000f1"
    h.run(forgetting.record(audit_id, tenant=TENANT, actor="olga", subject=f"sha256:{'0' * 64}", reason="asked for"))


def _scheduled(h: Harness) -> None:
    """A schedule that led to a job, and one that is paused."""
    hourly = Definition("kind", 1, "{}", "{}", '{"every":3600}', 1)
    for name in ("fired", "paused"):
        h.run(schedules.make(ScheduleKey(TENANT, "ann", name), hourly))
    h.run(schedules.pause(ScheduleKey(TENANT, "ann", "paused"), "ann"))
    h.advance(3_600_000)
    ((due,), _) = h.run(schedules.due(None, 10))
    job = h.admission(a("scheduled", queue="idle"), label="scheduled")
    assert h.run(schedules.fire(due, Firing((due.next_ms,), h.now + 3_600_000, h.now + 1_000), [job])) == (job.job_id,)


def _done(h: Harness) -> None:
    """Completed with problems: a step, a retry, a failure, what was skipped with it, and what went on without it."""
    h.admit(
        a("A", usable=True),
        a("B", after="A"),
        a("D", optional=True, attempts=1),
        a("E", after="D", optional=True),
        a("F", after="D A"),
        label="done",
        key="k1",
    )
    held = h.take_all()
    h.run(steps.store_step(held["A"].ref, "page", "1"))
    h.finish(held["A"], resource="book")
    h.fail(held["D"])
    held = h.take_all()
    h.finish(held["F"])
    h.fail(held["B"])
    h.advance(60_000)
    h.wake()
    h.finish(h.take("B"))
    plain = h.admit(a("one"), label="plain")
    h.finish(h.take())
    again = h.admission(a("once more", queue="idle"), label="again", rerun_of=plain)
    assert h.rerun(ANN, again) == Admitted(again.job_id, replayed=False)


def _asks(h: Harness) -> None:
    """In need of attention: two questions, a retry that waits, a claim that runs, what waits for it, and what its owner left."""
    job = h.admit(
        a("asking"),
        a("gave", attempts=1),
        a("retrying"),
        a("held"),
        a("waits", after="held"),
        a("left", optional=True),
        a("after it", after="left", optional=True),
        label="asks",
        key="k2",
    )
    held = h.take_all()
    h.ask(held["asking"])
    h.fail(held["gave"])
    h.fail(held["retrying"])
    h.ask(held["left"])
    h.act(job, "retry", attention=h.question(job, "asking"))
    h.ask(h.take("asking"))
    h.act(job, "skip", attention=h.question(job, "left"))


def _cancelled(h: Harness) -> None:
    """Cancelled while a task was held and another asked."""
    job = h.admit(a("stopping"), a("asked"), a("never", after="stopping"), label="cancelled")
    held = h.take_all()
    h.ask(held["asked"])
    h.cancel(job)


def _effects(h: Harness) -> None:
    """Held, with an effect in each state that matters."""
    h.admit(a("calling"), label="effects")
    claimed = h.take("calling")
    h.settle(h.intend(claimed, "mail"), "confirmed", '{"to":"ann"}')
    h.settle(h.intend(claimed, "sms"), "refused")
    h.settle(h.intend(claimed, "post"), "unknown")
    h.intend(claimed, "fax")


def _targets(h: Harness) -> None:
    """With a target, and a parked result."""
    h.admit(a("result"), a("later", after="result"), label="targets", target=TargetRef("d", "1"))
    h.park(h.take("result"))


def _limited(h: Harness) -> None:
    """With a concurrency key: a claim that has a slot, one that was cancelled and has it still, what waits, and a free slot."""
    limit = Limit("k", 3)
    h.admit(a("has a slot", limit=limit), a("keyed", limit=limit), label="limited")
    h.take_keyed("has a slot")
    stopped = h.admit(a("stopping", limit=limit, priority=-1), label="still has it")
    h.take_keyed("stopping")
    h.cancel(stopped)
    h.submit_unique(h.admission(a("counted", queue="idle"), label="counted", kind="rare", quota=5))
