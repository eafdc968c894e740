"""A store with a row of every kind: jobs by their labels, in every state, with all that can happen to a task."""

from __future__ import annotations

from contract.backends import Backend
from contract.harness import ANN, Harness
from contract.plans import a
from outlast.domain.model import TargetRef
from outlast.domain.work import Admitted
from outlast.store.programs import steps


def told(backend: Backend) -> None:
    """Fills the store."""
    h = Harness(backend)
    _done(h)
    _asks(h)
    _cancelled(h)
    _effects(h)
    _targets(h)
    for label, key in (("unique", "u"), ("unique too", "v")):
        h.submit_unique(h.admission(a(f"the one of {label}", queue="idle"), label=label, unique=key))
    h.admit(a("first"), a("second", optional=True), label="fresh", key="k9", due_in=10**9)
    h.admit(a("elsewhere"), label="elsewhere", tenant="other", due_in=10**9)
    h.check()


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
