"""As behind a transaction pooler, where each operation is one transaction, its follow-up reads included."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from interleave import acts
from interleave.explorer import Explorer
from interleave.pairs import ADMISSION, Pair

pytestmark = pytest.mark.timeout(180)

_HOLDERS = (acts.claim(10, "v", 4, 11), acts.renew(0), acts.hand_back(0), acts.step(0), acts.finish(0), acts.retry_lost(0))
_OTHERS = (acts.cancel(), acts.finish(1), acts.fail(0))
PAIRS = (*ADMISSION[:8], *(Pair("grand", one, other) for one in _HOLDERS for other in _OTHERS))


@pytest.fixture(autouse=True)
def pooled(explorer: Explorer) -> Iterator[None]:
    explorer.pooled(on=True)
    yield
    explorer.pooled(on=False)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
