"""Concurrency keys: two claims meet, and a claim meets what frees a slot, keeps it, or lets its key rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from interleave import acts
from interleave.explorer import Explorer
from interleave.pairs import LIMITS, Pair

pytestmark = [pytest.mark.timeout(180)]

POOLED = (
    Pair("keyed_new", acts.claim_keyed(10, "u", 0, 1), acts.claim_keyed(1, "v", 0, 1, "slot k 1", "slot k 2")),
    Pair("keyed", acts.claim_keyed(10, "u", 1, 2, "slot k 1"), acts.hand_back(0)),
)


@pytest.mark.parametrize("pair", LIMITS, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)


@pytest.fixture
def pooled(explorer: Explorer) -> Iterator[None]:
    explorer.pooled(on=True)
    yield
    explorer.pooled(on=False)


@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize("pair", POOLED, ids=lambda pair: pair.name)
def test_every_order_as_behind_a_pooler(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
