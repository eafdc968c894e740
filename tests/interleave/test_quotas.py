"""A quota is neither overshot nor refused while there is room, whoever asks for the last place or ends a job meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import QUOTAS, Pair

pytestmark = [pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", QUOTAS, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
