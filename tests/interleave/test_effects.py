"""The effect ledger: claims, reports, owners and sweeps that meet at one effect."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import EFFECTS, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", EFFECTS, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
