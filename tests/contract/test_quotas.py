"""Quotas: what counts, what is refused and leaves nothing behind, and what is never refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from contract.harness import ANN, OPERATOR, WINDOW_MS, Harness
from contract.plans import a
from contract.test_client import Caller
from outlast.app import Outlast
from outlast.client import deciding, submitting
from outlast.client.submitting import Submission
from outlast.domain.errors import Invalid, KeyReused, QuotaExceeded
from outlast.domain.kinds import MAX_QUOTA, Plan
from outlast.domain.model import MAX_NAME, Principal, Unique
from outlast.domain.work import Admission, Admitted, Control, KeyTaken
from outlast.worker.context import SyncContext


def put(h: Harness, *tasks: Any, quota: int | None = 2, **options: Any) -> str:
    """The id of a job that is new."""
    job = h.admission(*tasks, quota=quota, **options)
    assert h.submit_unique(job) == Admitted(job.job_id, replayed=False)
    return job.job_id


def refused(h: Harness, job: Admission | None = None, **options: Any) -> None:
    """One more is refused, and nothing is written."""
    before = h.snapshot()
    with pytest.raises(QuotaExceeded) as error:
        h.submit_unique(job or h.admission(**{"quota": 2, **options}))
    assert (error.value.code, error.value.retryable) == ("quota_exceeded", True)
    assert h.snapshot() == before


def counted(h: Harness) -> list[str]:
    return sorted(row["job_id"] for row in h.rows("quota_job"))


def finish(h: Harness, job: str) -> None:
    h.finish(h.take())


def cancel(h: Harness, job: str) -> None:
    assert h.cancel(job) is Control.DONE


def dismiss(h: Harness, job: str) -> None:
    h.ask(h.take())
    assert h.act(job, "dismiss") is Control.DONE


def abandon(h: Harness, job: str) -> None:
    h.ask(h.take())
    h.advance(WINDOW_MS)
    h.sweep()


ENDS: dict[str, Callable[[Harness, str], None]] = {"finish": finish, "cancel": cancel, "dismiss": dismiss, "abandon": abandon}


@pytest.mark.parametrize("key", ["k", None])
def test_j1_as_many_as_the_quota_and_no_more(h: Harness, key: str | None) -> None:
    jobs = [put(h, key=f"{n}") for n in range(2)]
    refused(h, key=key)
    assert counted(h) == sorted(jobs)
    assert len(h.rows("job")) == 2


@pytest.mark.parametrize("end", ENDS)
def test_every_end_makes_room(h: Harness, end: str) -> None:
    job = put(h, quota=1)
    refused(h, quota=1)
    ENDS[end](h, job)
    assert h.job_row(job)["state"] in ("completed", "cancelled")
    new = put(h, quota=1)
    assert counted(h) == [new], "what has ended is forgotten when room is needed"


def test_what_does_not_end_the_job_makes_no_room(h: Harness) -> None:
    job = put(h, a("one"), a("two", after="one", optional=True), quota=1)
    h.finish(h.take())
    refused(h, quota=1)
    h.ask(h.take("two"))
    assert h.job_row(job)["state"] == "needs_attention"
    refused(h, quota=1)
    h.act(job, "retry")
    refused(h, quota=1)
    h.finish(h.take("two"))
    put(h, quota=1)


def test_a_refusal_burns_no_key(h: Harness) -> None:
    job = put(h, quota=1)
    wanted = h.admission(key="k", quota=1)
    refused(h, wanted)
    h.cancel(job)
    assert h.submit_unique(wanted) == Admitted(wanted.job_id, replayed=False)


def test_a_repeat_is_never_refused(h: Harness) -> None:
    job = put(h, key="k", quota=1)
    before = h.snapshot()
    assert h.submit_unique(h.admission(key="k", quota=1)) == Admitted(job, replayed=True)
    assert h.submit_unique(h.admission(key="k", quota=1, request="another")) == KeyTaken()
    assert h.snapshot() == before


@pytest.mark.parametrize("key", ["k", None])
def test_a_lost_commit_is_resolved_by_the_same_request(h: Harness, key: str | None) -> None:
    job = h.admission(key=key, quota=1)
    h.submit_unique(job)
    before = h.snapshot()
    assert h.submit_unique(job) == Admitted(job.job_id, replayed=False)
    assert h.snapshot() == before


@pytest.mark.parametrize("other", [{"owner": "bob"}, {"tenant": "elsewhere"}, {"kind": "other"}])
def test_each_owner_has_a_quota_of_each_kind(h: Harness, other: dict[str, str]) -> None:
    put(h, quota=1)
    put(h, quota=1, **other)
    refused(h, quota=1)
    refused(h, quota=1, **other)


def test_a_kind_without_a_quota_is_neither_counted_nor_refused(h: Harness) -> None:
    put(h, quota=1)
    before = {name: h.rows_of(name) for name in ("quota", "quota_job")}
    for key in ("x", None):
        put(h, kind="other", quota=None, key=key)
    assert {name: h.rows_of(name) for name in ("quota", "quota_job")} == before


# -- a quota that was not there, or was another -------------------------------------------------------------------


def test_what_was_open_before_there_was_a_quota_counts(h: Harness) -> None:
    old = [h.admit(key=f"{n}") for n in range(3)]
    h.admit(kind="other")
    h.admit(owner="bob")
    refused(h, quota=3)
    h.cancel(old[0])
    job = put(h, quota=3)
    assert counted(h) == sorted([*old[1:], job])


def test_below_what_is_open_nothing_new_until_it_is_under_it(h: Harness) -> None:
    jobs = [put(h, quota=4) for _ in range(4)]
    for job in jobs[:3]:
        refused(h, quota=2)
        assert {h.job_row(job)["state"] for job in jobs} <= {"open", "cancelled"}
        h.cancel(job)
    put(h, quota=2)
    refused(h, quota=2)


def test_a_quota_that_was_raised_gives_room_at_once(h: Harness) -> None:
    put(h, quota=1)
    refused(h, quota=1)
    put(h, quota=2)


# -- unique keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["k", None])
def test_the_active_job_of_a_unique_key_is_given_without_counting(h: Harness, key: str | None) -> None:
    job = put(h, quota=1, unique="u")
    assert h.submit_unique(h.admission(quota=1, unique="u", key=key)) == Admitted(job, replayed=True)
    assert counted(h) == [job]
    refused(h, quota=1, unique="v", key="other")


def test_what_is_replaced_makes_room_for_what_replaces_it(h: Harness) -> None:
    job = put(h, quota=1, unique="u")
    new = h.admission(quota=1, unique="u", policy="replace", key="k")
    assert h.submit_unique(new) == Admitted(new.job_id, replayed=False, replaced=job)
    assert h.submit_unique(new) == Admitted(new.job_id, replayed=False)
    assert counted(h) == [new.job_id]
    refused(h, quota=1)


def test_a_replacement_above_the_quota_is_refused_and_nothing_is_replaced(h: Harness) -> None:
    job = put(h, quota=3, unique="u")
    for _ in range(2):
        put(h, quota=3)
    refused(h, quota=2, unique="u", policy="replace", key="k")
    assert h.job_row(job)["state"] == "open"


# -- several at once, and reruns ----------------------------------------------------------------------------------


def test_many_are_all_or_none(h: Harness) -> None:
    put(h, quota=3)
    before = h.snapshot()
    with pytest.raises(QuotaExceeded):
        h.submit_all(*(h.admission(quota=3, key=key) for key in "abc"), h.admission(kind="other"))
    assert h.snapshot() == before
    jobs = [h.admission(quota=3, key=key) for key in "ab"]
    assert [r.replayed for r in h.submit_all(*jobs, h.admission(kind="other"))] == [False] * 3
    before = h.snapshot()
    assert [r.replayed for r in h.submit_all(*(h.admission(quota=3, key=key) for key in "ab"))] == [True, True]
    assert h.snapshot() == before
    refused(h, quota=3)


def test_many_of_several_owners_and_kinds(h: Harness) -> None:
    jobs = [h.admission(quota=1, kind=kind, owner=owner) for kind in ("b", "a") for owner in ("bob", "ann")]
    assert len(h.submit_all(*jobs)) == 4
    assert len(h.rows_of("quota")) == 4
    for job in jobs:
        refused(h, quota=1, kind=job.kind, owner=job.owner)


def test_many_of_which_some_were_there(h: Harness) -> None:
    job = put(h, quota=2, unique="u", key="a")
    results = h.submit_all(h.admission(quota=2, key="a", unique="u"), h.admission(quota=2, unique="u"), h.admission(quota=2))
    assert [(r.job_id == job, r.replayed) for r in results] == [(True, True), (True, True), (False, False)]
    refused(h, quota=2)


def test_another_request_under_a_key_is_said_before_the_quota(h: Harness) -> None:
    put(h, quota=1, key="k")
    with pytest.raises(KeyReused):
        h.submit_all(h.admission(quota=2, key="k", request="another"), h.admission(quota=2))


def test_a_rerun_counts(h: Harness) -> None:
    old = put(h, quota=1)
    h.finish(h.take())
    new = h.admission(rerun_of=old, quota=1, key="k")
    assert h.rerun(ANN, new) == Admitted(new.job_id, replayed=False)
    assert h.rerun(OPERATOR, h.admission(rerun_of=old, quota=1, key="k")) == Admitted(new.job_id, replayed=True)
    before = h.snapshot()
    with pytest.raises(QuotaExceeded):
        h.rerun(OPERATOR, h.admission(rerun_of=old, quota=1))
    assert h.snapshot() == before
    refused(h, quota=1)


def test_the_longest_names_have_room(h: Harness) -> None:
    wide = "".join(chr(0x10000 + 977 * n) for n in range(MAX_NAME))
    put(h, quota=1, owner=wide, tenant=wide[::-1], kind="x" * 100)
    refused(h, quota=1, owner=wide, tenant=wide[::-1], kind="x" * 100)


def test_many_at_once_below_a_large_quota(h: Harness) -> None:
    h.submit_all(*(h.admission(quota=MAX_QUOTA) for _ in range(120)))
    refused(h, quota=100)
    refused(h, quota=120)
    h.cancel(counted(h)[0])
    put(h, quota=120)


# -- the calls ----------------------------------------------------------------------------------------------------


@dataclass
class Page:
    number: int


jobs = Outlast("sqlite:///never-opened.db")


@jobs.task
def draw(ctx: SyncContext, page: Page) -> int:
    return page.number


@jobs.kind("drawing", quota=2)
def drawing(plan: Plan[Page], page: Page) -> None:
    plan.task(draw, label="Draw")


PERSON = Principal("acme", "ann")


def submit(h: Harness, **options: Any) -> Any:
    given = {"owner": PERSON, "key": None, "not_before": None, **options}
    return h.drive(submitting.submit(jobs._app, submitting.prepare(jobs._app, drawing, Page(1), **given)))


def test_a_kinds_quota_is_that_of_its_submits_and_reruns(h: Harness) -> None:
    first = submit(h, key="a")
    submit(h)
    with pytest.raises(QuotaExceeded, match=r"2 unfinished jobs of the kind 'drawing'.*Nothing was written"):
        submit(h)
    assert submit(h, key="a").replayed
    assert submit(h, owner=Principal("acme", "bob"))
    many = submitting.prepare_many(jobs._app, [Submission(drawing, Page(1))], owner=PERSON)
    with pytest.raises(QuotaExceeded):
        h.drive(submitting.submit_many(jobs._app, many))
    h.drive(deciding.cancel(jobs._app, first.id, PERSON, None))
    submit(h, unique=Unique("u", "existing"))
    with pytest.raises(QuotaExceeded):
        h.drive(submitting.rerun_job(jobs._app, first.id, PERSON, None))


def test_more_at_once_than_the_quota_allows_can_never_be_admitted(h: Harness) -> None:
    def many(*keys: str | None) -> Any:
        given = [Submission(drawing, Page(1), key=key) for key in keys]
        return h.drive(submitting.submit_many(jobs._app, submitting.prepare_many(jobs._app, given, owner=PERSON)))

    before = h.snapshot()
    with pytest.raises(Invalid, match="3 new jobs of the kind 'drawing', and one owner may have 2 unfinished") as refused:
        many("a", "b", None)
    assert not refused.value.retryable
    assert h.snapshot() == before
    assert len(many("a", "b", "a")) == 3, "one key is one job"
    with pytest.raises(QuotaExceeded):
        many("a", "b", "c")
    for handle in many("a", "b"):
        h.drive(deciding.cancel(jobs._app, handle.id, PERSON, None))
    many("c", "d")
    with pytest.raises(QuotaExceeded):
        many("a", "b", "e")
    assert all(handle.replayed for handle in many("a", "b", "c", "d")), "repeats are no new jobs"


def test_a_cancel_makes_room_for_a_rerun(h: Harness) -> None:
    first = submit(h)
    second = submit(h)
    for job in (first, second):
        h.drive(deciding.cancel(jobs._app, job.id, PERSON, None))
    assert h.drive(submitting.rerun_job(jobs._app, first.id, Principal("acme", "olga", roles=["operator"]), None))
    assert Caller(h).page(PERSON, state="active").items[0].rerun_of == first.id


@pytest.mark.parametrize("quota", [0, -1, MAX_QUOTA + 1, True, 1.0, "3", float("nan"), [1]])
def test_what_is_no_quota_is_refused_when_it_is_registered(quota: Any) -> None:
    def another(plan: Plan[Page], page: Page) -> None:
        plan.task(draw, label="Draw")

    with pytest.raises(Invalid, match=f"quota of a kind is a whole number from 1 to {MAX_QUOTA}") as error:
        jobs.kind("another", quota=quota)(another)
    assert error.value.code == "invalid"
    assert "another" not in jobs.registry.kinds
