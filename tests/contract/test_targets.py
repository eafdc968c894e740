"""Attach, park, takeover, and the owner's own attach (STATES 8): one guard each, and the job's version moves once."""

from __future__ import annotations

from typing import Any

import pytest

from contract.harness import BOB, RETENTION_MS, STRANGER, Harness, worker_of
from contract.plans import HANDLER, a
from outlast.domain.model import TargetRef
from outlast.domain.work import Claimed, Control, Finished, Settled, Verdict
from outlast.store.program import Access, Operation, Program
from outlast.store.programs import targets

FIRST = TargetRef("d", "1")


def attach(h: Harness, claimed: Claimed, *, expected: str = "1", version: str = "2") -> int | None:
    """As the worker does it, without the host's own rows."""
    result = Finished(claimed.ref, worker_of(claimed), '"made"')

    def program() -> Program[int | None]:
        opened = yield from targets.attach_last(result, expected=expected, version=version, retention_ms=RETENTION_MS)
        if opened is None:
            raise LookupError
        return opened

    try:
        return h.run(Operation("attach", Access.TRANSACTION, program))
    except LookupError:
        return None


def apply(h: Harness, job: str, no: int, *, version: str = "7", owner: str = "ann") -> int | None:
    def program() -> Program[int | None]:
        return (yield from targets.apply_last("acme", owner, job, no, version=version))

    return h.run(Operation("apply", Access.TRANSACTION, program))


def held(h: Harness, *more: Any) -> Claimed:
    h.admit(a("one"), *more, target=FIRST)
    return h.take()


def test_an_attach_completes_the_task_and_moves_the_version_once(h: Harness) -> None:
    claimed = held(h, a("two"))
    job = claimed.ref.job_id
    assert attach(h, claimed) == 0
    view = h.view(job)
    assert (view.target, view.attach, view.version) == (TargetRef("d", "2"), "attached", 2)
    assert h.tasks(job)[0].state == "completed"


def test_an_attach_to_another_version_leaves_everything_as_it_was(h: Harness) -> None:
    claimed = held(h)
    before = h.snapshot()
    with pytest.raises(targets.TargetMoved):
        attach(h, claimed, expected="0")
    assert h.snapshot() == before


def test_an_attach_after_a_takeover_leaves_everything_as_it_was(h: Harness) -> None:
    claimed = held(h)
    assert h.takeover(claimed.ref.job_id) is Control.DONE
    before = h.snapshot()
    with pytest.raises(targets.TargetMoved):
        attach(h, claimed)
    assert h.snapshot() == before


def test_a_parked_result_is_kept_and_its_task_completed(h: Harness) -> None:
    claimed = held(h)
    assert h.park(claimed) == Settled(Verdict.ACCEPTED)
    view = h.view(claimed.ref.job_id)
    assert (view.state, view.attach, view.target) == ("completed", "parked", FIRST)
    assert h.tasks(claimed.ref.job_id)[0].parked
    assert h.park(claimed).verdict is Verdict.ACCEPTED, "a repeat after an unknown commit"


def test_a_stale_holder_neither_attaches_nor_parks(h: Harness) -> None:
    claimed = held(h)
    h.hand_back(claimed)
    h.take(worker="new")
    assert attach(h, claimed) is None, "its transaction is rolled back"
    assert h.park(claimed).verdict is Verdict.STALE
    assert h.view(claimed.ref.job_id).attach == "none"


def test_a_takeover_is_the_owners_by_version_and_once(h: Harness) -> None:
    job = held(h).ref.job_id
    for scope in (BOB, STRANGER):
        assert h.takeover(job, scope=scope) is Control.NOT_FOUND
    assert h.takeover(job, version=9) is Control.STALE_VERSION
    assert h.takeover(job, version=1) is Control.DONE
    assert h.view(job).version == 2
    assert h.takeover(job, version=1) is Control.REPEATED
    assert h.view(job).version == 2
    plain = h.admit()
    assert h.takeover(plain) is Control.NO_TARGET


def test_a_takeover_counts_after_the_end_too(h: Harness) -> None:
    job = held(h).ref.job_id
    h.cancel(job)
    assert h.takeover(job) is Control.DONE
    assert h.view(job).taken_over_at_ms is not None


def test_the_owner_applies_once(h: Harness) -> None:
    claimed = held(h)
    h.park(claimed)
    job = claimed.ref.job_id
    version = h.view(job).version
    assert apply(h, job, 0, owner="bob") is None
    assert apply(h, job, 5) is None
    assert apply(h, job, 0) == version + 1
    view = h.view(job)
    assert (view.attach, view.target) == ("attached", TargetRef("d", "7"))
    assert apply(h, job, 0) is None
    assert h.run(targets.nothing_parked("acme", "ann", job, 0)) is True
    assert h.run(targets.parked("acme", "ann", job, 0)) is None


def test_a_parked_result_is_its_owners_alone(h: Harness) -> None:
    claimed = held(h)
    h.park(claimed, '"mine"')
    job = claimed.ref.job_id
    assert h.run(targets.parked("acme", "ann", job, 0)) == ('"mine"', HANDLER)
    for tenant, owner in (("acme", "bob"), ("elsewhere", "ann")):
        assert h.run(targets.parked(tenant, owner, job, 0)) is None
        assert h.run(targets.nothing_parked(tenant, owner, job, 0)) is True
