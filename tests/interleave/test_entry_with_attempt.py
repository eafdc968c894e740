"""What moves an entry, with what ends an attempt and so locks the job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import ENTRY_WITH_ATTEMPT, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", ENTRY_WITH_ATTEMPT, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
