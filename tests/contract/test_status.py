"""What is read for people: shown states, lists and their cursors, tasks, recovery, queues."""

from __future__ import annotations

import pytest

from contract.harness import ANN, BOB, LEASE_MS, OPERATOR, STRANGER, TENANT, Harness
from contract.plans import CAP_MS, HANDLER, OTHER_HANDLER, a
from outlast.domain.access import Scope
from outlast.domain.work import Control, Filter, QueueRow, UnfinishedRow
from outlast.store.programs import status


def listed(h: Harness, scope: Scope | None = ANN, *, state: str | None = None, kind: str | None = None, limit: int = 50) -> list[str]:
    """The ids of all pages, whatever their size."""
    ids: list[str] = []
    before = None
    for _ in range(50):
        page, before = h.run(status.jobs(scope, Filter(state, kind), limit=limit, before=before))
        assert len(page) <= limit
        ids += [row.id for row in page]
        if before is None:
            return ids
    raise AssertionError("the list does not end")


def one_of_each(h: Harness) -> dict[str, str]:
    """A job in each shown state."""
    jobs = {name: h.admit(a(name, attempts=2)) for name in ("running", "retrying", "needs_attention", "completed", "cancelled")}
    held = h.take_all()
    h.fail(held["retrying"])
    h.fail(held["needs_attention"], permanent=True)
    h.finish(held["completed"])
    h.cancel(jobs["cancelled"])
    jobs["queued"] = h.admit(a("one", queue="print"))
    return jobs


def test_shown_states_of_jobs(h: Harness) -> None:
    jobs = one_of_each(h)
    assert {name: h.view(job).state for name, job in jobs.items()} == {name: name for name in jobs}
    assert [h.view(jobs[name]).stopping for name in ("cancelled", "running")] == [True, False]


def test_shown_running_before_retrying(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    held = h.take_all()
    h.fail(held["one"])
    assert h.view(job).state == "running"
    h.fail(held["two"])
    assert h.view(job).state == "retrying"


def test_shown_running_between_two_tasks(h: Harness) -> None:
    job = h.admit(a("one"), a("two", after="one"))
    h.finish(h.take("one"))
    assert h.view(job).state == "running"
    assert h.shows(job) == {"one": "completed", "two": "queued"}


def test_shown_queued_while_nothing_was_ever_claimed(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), due_in=1_000)
    h.advance(1_000)
    h.wake()
    assert h.view(job).state == "queued"


def test_shown_running_after_a_retry_by_the_owner(h: Harness) -> None:
    job = h.admit(a("one", attempts=1))
    h.fail(h.take())
    h.act(job, "retry")
    assert (h.view(job).state, h.shows(job)) == ("running", {"one": "queued"})


def test_view_shows_where_the_job_stands(h: Harness) -> None:
    job = h.admit(a("one"), a("two", after="one"), a("three", after="two"), label="My book")
    accepted = h.now
    h.finish(h.take("one"))
    seen = h.view(job)
    assert (seen.label, seen.kind, seen.schema_version, seen.owner, seen.tenant) == ("My book", "kind", 1, "ann", TENANT)
    assert (seen.total, seen.open, seen.current_label, seen.version, seen.accepted_at_ms) == (3, 2, "two", 2, accepted)
    assert (seen.finished_at_ms, seen.cancelled_by, seen.outcome, seen.rerun_of) == (None, None, None, None)


def test_list_newest_first(h: Harness) -> None:
    jobs = [h.admit() for _ in range(7)]
    assert listed(h) == jobs[::-1]


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
def test_list_page_by_page_gives_each_job_once(h: Harness, limit: int) -> None:
    jobs = [h.admit() for _ in range(7)]
    assert listed(h, limit=limit) == jobs[::-1]


def test_list_is_stable_while_jobs_come_in(h: Harness) -> None:
    jobs = [h.admit() for _ in range(4)]
    page, following = h.run(status.jobs(ANN, Filter(), limit=2, before=None))
    assert [row.id for row in page] == jobs[:1:-1]
    h.admit()
    page, following = h.run(status.jobs(ANN, Filter(), limit=2, before=following))
    assert ([row.id for row in page], following) == (jobs[1::-1], None)


@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize("state", ["queued", "running", "retrying", "needs_attention", "completed", "cancelled"])
def test_list_of_one_state(h: Harness, state: str, limit: int) -> None:
    first, second = one_of_each(h), one_of_each(h)
    assert listed(h, state=state, limit=limit) == [second[state], first[state]]


def test_list_of_what_is_active(h: Harness) -> None:
    jobs = one_of_each(h)
    assert sorted(listed(h, state="active")) == sorted(jobs[s] for s in ("queued", "running", "retrying", "needs_attention"))


def test_list_of_a_derived_state_that_is_rare_finds_it(h: Harness) -> None:
    rare = h.admit(a("rare"))
    h.fail(h.take("rare"))
    for _ in range(30):
        h.admit()
    assert listed(h, state="retrying", limit=1) == [rare]
    assert listed(h, state="retrying", limit=5) == [rare]


def test_list_of_one_kind(h: Harness) -> None:
    h.admit(kind="other")
    mine = h.admit(kind="mine")
    assert listed(h, kind="mine") == [mine]
    assert listed(h, kind="mine", state="queued") == [mine]
    assert listed(h, kind="none") == []


def test_list_holds_the_owners_own_jobs_only(h: Harness) -> None:
    mine, theirs, elsewhere = h.admit(), h.admit(owner="bob"), h.admit(tenant="elsewhere")
    assert listed(h) == [mine]
    assert listed(h, BOB) == [theirs]
    assert listed(h, STRANGER) == [elsewhere]
    assert listed(h, OPERATOR, limit=1) == [theirs, mine]
    assert listed(h, None, limit=2) == [elsewhere, theirs, mine]


def test_scope_of_another_sees_nothing(h: Harness) -> None:
    job = h.admit()
    h.finish(h.take())
    for scope in (BOB, STRANGER, Scope("elsewhere", None)):
        assert h.run(status.job(scope, job)) is None
        assert h.run(status.tasks(scope, job)) is None
        assert h.run(status.recovery(scope, job)) is None
        assert h.run(status.usable_output(scope, job)) == (None, None)
        assert h.run(status.outputs(scope, job, task="work", no=None)) == (None, [])
        assert h.run(status.rerun_source(scope, job)) is None


def test_scope_of_an_operator_sees_the_tenants_jobs(h: Harness) -> None:
    job = h.admit()
    assert h.view(job, OPERATOR) == h.view(job)
    assert h.tasks(job, OPERATOR) == h.tasks(job)
    assert h.run(status.job_owner(job)) == (TENANT, "ann")
    assert h.run(status.job_owner("00000000-0000-7000-8000-000000000000")) is None


def test_tasks_in_plan_order_with_their_attempts(h: Harness) -> None:
    job = h.admit(
        a("done", usable=True), a("again", attempts=5), a("asks", attempts=1), a("extra", optional=True), a("later", after="asks")
    )
    held = h.take_all(worker="w9")
    h.finish(held["done"], resource="done.pdf")
    h.fail(held["again"], "no_paper")
    h.fail(held["asks"], "no_ink")
    h.renew(held["extra"], progress="half")
    rows = h.tasks(job)
    assert [(r.no, r.label, r.state, r.attempt, r.max_attempts, r.code) for r in rows] == [
        (0, "done", "completed", 1, 3, None),
        (1, "again", "retrying", 1, 5, "no_paper"),
        (2, "asks", "needs_attention", 1, 1, "no_ink"),
        (3, "extra", "running", 1, 3, None),
        (4, "later", "blocked", 0, 3, None),
    ]
    assert [(r.required, r.usable, r.ref, r.progress, r.fence) for r in rows] == [
        (True, True, "done.pdf", None, 1),
        (True, False, None, None, 1),
        (True, False, None, None, 1),
        (False, False, None, "half", 1),
        (True, False, None, None, 0),
    ]
    assert [r.next_attempt_at_ms for r in rows] == [None, h.now + 500, None, None, None]
    assert [r.worker for r in rows] == ["w9", None, "w9", "w9", None]


def test_tasks_of_a_cancelled_job_show_the_attempt_that_was_under_way(h: Harness) -> None:
    job = h.admit()
    h.fail(h.take())
    h.advance(CAP_MS)
    h.wake()
    h.take()
    assert h.task(job).attempt == 2
    h.cancel(job)
    assert (h.task(job).state, h.task(job).attempt) == ("cancelled", 1)


def test_recovery_tells_the_whole_past_in_time_order(h: Harness) -> None:
    job = h.admit(a("one"), a("two", attempts=1))
    times = [h.now]
    held = h.take_all(worker="w9")
    h.advance(10)
    h.finish(held["one"])
    h.advance(10)
    h.fail(held["two"], "no_ink", detail="Traceback")
    h.act(job, "retry")
    h.advance(10)
    again = h.take("two")
    h.advance(10)
    h.fail(again, "no_ink")
    past = h.recovery(job)
    assert [(r.label, r.number, r.fence, r.code, r.detail, r.worker) for r in past.attempts] == [
        ("one", 1, 1, None, None, "w9"),
        ("two", 1, 1, "no_ink", "Traceback", "w9"),
        ("two", 1, 2, "no_ink", None, "w1"),
    ]
    assert [(r.started_at_ms, r.ended_at_ms) for r in past.attempts] == [
        (times[0], times[0] + 10),
        (times[0], times[0] + 20),
        (times[0] + 30, times[0] + 40),
    ]
    assert [(q.id, q.label, q.code, q.actions) for q in past.questions] == [("1.2", "two", "no_ink", ("retry", "dismiss"))]
    assert past.tasks == tuple(h.tasks(job))


def test_result_of_a_task_by_name_and_by_place(h: Harness) -> None:
    job = h.admit(a("one"), a("two", handler=OTHER_HANDLER), a("three"))
    held = h.take_all()
    h.finish(held["three"], '"3"')
    _, found = h.run(status.outputs(ANN, job, task="work", no=None))
    assert [(o.no, o.label, o.body) for o in found] == [(0, "one", None), (2, "three", '"3"')]
    _, found = h.run(status.outputs(ANN, job, task=None, no=1))
    assert [(o.label, o.handler, o.body) for o in found] == [("two", OTHER_HANDLER, None)]
    assert h.run(status.outputs(ANN, job, task="nothing", no=None))[1] == []


def test_queues_count_what_is_ready_held_and_waiting(h: Harness) -> None:
    for _ in range(3):
        h.admit()
        h.advance(100)
    h.admit(due_in=10_000)
    h.admit(a("one", handler=OTHER_HANDLER))
    h.admit(a("one", queue="print"))
    h.take()
    h.fail(h.take())
    assert h.run(status.queues()) == [
        QueueRow("default", OTHER_HANDLER, 1, 0, 0, 0),
        QueueRow("default", HANDLER, 1, 1, 2, 100),
        QueueRow("print", HANDLER, 1, 0, 0, 0),
    ]
    h.claim()
    h.claim(queue="print")
    h.advance(5)
    assert [(q.ready, q.held, q.waiting, q.oldest_ms) for q in h.run(status.queues())] == [
        (0, 1, 0, None),
        (0, 2, 2, None),
        (0, 1, 0, None),
    ]


def test_queues_depth_equals_a_count_of_the_rows(h: Harness) -> None:
    one_of_each(h)
    one_of_each(h)
    entries = h.rows("queue_entry")
    shown = {q.queue: (q.ready, q.held, q.waiting) for q in h.run(status.queues())}
    assert sorted(shown) == ["default", "print"]
    for queue, counts in shown.items():
        mine = [e for e in entries if e["queue"] == queue]
        ready = sum(e["ready_at"] is not None and e["holder"] is None for e in mine)
        assert counts == (ready, sum(e["holder"] is not None for e in mine), sum(e["ready_at"] is None for e in mine))


def test_unfinished_tasks_by_handler(h: Harness) -> None:
    h.admit(a("one"), a("two", after="one"), a("three", handler=OTHER_HANDLER))
    h.finish(h.take_all()["three"])
    h.advance(7_000)
    h.admit(a("one"))
    assert h.run(status.unfinished_handlers()) == [UnfinishedRow(HANDLER, 3, 7_000)], "the age of the oldest"
    h.fail(h.take(), permanent=True)
    assert sum(row.count for row in h.run(status.unfinished_handlers())) == 3, "what needs attention has not ended"


def test_rerun_source_has_what_a_rerun_copies(h: Harness) -> None:
    job = h.admit(body='{"n":7}', caller='{"roles":["x"]}')
    h.cancel(job)
    source = h.run(status.rerun_source(ANN, job))
    assert source is not None
    assert (source.state, source.outcome, source.kind, source.schema_version, source.owner) == ("cancelled", "user", "kind", 1, "ann")
    assert (source.effect_root, source.input, source.caller) == (job, '{"n":7}', '{"roles":["x"]}')


def test_reading_writes_nothing(h: Harness) -> None:
    jobs = one_of_each(h)
    before = h.snapshot()
    for job in jobs.values():
        h.view(job)
        h.tasks(job)
        h.recovery(job)
        h.run(status.usable_output(ANN, job))
    listed(h, state="running")
    h.run(status.queues())
    h.ended_leases()
    h.advance(LEASE_MS)
    h.ended_leases()
    assert h.snapshot() == before
    assert h.cancel(jobs["queued"]) is Control.DONE
