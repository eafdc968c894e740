"""Signals are heard once, and never between the start of a process and its being noted."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from outlast.demo.ending import SIGNALS, Ending, Stopped


@pytest.fixture
def ending() -> Iterator[Ending]:
    before = [(number, signal.getsignal(number)) for number in SIGNALS]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    made = Ending()
    made.install()
    yield made
    for number, handler in before:
        signal.signal(number, handler)


def test_a_signal_stops_once_and_what_ends_things_then_is_not_disturbed(ending: Ending) -> None:
    with pytest.raises(Stopped):
        signal.raise_signal(signal.SIGTERM)
    ended: list[str] = []
    with ending.held():
        signal.raise_signal(signal.SIGINT)
        ended.append("all")
    signal.raise_signal(signal.SIGTERM)
    assert ended == ["all"]


def test_a_signal_waits_for_what_is_held(ending: Ending) -> None:
    noted: list[str] = []

    def start() -> None:
        with ending.held():
            signal.raise_signal(signal.SIGTERM)
            noted.append("started")

    with pytest.raises(Stopped):
        start()
    assert noted == ["started"]


def test_what_was_ignored_stays_ignored(ending: Ending) -> None:
    signal.raise_signal(signal.SIGHUP)
    with ending.held():
        signal.raise_signal(signal.SIGHUP)
