"""The rehearsal of a failover, small: it fails when something acknowledged is lost."""

from __future__ import annotations

import pytest

from rehearsals.failover import rehearse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]


def test_nothing_acknowledged_is_lost_when_the_primary_dies() -> None:
    figures = rehearse(seconds=1.0, clients=3, say=lambda _: None)
    before = sum(moment <= figures.killed_at for moment in figures.acknowledged.values())
    assert 0 < before < len(figures.acknowledged)  # on both sides of it
    assert figures.acknowledged.keys() <= figures.finished.keys()
    assert figures.lines()
