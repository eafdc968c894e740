"""Everything that may end a job, with each other, where one step is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import LAST_OF_JOB, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", LAST_OF_JOB, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
