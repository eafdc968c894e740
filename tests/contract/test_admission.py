"""T1 and J1: a job with all its rows, or nothing of it; and what an idempotency key stands for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.harness import ANN, Harness
from contract.plans import a
from outlast.domain.errors import KeyReused
from outlast.domain.kinds import MAX_NAME
from outlast.domain.work import Admitted, Control, KeyTaken

FOUR_BYTES = "\N{GRINNING FACE}"


def test_t1_j1_a_job_of_one_task_is_open_and_queued(h: Harness) -> None:
    job = h.admit(a("one", queue="print", priority=-3, deadline_ms=5_000))
    stored = h.job_row(job)
    assert (stored["state"], stored["version"], stored["total"], stored["open"], stored["required_open"]) == ("open", 1, 1, 1, 1)
    assert (stored["attention"], stored["problems"], stored["accepted_at"]) == (0, 0, h.now)
    entry = h.standing(job)
    assert (entry["ready_at"], entry["due_at"], entry["fence"], entry["spent"]) == (h.now, None, 0, 0)
    assert (entry["queue"], entry["priority"], entry["handler"], entry["deadline_ms"]) == ("print", -3, "kind@1:work", 5_000)
    assert (entry["holder"], entry["revoked"], entry["first_failed_at"]) == (None, 0, None)
    assert h.view(job).state == "queued"
    assert h.shows(job) == {"one": "queued"}


def test_t1_a_task_with_parents_is_blocked_and_has_no_entry(h: Harness) -> None:
    job = h.admit(a("one"), a("two"), a("join", after="one two"))
    assert h.shows(job) == {"one": "queued", "two": "queued", "join": "blocked"}
    assert h.task_row(job, "join")["deps_left"] == 2
    assert h.entry(job, "join") is None
    assert [(e["parent"], e["child"], e["soft"]) for e in h.rows("edge", job)] == [(0, 2, 0), (1, 2, 0)]


def test_t1_an_edge_is_soft_where_a_required_child_waits_for_an_optional_parent(h: Harness) -> None:
    job = h.admit(a("one"), a("extra", optional=True), a("more", optional=True, after="extra"), a("join", after="one extra"))
    soft = {(e["parent"], e["child"]): e["soft"] for e in h.rows("edge", job)}
    assert soft == {(1, 2): 0, (0, 3): 0, (1, 3): 1}
    assert (h.job_row(job)["total"], h.job_row(job)["open"], h.job_row(job)["required_open"]) == (4, 4, 2)


def test_t1_a_job_that_is_due_later_waits(h: Harness) -> None:
    job = h.admit(due_in=60_000)
    entry = h.standing(job)
    assert (entry["ready_at"], entry["due_at"]) == (None, h.now + 60_000)
    assert h.task(job).next_attempt_at_ms == h.now + 60_000
    assert h.view(job).state == "queued"
    assert h.claim() == []


@pytest.mark.parametrize("due_in", [0, -1, -86_400_000])
def test_t1_a_job_that_is_due_now_or_was_due_before_is_ready(h: Harness, due_in: int) -> None:
    entry = h.standing(h.admit(due_in=due_in))
    assert (entry["ready_at"], entry["due_at"]) == (h.now, None)


def test_t1_the_policy_stands_in_the_row(h: Harness) -> None:
    job = h.admit(a("one", attempts=7, base_ms=11, cap_ms=22, window_ms=33, deadline_ms=44, usable=True))
    task = h.task_row(job)
    assert [task[c] for c in ("max_attempts", "base_ms", "cap_ms", "window_ms", "deadline_ms", "usable")] == [7, 11, 22, 33, 44, 1]
    assert h.job_row(job)["usable_marked"] == 1


def test_j1_input_and_caller_are_kept_to_the_byte(h: Harness) -> None:
    body = '{"b":-0.0,"a":1.0,"é":"\\u2028","n":[1,2],"x":"' + FOUR_BYTES + '"}'
    job = h.admit(body=body, caller='{"roles":["b","a"]}')
    claimed = h.take()
    assert (claimed.input, claimed.caller) == (body, '{"roles":["b","a"]}')
    assert claimed.ref.job_id == job


def test_j1_a_batch_gives_its_results_in_the_order_asked(h: Harness) -> None:
    jobs = [h.admission(key=f"k{n}", owner=f"owner{n % 7}") for n in range(50)]
    order = [jobs[(n * 17) % 50] for n in range(50)]
    assert h.submit(*order) == [Admitted(job.job_id, replayed=False) for job in order]
    assert len(h.rows("job")) == len(h.rows("queue_entry")) == len(h.rows("submission")) == 50


def test_j1_a_plan_of_a_thousand_tasks(h: Harness) -> None:
    job = h.admit(a("t0"), *(a(f"t{n}", after=f"t{n - 1}") for n in range(1, 1_000)))
    assert h.job_row(job)["total"] == 1_000
    assert len(h.rows("edge", job)) == 999
    assert len(h.rows("queue_entry", job)) == 1


def test_j1_the_longest_names_are_kept_whole(h: Harness) -> None:
    queue, label = "q" * MAX_NAME, FOUR_BYTES * 500
    job = h.admit(a(label, queue=queue), label=label)
    assert h.view(job).label == label
    assert h.take(label, queue=queue).queue == queue


def test_key_the_same_request_again_gives_the_same_job(h: Harness) -> None:
    first = h.admit(key="k")
    before = h.snapshot()
    assert h.submit(h.admission(key="k")) == [Admitted(first, replayed=True)]
    assert h.snapshot() == before


def test_key_another_request_is_refused_and_writes_nothing(h: Harness) -> None:
    h.admit(key="k")
    before = h.snapshot()
    assert h.submit(h.admission(key="k", request="another")) == [KeyTaken()]
    assert h.snapshot() == before


@pytest.mark.parametrize("other", [{"owner": "bob"}, {"tenant": "elsewhere"}])
def test_key_belongs_to_one_owner_of_one_tenant(h: Harness, other: dict[str, str]) -> None:
    first = h.admit(key="k")
    second = h.admit(key="k", **other)
    assert first != second
    assert len(h.rows("submission")) == 2


def test_key_is_compared_to_the_byte(h: Harness) -> None:
    assert len({h.admit(key="k"), h.admit(key="K"), h.admit(key="k."), h.admit(key="~")}) == 4


def test_key_twice_in_one_batch_is_one_job(h: Harness) -> None:
    first, second = h.admission(key="k"), h.admission(key="k")
    assert h.submit(first, second) == [Admitted(first.job_id, replayed=False), Admitted(first.job_id, replayed=True)]
    assert len(h.rows("job")) == 1


def test_key_twice_in_one_batch_for_two_requests_refuses_the_second(h: Harness) -> None:
    first, second, third = h.admission(key="k"), h.admission(key="k", request="another"), h.admission()
    assert h.submit(first, second, third) == [
        Admitted(first.job_id, replayed=False),
        KeyTaken(),
        Admitted(third.job_id, replayed=False),
    ]


@pytest.mark.parametrize("key", ["k", None])
def test_key_or_id_resolves_a_lost_commit_to_one_job(h: Harness, key: str | None) -> None:
    """The very same admission again, as after a commit whose answer was lost: accepted, and no replay of an earlier one."""
    job = h.admission(a("one"), a("two", after="one"), key=key)
    h.submit(job)
    before = h.snapshot()
    assert h.submit(job) == [Admitted(job.job_id, replayed=False)]
    assert h.snapshot() == before


def test_key_of_many_is_all_or_none(h: Harness) -> None:
    h.admit(key="taken")
    before = h.snapshot()
    with pytest.raises(KeyReused) as refused:
        h.submit_all(h.admission(key="new"), h.admission(), h.admission(key="taken", request="another"))
    assert "submission 2" in refused.value.message
    assert h.snapshot() == before


def test_key_of_many_again_gives_the_same_jobs(h: Harness) -> None:
    old = h.admit(key="b")
    jobs = [h.admission(key=key) for key in ("c", "b", "a", "c")]
    expected = [Admitted(jobs[0].job_id, replayed=False), Admitted(old, replayed=True), Admitted(jobs[2].job_id, replayed=False)]
    assert h.submit_all(*jobs) == [*expected, Admitted(jobs[0].job_id, replayed=True)]
    assert h.submit_all(*jobs) == [*expected, Admitted(jobs[0].job_id, replayed=True)]
    assert len(h.rows("job")) == 3


@pytest.mark.parametrize("end", ["completed", "needs_attention", "cancelled"])
def test_key_of_a_job_that_ended_still_gives_that_job(h: Harness, end: str) -> None:
    job = h.admit(a("one", attempts=1), key="k")
    if end == "cancelled":
        assert h.cancel(job) is Control.DONE
    elif end == "completed":
        h.finish(h.take())
    else:
        h.fail(h.take())
    assert h.view(job).state == end
    before = h.snapshot()
    assert h.submit(h.admission(key="k")) == [Admitted(job, replayed=True)]
    assert h.submit_all(h.admission(key="k")) == [Admitted(job, replayed=True)]
    assert h.submit(h.admission(key="k", request="another")) == [KeyTaken()]
    assert h.snapshot() == before


def test_key_without_one_makes_a_job_each_time_and_no_record(h: Harness) -> None:
    assert h.admit() != h.admit()
    assert h.rows("submission") == []


def test_j10_a_rerun_names_the_old_job_and_copies_its_effect_root(h: Harness) -> None:
    old = h.admit()
    h.cancel(old)
    new = h.admission(rerun_of=old, effect_root=old)
    assert h.rerun(ANN, new) == Admitted(new.job_id, replayed=False)
    stored = h.job_row(new.job_id)
    assert (stored["rerun_of"], stored["effect_root"]) == (old, old)
    assert h.view(new.job_id).rerun_of == old
    assert h.job_row(old)["version"] == 2


def test_j10_a_rerun_is_refused_while_the_job_is_not_final(h: Harness) -> None:
    old = h.admit()
    before = h.snapshot()
    assert h.rerun(ANN, h.admission(rerun_of=old)) is None
    assert h.snapshot() == before


def test_j10_a_rerun_of_anothers_job_is_refused(h: Harness) -> None:
    old = h.admit(owner="bob")
    h.finish(h.take())
    assert h.rerun(ANN, h.admission(rerun_of=old)) is None
    assert h.rerun(ANN, replace(h.admission(), rerun_of="00000000-0000-7000-8000-000000000000")) is None


def test_j10_a_rerun_with_a_key_again_gives_the_same_new_job(h: Harness) -> None:
    old = h.admit()
    h.finish(h.take())
    new = h.admission(key="again", rerun_of=old)
    assert h.rerun(ANN, new) == Admitted(new.job_id, replayed=False)
    assert h.rerun(ANN, h.admission(key="again", rerun_of=old)) == Admitted(new.job_id, replayed=True)
    assert h.rerun(ANN, h.admission(key="again", request="another", rerun_of=old)) == KeyTaken()
