"""One active job for a unique key, whoever asks for it, ends it or works on it meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import UNIQUE, Pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("pair", UNIQUE, ids=lambda pair: f"{pair.scene}: {pair.one.name} x {pair.other.name}")
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
