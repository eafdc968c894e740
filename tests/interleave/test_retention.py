"""Purge, the end of keys, and the deletion of a person's jobs, with each other and with whatever may come between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave import acts
from interleave.pairs import FORGETTING, RETENTION, Pair
from interleave.test_targets import apply, takeover

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

OF_TARGETS = tuple(Pair("target_ended", acts.purge(), other) for other in (takeover(), apply(2)))


@pytest.mark.parametrize("pair", [*RETENTION, *FORGETTING, *OF_TARGETS], ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
