"""A pause holds for every claim that begins after it, and two operators at once leave one pause with its record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave.pairs import QUEUES, Pair

pytestmark = [pytest.mark.timeout(180)]


@pytest.mark.parametrize("pair", QUEUES, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
