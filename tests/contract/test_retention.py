"""J11: what is no longer kept goes whole, and its key answers until the horizon is over."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backends import Row
from contract.harness import ANN, BOB, HORIZON_MS, OPERATOR, RETENTION_MS, STRANGER, TIMEOUT_MS, WINDOW_MS, Harness
from contract.plans import a
from outlast.domain.errors import KeyReused
from outlast.domain.work import Admitted, KeyTaken, Tombstone
from outlast.store.programs import admission, retention, status
from outlast.store.programs.steps import store_step


def left(h: Harness, *but: str) -> dict[str, int]:
    """How many rows each table has, where it has any."""
    return {name: len(rows) for name, rows in h.snapshot().items() if rows and name not in but}


def everything(h: Harness, **options: Any) -> str:
    """A job that has rows in every table of its own, and ends cancelled."""
    job = h.admit(a("one"), a("two", optional=True), a("three", after="one"), a("four"), **options)
    held = h.take_all()
    met = h.intend(held["one"])
    h.settle(met, "confirmed", "1")
    h.run(store_step(held["one"].ref, "page", "1"))
    h.finish(held["one"])
    h.fail(held["four"])
    h.ask(held["two"])
    h.cancel(job)
    return job


def completed(h: Harness, **options: Any) -> str:
    job = h.admit(**options)
    h.finish(h.take())
    return job


def test_j11_a_job_goes_whole_and_its_key_stays(h: Harness) -> None:
    job = everything(h, key="k")
    other = h.admit(a("one"), a("two", after="one"))
    before = left(h)
    assert {"job", "job_input", "task", "edge", "output", "attempt", "step", "attention", "effect", "submission"} <= {*before}
    h.advance(RETENTION_MS - 1)
    assert h.purge() == []
    h.advance(1)
    assert h.purge() == [job]
    assert left(h) == {"job": 1, "job_input": 1, "task": 2, "edge": 1, "queue_entry": 1, "submission": 1}
    assert h.job_row(other)["state"] == "open"
    (kept,) = h.rows("submission")
    assert (kept["job_id"], kept["final_state"], kept["outcome"], kept["expires_at"]) == (job, "cancelled", "user", h.now + HORIZON_MS)


@pytest.mark.parametrize("how", ["finish", "batch", "fail", "cancel", "dismiss", "skip", "window", "supersede", "lost", "park"])
def test_j11_every_end_says_until_when_it_is_kept(h: Harness, how: str) -> None:
    optional = how in ("fail", "skip", "lost")
    job = h.admission(a("main"), a("one", optional=optional, attempts=1), unique="u", key="k")
    h.submit_unique(job)
    held = h.take_all()
    h.finish(held["main"])
    match how:
        case "finish":
            h.finish(held["one"])
        case "batch":
            h.finish_all((held["one"], "1", None))
        case "park":
            h.park(held["one"])
        case "fail":
            h.fail(held["one"])
        case "cancel":
            h.cancel(job.job_id)
            h.stop(held["one"])
        case "dismiss" | "skip":
            h.ask(held["one"])
            h.act(job.job_id, how)
        case "window":
            h.ask(held["one"])
            h.advance(WINDOW_MS)
            h.sweep()
        case "supersede":
            h.submit_unique(h.admission(unique="u", policy="replace"))
            h.stop(held["one"])
        case _:
            h.lose(held["one"])
            h.sweep()
    row = h.job_row(job.job_id)
    assert row["state"] in ("completed", "cancelled")
    assert row["purge_at"] == h.now + RETENTION_MS
    h.outlive(job.job_id)
    (kept,) = h.rows("submission", job.job_id)
    assert (kept["final_state"], kept["outcome"], kept["finished_at"]) == (row["state"], row["outcome"], row["finished_at"])


def test_j11_what_is_not_final_stays_however_old(h: Harness) -> None:
    asks, waits = h.admit(a("one")), h.admit(a("two"))
    h.ask(h.take())
    h.advance(100 * RETENTION_MS)
    assert h.purge(older_ms=0) == []
    assert {job["id"] for job in h.rows("job")} == {asks, waits}


def test_j11_a_cancelled_job_stays_until_its_holder_has_stopped(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    one, two = h.take_all().values()
    h.cancel(job)
    h.stop(one)
    h.advance(RETENTION_MS)
    assert h.purge() == []
    h.stop(two)
    assert h.purge() == [job]
    assert left(h) == {}


def test_j11_what_ended_long_enough_ago_goes_before_its_time(h: Harness) -> None:
    old = completed(h, key="k")
    h.advance(5_000)
    new = completed(h)
    assert h.purge() == []
    assert h.purge(older_ms=5_001) == []
    assert h.purge(older_ms=5_000) == [old]
    assert [job["id"] for job in h.rows("job")] == [new]


@pytest.mark.parametrize("stretch", [1, 2, 3, 100])
def test_a_walk_meets_every_job_once(h: Harness, stretch: int) -> None:
    jobs = [completed(h) for _ in range(5)]
    h.advance(RETENTION_MS)
    late = completed(h)
    assert h.purge(stretch) == jobs
    assert [job["id"] for job in h.rows("job")] == [late]


def test_a_walk_ends_where_nothing_can_be_due(h: Harness) -> None:
    """An id tells when its job was asked for; a worker does not look at younger ones than it keeps."""
    old = completed(h)
    for _ in range(3):
        completed(h)
    first, second = (row["id"] for row in h.rows("job")[:2])
    h.advance(RETENTION_MS)
    all_of_them = h.run(retention.due(None, limit=2, kept_ms=RETENTION_MS - 60_000))
    assert ([job.id for job in all_of_them.due], all_of_them.last) == ([old, second], second)
    assert h.run(retention.due(None, limit=9, kept_ms=RETENTION_MS + 60_000)).due == ()
    assert first == old


def test_a_purge_is_of_one_tenant(h: Harness) -> None:
    mine, theirs = h.admit(key="k"), h.admit(key="k", tenant="globex")
    for claimed in h.claim():
        h.finish(claimed)
    h.advance(RETENTION_MS)
    assert h.run(retention.purge("acme", [theirs, mine], horizon_ms=1)) == [mine]
    assert [job["id"] for job in h.rows("job")] == [theirs]


def test_a_purge_judges_again_what_the_walk_found(h: Harness) -> None:
    done, live = completed(h), h.admit()
    assert h.run(retention.purge("acme", [done, live], horizon_ms=1)) == []
    assert h.run(retention.purge("acme", [live], horizon_ms=1, older_ms=0)) == []
    h.advance(RETENTION_MS)
    assert h.run(retention.purge("acme", [done, live], horizon_ms=1)) == [done]
    assert h.run(retention.purge("acme", [done, live], horizon_ms=1)) == []


# -- effects ----------------------------------------------------------------------------------------------------


def effects(h: Harness) -> set[str]:
    return {row["name"] for row in h.rows("effect")}


def test_i1_effects_go_with_the_last_job_that_has_them(h: Harness) -> None:
    root = h.admit()
    claimed = h.take()
    h.settle(h.intend(claimed), "confirmed", "1")
    h.cancel(root)
    h.stop(claimed)
    h.advance(RETENTION_MS - 1)
    again = h.admission(rerun_of=root, effect_root=root)
    assert h.rerun(ANN, again) == Admitted(again.job_id, replayed=False)
    claimed = h.take()
    h.settle(h.intend(claimed, "letter"), "refused")
    h.finish(claimed)
    h.advance(1)
    assert h.purge() == [root]
    assert effects(h) == {"mail", "letter"}
    h.outlive(again.job_id)
    assert left(h) == {}


def test_i1_effects_of_two_jobs_go_when_both_do(h: Harness) -> None:
    root = h.admit()
    claimed = h.take()
    h.settle(h.intend(claimed), "confirmed", "1")
    h.cancel(root)
    h.stop(claimed)
    again = h.admission(rerun_of=root, effect_root=root)
    h.rerun(ANN, again)
    h.finish(h.take())
    h.outlive(root, again.job_id)
    assert left(h) == {}


def test_g6_what_another_job_has_begun_stays_with_it(h: Harness) -> None:
    """An effect may name a job that is gone: who meets it then judges it by its root, as before."""
    root = h.admit()
    claimed = h.take()
    h.intend(claimed)
    h.cancel(root)
    h.stop(claimed)
    h.advance(RETENTION_MS - 1)
    again = h.admission(rerun_of=root, effect_root=root)
    h.rerun(ANN, again)
    h.outlive(root)
    h.advance(TIMEOUT_MS)
    met = h.begin(h.take())
    assert getattr(met, "state", None) == "unknown"


# -- what a key answers (B22) -----------------------------------------------------------------------------------


def single(h: Harness, *jobs: admission.Admission) -> list[Admitted | KeyTaken]:
    return [h.submit(job)[0] for job in jobs]


def unique(h: Harness, *jobs: admission.Admission) -> list[Any]:
    return [h.submit_unique(job) for job in jobs]


def bulk(h: Harness, *jobs: admission.Admission) -> list[Any]:
    try:
        return list(h.submit_all(*jobs))
    except KeyReused:
        return [KeyTaken()]


def together(h: Harness, *jobs: admission.Admission) -> list[Admitted | KeyTaken]:
    return h.submit(*jobs)


def joined(h: Harness, *jobs: admission.Admission) -> list[Any]:
    return [h.run(admission.admit_joined([job], admission.Trail()))[0] for job in jobs]


WAYS = pytest.mark.parametrize("submit", [single, bulk, together, unique, joined])


@WAYS
def test_b22_a_key_answers_for_its_job_until_the_horizon_is_over(h: Harness, submit: Any) -> None:
    job = everything(h, key="k")
    finished = h.job_row(job)["finished_at"]
    h.outlive(job)
    buried = Admitted(job, replayed=True, tombstone=Tombstone(job, "cancelled", "user", finished, h.now))
    before = h.snapshot()
    h.advance(HORIZON_MS - 1)
    assert submit(h, h.admission(key="k"), h.admission(key="k")) == [buried, buried]
    assert submit(h, h.admission(key="k", request="another")) == [KeyTaken()]
    assert h.snapshot() == before


@WAYS
def test_b22_after_the_horizon_there_is_a_new_job(h: Harness, submit: Any) -> None:
    job = completed(h, key="k")
    h.outlive(job)
    h.advance(HORIZON_MS)
    new, twice, another = h.admission(key="k"), h.admission(key="k"), h.admission(key="k", request="another")
    assert submit(h, new, twice) == [Admitted(new.job_id, replayed=False), Admitted(new.job_id, replayed=True)]
    assert submit(h, another) == [KeyTaken()]
    assert left(h) == {"job": 1, "job_input": 1, "task": 1, "queue_entry": 1, "submission": 1}


@pytest.mark.parametrize("policy", ["existing", "reject", "replace"])
def test_after_the_horizon_a_unique_key_is_looked_at_as_ever(h: Harness, policy: Any) -> None:
    gone = completed(h, key="k")
    h.outlive(gone)
    h.advance(HORIZON_MS)
    active = h.admission(unique="u")
    h.submit_unique(active)
    new = h.admission(key="k", unique="u", policy=policy)
    did = h.submit_unique(new)
    if policy == "existing":
        assert did == Admitted(active.job_id, replayed=True)
    elif policy == "replace":
        assert did == Admitted(new.job_id, replayed=False, replaced=active.job_id)
    assert {row["job_id"] for row in h.rows("submission")} == {
        "existing": {active.job_id}, "replace": {new.job_id}, "reject": set[str]()
    }[policy]  # fmt: skip


def test_every_key_of_a_job_answers(h: Harness) -> None:
    first = h.admission(unique="u", key="a")
    h.submit_unique(first)
    h.submit_unique(h.admission(unique="u", key="b"))
    h.finish(h.take())
    h.outlive(first.job_id)
    for key in ("a", "b"):
        (found,) = h.submit(h.admission(key=key, unique="u"))
        assert isinstance(found, Admitted)
        assert (found.job_id, found.tombstone is not None) == (first.job_id, True)


def test_expired_keys_go_the_oldest_first_and_no_others(h: Harness) -> None:
    for key in "abc":
        completed(h, key=key)
        h.purge(older_ms=0)
        h.advance(1_000)
    stands = h.admit(key="d")
    h.advance(HORIZON_MS - 3_001)
    assert h.run(retention.drop_expired(9)) == 0
    assert h.run(retention.expired()) == 0
    h.advance(2_001)
    assert h.run(retention.expired()) == 3
    assert h.run(retention.drop_expired(2)) == 2
    assert {row["key"] for row in h.rows("submission")} == {"c", "d"}
    assert [h.run(retention.drop_expired(2)) for _ in range(2)] == [1, 0]
    assert [row["job_id"] for row in h.rows("submission")] == [stands]


# -- who sees what is left --------------------------------------------------------------------------------------


def test_a_tombstone_is_its_owners(h: Harness) -> None:
    job, keyless = completed(h, key="k"), completed(h)
    finished = h.job_row(job)["finished_at"]
    h.outlive(job, keyless)
    assert h.run(status.tombstone(ANN, job)) == Tombstone(job, "completed", "succeeded", finished, h.now)
    assert h.run(status.unreachable(OPERATOR, ANN, job)) == Tombstone(job, "completed", "succeeded", finished, h.now)
    for scope in (BOB, STRANGER):
        assert h.run(status.unreachable(OPERATOR, scope, job)) is None
    assert h.run(status.unreachable(ANN, ANN, keyless)) is None
    h.advance(HORIZON_MS)
    assert h.run(status.tombstone(ANN, job)) is None


def test_a_rerun_of_what_is_gone_is_none(h: Harness) -> None:
    job = completed(h, key="k")
    again = h.admission(rerun_of=job, effect_root=job, key="j")
    h.outlive(job)
    rows: list[Row] = h.rows("submission")
    assert h.rerun(ANN, again) is None
    assert h.rows("submission") == rows
