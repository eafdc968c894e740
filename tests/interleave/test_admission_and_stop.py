"""How a job comes into being, and how what was cancelled comes to rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import ADMISSION, AFTER_CANCEL, Pair

pytestmark = [pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", [*ADMISSION, *AFTER_CANCEL], ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
