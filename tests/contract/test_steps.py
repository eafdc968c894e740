"""Steps: stored by the holder only, the first write wins; and what a task reads of its parents."""

from __future__ import annotations

from contract.harness import ACCEPTED, LEASE_MS, STALE, Harness
from contract.plans import a
from outlast.domain.work import ParentRow, Verdict
from outlast.store.programs import steps


def test_step_is_stored_with_its_fence_to_the_byte(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    body = '{"é":-0.0,"a":[1,2]}'
    assert h.run(steps.store_step(claimed.ref, "page 1", body)) == (ACCEPTED, body)
    (row,) = h.rows("step", job)
    assert (row["no"], row["name"], row["fence"], row["body"]) == (0, "page 1", 1, body)
    assert h.run(steps.step_names(claimed.ref)) == {"page 1"}
    assert h.run(steps.step_body(claimed.ref, "page 1")) == body
    assert h.run(steps.step_body(claimed.ref, "page 2")) is None


def test_step_again_gives_what_was_stored_first(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.run(steps.store_step(claimed.ref, "page", '"first"'))
    before = h.snapshot()
    assert h.run(steps.store_step(claimed.ref, "page", '"second"')) == (ACCEPTED, '"first"')
    assert h.snapshot() == before


def test_step_of_an_earlier_attempt_is_read_back_by_the_next_holder(h: Harness) -> None:
    h.admit()
    old = h.take()
    h.run(steps.store_step(old.ref, "page", '"first"'))
    h.hand_back(old)
    new = h.take(worker="w2")
    assert h.run(steps.step_names(new.ref)) == {"page"}
    assert h.run(steps.store_step(new.ref, "page", '"second"')) == (ACCEPTED, '"first"')
    assert h.run(steps.store_step(new.ref, "more", '"more"')) == (ACCEPTED, '"more"')


def test_step_of_a_replaced_holder_is_refused(h: Harness) -> None:
    job = h.admit()
    old = h.take()
    h.hand_back(old)
    h.take(worker="w2")
    assert h.run(steps.store_step(old.ref, "page", '"old"'))[0] is STALE
    assert h.rows("step", job) == []


def test_step_of_a_replaced_holder_is_refused_though_the_new_one_has_stored_it(h: Harness) -> None:
    h.admit()
    old = h.take()
    h.hand_back(old)
    new = h.take(worker="w2")
    h.run(steps.store_step(new.ref, "page", '"new"'))
    assert h.run(steps.store_step(old.ref, "page", '"old"'))[0] is STALE


def test_step_at_the_very_instant_of_the_leases_end_is_refused(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.advance(LEASE_MS - 1)
    assert h.run(steps.store_step(claimed.ref, "in time", "1"))[0] is ACCEPTED
    h.advance(1)
    assert h.run(steps.store_step(claimed.ref, "late", "1"))[0] is STALE
    assert [s["name"] for s in h.rows("step", job)] == ["in time"]


def test_step_whose_commit_was_unknown_is_accepted_even_after_the_lease(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.run(steps.store_step(claimed.ref, "page", "1"))
    h.advance(LEASE_MS)
    assert h.run(steps.store_step(claimed.ref, "page", "1")) == (ACCEPTED, "1")


def test_step_names_are_of_one_task(h: Harness) -> None:
    h.admit(a("one"), a("two"))
    held = h.take_all()
    h.run(steps.store_step(held["one"].ref, "page", "1"))
    h.run(steps.store_step(held["two"].ref, "page", "2"))
    assert h.run(steps.step_body(held["two"].ref, "page")) == "2"
    assert h.run(steps.step_names(held["one"].ref)) == {"page"}


def test_step_is_kept_when_the_task_completes(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.run(steps.store_step(claimed.ref, "page", "1"))
    h.finish(claimed)
    assert h.recovery(job).steps == (("one", 1),)
    verdict: Verdict = h.run(steps.store_step(claimed.ref, "late", "1"))[0]
    assert verdict is STALE


def test_parents_come_in_plan_order_with_the_outputs_that_there_are(h: Harness) -> None:
    h.admit(a("extra", optional=True, attempts=1), a("one", handler="kind@1:other"), a("aside"), a("join", after="one extra"))
    held = h.take_all()
    h.finish(held["one"], '"1"')
    h.fail(held["extra"])
    joined = h.take("join")
    assert h.run(steps.parents_of(joined.ref)) == [
        ParentRow(0, "extra", "kind@1:work", "failed", None),
        ParentRow(1, "one", "kind@1:other", "completed", '"1"'),
    ]
    assert h.run(steps.parents_of(held["one"].ref)) == []
