"""A short run of what `make powerloss` does at length, and that it finds what it is for."""

from __future__ import annotations

from random import Random

import pytest

from powerloss.cuts import cut
from powerloss.disk import Disk
from powerloss.history import Linked, Synced, Truncated, Unlinked, Written
from powerloss.run import MISTAKES, cut_mistaken, recorded

pytest.importorskip("apsw", reason="POWER LOSS IS NOT TESTED: apsw is not installed")

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_nothing_acknowledged_is_lost_with_the_power(journal: str) -> None:
    history = recorded(journal, 1)
    assert history.journal == journal
    report = cut(history, seed=1, images=1)
    assert report.clean, "\n".join(report.examples)
    assert report.acknowledged > 10
    assert report.distinct > 50


@pytest.mark.parametrize(("journal", "mistake"), MISTAKES)
def test_a_store_that_is_wrong_on_purpose_is_found(journal: str, mistake: str) -> None:
    assert cut_mistaken(journal, mistake, seed=1).lost


def test_the_same_workload_writes_the_same() -> None:
    """So that a seed names an image."""
    assert recorded("wal", 1) == recorded("wal", 1)


def test_what_was_not_synced_may_be_there_or_not() -> None:
    disk = Disk("a", b"0" * 1024)
    for event in (Written(0, 0, b"1" * 1024), Synced(0, folder=False), Written(0, 512, b"2" * 1024), Truncated(0, 100)):
        disk.apply(event)
    chance = Random(1)
    assert disk.image("dropped", chance) == {"a": b"1" * 1024}
    assert disk.image("kept", chance) == {"a": b"1" * 100}
    drawn = {disk.image("drawn", chance)["a"] for _ in range(300)}
    assert b"1" * 512 + b"2" * 1024 in drawn
    assert b"1" * 512 + b"2" * 512 in drawn  # torn
    assert b"1" * 1024 + b"2" * 512 in drawn
    assert b"1" * 100 in drawn


def test_a_name_is_durable_only_with_its_folder() -> None:
    disk = Disk("a", b"")
    for event in (Linked(1, "j"), Written(1, 0, b"x"), Synced(1, folder=True), Unlinked("j", synced=False)):
        disk.apply(event)
    assert disk.image("dropped", Random(1)) == {"a": b"", "j": b"x"}
    assert disk.image("kept", Random(1)) == {"a": b""}
    disk.apply(Unlinked("a", synced=True))
    assert disk.image("dropped", Random(1)) == {}
