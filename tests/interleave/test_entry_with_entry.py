"""What claims, keeps and lets go of an entry, with itself: no job is locked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import ENTRY_WITH_ENTRY, Pair

pytestmark = [pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", ENTRY_WITH_ENTRY, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
