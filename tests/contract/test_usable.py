"""Section 5: when a job's result can be opened, and that it stays so."""

from __future__ import annotations

import pytest

from contract.harness import ANN, Harness
from contract.plans import CAP_MS, a
from outlast.store.programs import status


def body_of(h: Harness, job: str) -> str | None:
    _, output = h.run(status.usable_output(ANN, job))
    return None if output is None else output.body


def test_usable_comes_with_the_first_marked_task_and_its_resource(h: Harness) -> None:
    job = h.admit(a("draft", usable=True), a("print", after="draft"))
    assert (h.view(job).usable_at_ms, body_of(h, job)) == (None, None)
    h.advance(5)
    h.finish(h.take("draft"), '"draft"', "draft.pdf")
    seen = h.view(job)
    assert (seen.usable_at_ms, seen.usable_ref, seen.state) == (h.now, "draft.pdf", "running")
    assert body_of(h, job) == '"draft"'


def test_usable_is_written_once(h: Harness) -> None:
    job = h.admit(a("draft", usable=True), a("final", usable=True, after="draft"))
    h.finish(h.take("draft"), '"draft"', "draft.pdf")
    first = h.now
    h.advance(1_000)
    h.finish(h.take("final"), '"final"', "final.pdf")
    seen = h.view(job)
    assert (seen.usable_at_ms, seen.usable_ref, seen.state) == (first, "draft.pdf", "completed")
    assert body_of(h, job) == '"draft"'


def test_usable_of_two_in_one_batch_is_the_first_in_the_plan(h: Harness) -> None:
    job = h.admit(a("one", usable=True), a("two", usable=True))
    held = h.take_all()
    h.finish_all((held["two"], '"2"', "two.pdf"), (held["one"], '"1"', "one.pdf"))
    assert h.view(job).usable_ref == "one.pdf"
    assert body_of(h, job) == '"1"'


def test_usable_without_a_resource_has_none(h: Harness) -> None:
    job = h.admit(a("draft", usable=True), a("print", after="draft"))
    h.finish(h.take("draft"))
    assert (h.view(job).usable_at_ms, h.view(job).usable_ref) == (h.now, None)


def test_usable_unmarked_comes_when_no_required_task_is_open(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), a("extra", optional=True))
    held = h.take_all()
    h.finish(held["one"], '"1"', "one.pdf")
    assert h.view(job).usable_at_ms is None
    h.advance(5)
    h.finish(held["two"], '"2"', "two.pdf")
    seen = h.view(job)
    assert (seen.usable_at_ms, seen.usable_ref, seen.state) == (h.now, None, "running")
    assert body_of(h, job) == '"2"'
    at = h.now
    h.advance(5)
    h.fail(held["extra"], permanent=True)
    assert (h.view(job).usable_at_ms, h.view(job).state) == (at, "completed")


def test_usable_unmarked_is_not_there_while_a_required_task_asks(h: Harness) -> None:
    job = h.admit(a("one"), a("two", attempts=1), a("extra", optional=True))
    held = h.take_all()
    h.finish(held["one"])
    h.fail(held["two"])
    h.finish(held["extra"])
    assert h.view(job).usable_at_ms is None


def test_usable_unmarked_comes_with_the_last_required_task_after_the_optional_ones(h: Harness) -> None:
    job = h.admit(a("extra", optional=True, attempts=1), a("main", after="extra"))
    h.fail(h.take("extra"))
    assert h.view(job).usable_at_ms is None
    h.finish(h.take("main"))
    assert h.view(job).usable_at_ms == h.now


def test_usable_marked_does_not_come_by_the_end_of_other_required_tasks(h: Harness) -> None:
    job = h.admit(a("one"), a("draft", usable=True))
    held = h.take_all()
    h.finish(held["one"])
    assert h.view(job).usable_at_ms is None


@pytest.mark.parametrize("how", ["cancel", "dismiss"])
def test_usable_outlives_cancel_and_abandonment(h: Harness, how: str) -> None:
    job = h.admit(a("draft", usable=True), a("print", after="draft", attempts=1))
    h.finish(h.take("draft"), '"draft"', "draft.pdf")
    at = h.now
    h.advance(5)
    if how == "cancel":
        h.cancel(job)
    else:
        h.fail(h.take("print"))
        h.act(job, "dismiss")
    seen = h.view(job)
    assert (seen.state, seen.usable_at_ms, seen.usable_ref) == ("cancelled", at, "draft.pdf")
    assert body_of(h, job) == '"draft"'


def test_usable_is_not_reached_by_a_cancel(h: Harness) -> None:
    job = h.admit(a("one"), a("extra", optional=True))
    h.cancel(job)
    assert h.view(job).usable_at_ms is None


def test_usable_task_retries_like_any_other_before_it_counts(h: Harness) -> None:
    job = h.admit(a("draft", usable=True))
    h.fail(h.take("draft"))
    assert h.view(job).usable_at_ms is None
    h.advance(CAP_MS)
    h.wake()
    h.finish(h.take("draft"))
    assert h.view(job).usable_at_ms == h.now


def test_usable_task_that_completed_is_never_claimed_again(h: Harness) -> None:
    job = h.admit(a("draft", usable=True), a("print", after="draft", attempts=1))
    h.finish(h.take("draft"))
    h.fail(h.take("print"))
    h.act(job, "retry")
    assert [c.label for c in h.claim()] == ["print"]


def test_usable_stays_while_optional_work_retries_and_fails(h: Harness) -> None:
    job = h.admit(a("draft", usable=True), a("extra", optional=True, after="draft", attempts=2))
    h.finish(h.take("draft"), '"draft"', "draft.pdf")
    at = h.now
    h.fail(h.take("extra"))
    assert (h.view(job).state, h.view(job).usable_at_ms) == ("retrying", at)
    h.advance(CAP_MS)
    h.wake()
    h.fail(h.take("extra"))
    seen = h.view(job)
    assert (seen.state, seen.outcome, seen.usable_at_ms, seen.usable_ref) == ("completed", "succeeded_with_problems", at, "draft.pdf")
    assert body_of(h, job) == '"draft"'
