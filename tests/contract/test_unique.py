"""One active job for a unique key: what each policy does with it, and when the key is free again (J1, J2, J5, J6, J7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.harness import ANN, OWNER, RETENTION_MS, TENANT, WINDOW_MS, Harness
from contract.plans import a
from outlast.domain.errors import KeyReused
from outlast.domain.kinds import MAX_NAME as MAX_KIND
from outlast.domain.model import MAX_NAME, UniquePolicy
from outlast.domain.payload import MAX_KEY
from outlast.domain.work import ActiveTaken, Admitted, Control, KeyHeld, KeyTaken

POLICIES: tuple[UniquePolicy, ...] = ("existing", "reject", "replace")


def first(h: Harness, *tasks: Any, **options: Any) -> str:
    """The job that has the key."""
    job = h.admission(*(tasks or (a("one"),)), unique="u", **options)
    assert h.submit_unique(job) == Admitted(job.job_id, replayed=False)
    return job.job_id


def state(h: Harness, job: str) -> tuple[str, str | None, str | None]:
    stored = h.job_row(job)
    return stored["state"], stored["outcome"], stored["active_key"]


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


def fail_optional(h: Harness, job: str) -> None:
    """The last open task of the job is optional work that fails."""
    for claimed in h.claim():
        if claimed.label == "one":
            h.finish(claimed)
        else:
            h.fail(claimed, permanent=True)


def skip_optional(h: Harness, job: str) -> None:
    for claimed in h.claim():
        if claimed.label == "one":
            h.finish(claimed)
        else:
            h.ask(claimed)
    assert h.act(job, "skip") is Control.DONE


ENDS: dict[str, Callable[[Harness, str], None]] = {
    "finish": finish,
    "cancel": cancel,
    "dismiss": dismiss,
    "abandon": abandon,
    "fail optional": fail_optional,
    "skip optional": skip_optional,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("key", ["k", None])
def test_j1_a_free_key_is_taken(h: Harness, policy: UniquePolicy, key: str | None) -> None:
    job = first(h, policy=policy, key=key)
    stored = h.job_row(job)
    assert (stored["active_scope"], stored["active_key"], stored["state"]) == (f"kind/{OWNER}", "u", "open")
    assert len(h.rows("queue_entry")) == 1


@pytest.mark.parametrize("key", ["k", None])
def test_existing_gives_the_active_job_as_a_replay(h: Harness, key: str | None) -> None:
    job = first(h)
    rows = {name: rows for name, rows in h.snapshot().items() if name != "submission"}
    assert h.submit_unique(h.admission(unique="u", key=key)) == Admitted(job, replayed=True)
    assert {name: rows for name, rows in h.snapshot().items() if name != "submission"} == rows
    assert [s["job_id"] for s in h.rows("submission")] == ([job] if key else [])


def test_existing_under_a_key_stays_that_job_after_it_ended(h: Harness) -> None:
    """The idempotency record points at it, so that a repeat is answered alike, whatever became of the job and of its unique key."""
    job = first(h)
    assert h.submit_unique(h.admission(unique="u", key="k")) == Admitted(job, replayed=True)
    h.finish(h.take())
    before = h.snapshot()
    assert h.submit_unique(h.admission(unique="u", key="k")) == Admitted(job, replayed=True)
    assert h.submit_unique(h.admission(unique="u", key="k", request="another")) == KeyTaken()
    assert h.snapshot() == before
    new = h.admission(unique="u", key="another key")
    assert h.submit_unique(new) == Admitted(new.job_id, replayed=False)


@pytest.mark.parametrize("key", ["k", None])
def test_reject_names_the_active_job_and_burns_no_key(h: Harness, key: str | None) -> None:
    job = first(h)
    before = h.snapshot()
    refused = h.admission(unique="u", key=key, policy="reject")
    assert h.submit_unique(refused) == ActiveTaken(job)
    assert h.submit_unique(refused) == ActiveTaken(job)
    assert h.snapshot() == before
    h.finish(h.take())
    assert h.submit_unique(refused) == Admitted(refused.job_id, replayed=False)


@pytest.mark.parametrize("key", ["k", None])
def test_j6_replace_cancels_the_active_job_and_takes_its_place(h: Harness, key: str | None) -> None:
    job = first(h, a("one"), a("two"), a("join", after="one two"))
    held = h.take()
    new = h.admission(unique="u", key=key, policy="replace")
    assert h.submit_unique(new) == Admitted(new.job_id, replayed=False, replaced=job)
    assert state(h, job) == ("cancelled", "superseded", None)
    stored = h.job_row(job)
    assert (stored["cancelled_by"], stored["version"], stored["purge_at"]) == (OWNER, 2, h.now + RETENTION_MS)
    assert state(h, new.job_id) == ("open", None, "u")
    assert h.view(job).stopping
    assert h.finish(held).verdict.value == "cancelled"
    assert h.take().ref.job_id == new.job_id


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("key", ["k", None])
def test_a_lost_commit_is_resolved_by_the_same_request(h: Harness, policy: UniquePolicy, key: str | None) -> None:
    """The very same admission again, as after a commit whose answer was lost: accepted, nothing written, no job replaced by itself."""
    first(h, policy="existing") if policy == "replace" else None
    job = h.admission(unique="u", key=key, policy=policy)
    h.submit_unique(job)
    before = h.snapshot()
    assert h.submit_unique(job) == Admitted(job.job_id, replayed=False)
    assert h.snapshot() == before


@pytest.mark.parametrize("policy", POLICIES)
def test_an_idempotency_key_again_is_that_job_whatever_has_the_unique_key(h: Harness, policy: UniquePolicy) -> None:
    mine = h.admission(unique="u", key="k", policy=policy)
    assert h.submit_unique(mine) == Admitted(mine.job_id, replayed=False)
    h.finish(h.take())
    other = first(h)
    before = h.snapshot()
    assert h.submit_unique(h.admission(unique="u", key="k", policy=policy)) == Admitted(mine.job_id, replayed=True)
    assert h.submit_unique(h.admission(unique="u", key="k", policy=policy, request="another")) == KeyTaken()
    assert h.snapshot() == before
    assert state(h, other) == ("open", None, "u")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_that_needs_attention_is_active(h: Harness, policy: UniquePolicy) -> None:
    job = first(h)
    h.ask(h.take())
    new = h.admission(unique="u", policy=policy)
    expected = {
        "existing": Admitted(job, replayed=True),
        "reject": ActiveTaken(job),
        "replace": Admitted(new.job_id, replayed=False, replaced=job),
    }
    assert h.submit_unique(new) == expected[policy]
    if policy == "replace":
        assert [q["action"] for q in h.rows("attention", job)] == ["closed"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_j2_to_j7_every_end_frees_the_key(h: Harness, end: str, policy: UniquePolicy) -> None:
    tasks = (a("one"), a("extra", optional=True)) if "optional" in end else (a("one"),)
    job = first(h, *tasks)
    ENDS[end](h, job)
    assert h.job_row(job)["state"] in ("completed", "cancelled")
    assert h.job_row(job)["active_key"] is None
    new = h.admission(unique="u", policy=policy)
    assert h.submit_unique(new) == Admitted(new.job_id, replayed=False)


def test_what_does_not_end_the_job_keeps_the_key(h: Harness) -> None:
    job = first(h, a("one"), a("two", after="one"), a("extra", optional=True))
    for claimed in h.claim():
        if claimed.label == "one":
            h.finish(claimed)
        else:
            h.ask(claimed)
    h.act(job, "retry")
    h.hand_back(h.take("two"))
    assert state(h, job) == ("open", None, "u")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("other", [{"owner": "bob"}, {"tenant": "elsewhere"}, {"kind": "other"}])
def test_a_key_is_one_owners_for_one_kind(h: Harness, other: dict[str, str], policy: UniquePolicy) -> None:
    mine = first(h)
    theirs = h.admission(unique="u", policy=policy, **other)
    assert h.submit_unique(theirs) == Admitted(theirs.job_id, replayed=False)
    assert state(h, mine) == ("open", None, "u")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("key", ["k", None])
def test_a_key_of_the_tenant_refuses_what_another_owner_has(h: Harness, policy: UniquePolicy, key: str | None) -> None:
    """Nobody gets another's job under their own idempotency key, nor cancels it."""
    theirs = first(h, scope="kind", owner="bob")
    before = h.snapshot()
    mine = h.admission(unique="u", scope="kind", policy=policy, key=key)
    assert h.submit_unique(mine) == ActiveTaken(theirs)
    assert h.snapshot() == before
    h.finish(h.take())
    assert h.submit_unique(mine) == Admitted(mine.job_id, replayed=False)


def test_the_scopes_of_an_owner_and_of_the_tenant_do_not_meet(h: Harness) -> None:
    first(h, scope="kind")
    first(h)


@pytest.mark.parametrize("policy", ["existing", "replace"])
def test_each_scope_gives_its_own_active_job(h: Harness, policy: UniquePolicy) -> None:
    """Whoever asks again is given, or replaces, the job of the same scope, and no other that has an equal key."""
    theirs = [first(h, owner=owner) for owner in ("aaa", "zzz")]
    mine = first(h, owner="bob")
    job = h.admission(unique="u", owner="bob", policy=policy)
    expected = Admitted(mine, replayed=True) if policy == "existing" else Admitted(job.job_id, replayed=False, replaced=mine)
    assert h.submit_unique(job) == expected
    assert [state(h, other)[0] for other in theirs] == ["open", "open"]


def test_a_key_is_compared_to_the_byte(h: Harness) -> None:
    keys = ("u", "U", "u.", "~")
    jobs = [h.admission(unique=key, policy="reject") for key in keys]
    assert [h.submit_unique(job) for job in jobs] == [Admitted(job.job_id, replayed=False) for job in jobs]


def test_the_longest_names_have_room_in_the_index(h: Harness) -> None:
    """Four bytes a character, and nothing that can be compressed."""
    wide = "".join(chr(0x10000 + 977 * n) for n in range(MAX_NAME))
    name = wide[:MAX_KIND]
    key = "".join(chr(33 + 57 * n % 94) for n in range(MAX_KEY))
    job = h.admission(unique=key, owner=wide, tenant=wide[::-1], kind=name)
    assert h.submit_unique(job) == Admitted(job.job_id, replayed=False)
    assert h.submit_unique(h.admission(unique=key, owner=wide, tenant=wide[::-1], kind=name)) == Admitted(job.job_id, replayed=True)


def test_a_replaced_jobs_own_request_again_gives_that_job(h: Harness) -> None:
    job = first(h, key="k")
    h.submit_unique(h.admission(unique="u", policy="replace", key="other"))
    assert h.submit_unique(h.admission(unique="u", key="k")) == Admitted(job, replayed=True)
    assert h.view(job).outcome == "superseded"


def test_a_rerun_takes_no_unique_key(h: Harness) -> None:
    old = first(h)
    h.finish(h.take())
    new = h.admission(rerun_of=old)
    assert h.rerun(ANN, new) == Admitted(new.job_id, replayed=False)
    assert h.job_row(new.job_id)["active_key"] is None


# -- several at once --------------------------------------------------------------------------------------------


def test_many_each_by_its_policy_in_the_order_asked(h: Harness) -> None:
    held = {key: h.admission(unique=key) for key in "rs"}
    h.submit_all(*held.values())
    jobs = [
        h.admission(unique="s", policy="replace", key="3"),
        h.admission(key="2"),
        h.admission(unique="t", policy="reject", key="1"),
        h.admission(unique="r", policy="existing", key="0"),
        h.admission(unique="q", policy="existing"),
        h.admission(unique="r", policy="existing"),
        h.admission(),
    ]
    assert h.submit_all(*jobs) == [
        Admitted(jobs[0].job_id, replayed=False, replaced=held["s"].job_id),
        Admitted(jobs[1].job_id, replayed=False),
        Admitted(jobs[2].job_id, replayed=False),
        Admitted(held["r"].job_id, replayed=True),
        Admitted(jobs[4].job_id, replayed=False),
        Admitted(held["r"].job_id, replayed=True),
        Admitted(jobs[6].job_id, replayed=False),
    ]
    assert state(h, held["s"].job_id) == ("cancelled", "superseded", None)
    before = h.snapshot()
    again = h.submit_all(*(job for job in jobs if job.key))
    assert [result.job_id for result in again] == [jobs[0].job_id, jobs[1].job_id, jobs[2].job_id, held["r"].job_id]
    assert h.snapshot() == before


def test_many_of_one_key_are_one_job(h: Harness) -> None:
    jobs = [h.admission(unique="u", key=key) for key in ("b", None, "a", None)]
    results = h.submit_all(*jobs)
    (made,) = h.rows("job")
    assert {result.job_id for result in results} == {made["id"]}
    assert sorted(result.replayed for result in results) == [False, True, True, True]
    assert {s["job_id"] for s in h.rows("submission")} == {made["id"]}


def test_many_are_all_or_none(h: Harness) -> None:
    taken, other = h.admission(unique="u"), h.admission(unique="v")
    h.submit_all(taken, other)
    before = h.snapshot()
    with pytest.raises(KeyHeld) as refused:
        h.submit_all(h.admission(key="a"), h.admission(unique="v", policy="replace"), h.admission(unique="u", policy="reject", key="b"))
    assert (refused.value.place, refused.value.job_id) == (2, taken.job_id)
    assert h.snapshot() == before


def test_many_are_none_when_a_key_belongs_to_another_request(h: Harness) -> None:
    h.admit(key="taken")
    before = h.snapshot()
    with pytest.raises(KeyReused, match="submission 1"):
        h.submit_all(h.admission(unique="u"), h.admission(key="taken", request="another", unique="v"))
    assert h.snapshot() == before


def test_many_replace_as_many(h: Harness) -> None:
    old = [h.admission(unique=f"u{n % 10}{n}") for n in range(60)]
    h.submit_all(*old)
    new = [h.admission(unique=job.unique.key, policy="replace") for job in reversed(old) if job.unique]
    results = h.submit_all(*new)
    assert [result.replaced for result in results] == [job.job_id for job in reversed(old)]
    assert {h.job_row(job.job_id)["outcome"] for job in old} == {"superseded"}
    assert len(h.rows("queue_entry")) == 60


def test_the_tenant_stands_in_the_key(h: Harness) -> None:
    assert TENANT != "elsewhere"
    mine = first(h, scope="kind")
    theirs = h.admission(unique="u", scope="kind", tenant="elsewhere", policy="replace")
    assert h.submit_unique(theirs) == Admitted(theirs.job_id, replayed=False)
    assert state(h, mine) == ("open", None, "u")
