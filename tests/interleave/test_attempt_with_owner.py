"""What ends an attempt, with the owner's decisions and the sweep of open questions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import ATTEMPT_WITH_OWNER, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", ATTEMPT_WITH_OWNER, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
