"""One job for each due time, however many schedulers fire it, and whatever the owner does with the schedule meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import SCHEDULES, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("pair", SCHEDULES, ids=lambda pair: f"{pair.scene}: {pair.one.name} x {pair.other.name}")
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
