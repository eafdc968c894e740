"""An operator's replay, beside whatever else moves the job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import REPLAY, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("pair", REPLAY, ids=lambda pair: f"{pair.scene}: {pair.one.name} x {pair.other.name}")
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
