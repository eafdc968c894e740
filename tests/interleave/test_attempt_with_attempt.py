"""What ends an attempt, with itself: siblings that end together, and one task that ends twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import ATTEMPT_WITH_ATTEMPT, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", ATTEMPT_WITH_ATTEMPT, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
