"""Concurrency keys: slots taken with the lease and freed with it, on every path, once; whose turn it is; rests (T5, C8)."""

from __future__ import annotations

from contract.harness import ACCEPTED, Harness
from contract.plans import a
from outlast.domain.limits import Limit
from outlast.domain.work import Settled

ONE = Limit("k", 1)
TWO = Limit("k", 2)


def test_a_keyed_task_is_claimed_by_the_keyed_claim_alone(h: Harness) -> None:
    job = h.admit(a("one", limit=TWO))
    assert h.claim() == []
    claimed = h.take_keyed()
    assert claimed.slot_key == "k"
    assert h.held() == [2]
    assert h.claim_keyed() == []
    assert h.finish(claimed) == Settled(ACCEPTED)
    assert h.held() == []
    assert h.view(job).state == "completed"


def test_no_more_than_its_slots(h: Harness) -> None:
    for _ in range(5):
        h.admit(a("one", limit=TWO))
    assert len(h.claim_keyed()) == 2
    assert h.claim_keyed() == []
