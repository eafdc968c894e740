"""Intervals, and which due times become jobs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlast import Cron, Every, Invalid
from outlast.domain.schedules import check_catch_up, firing, next_due, read, shown_catch_up, stored, words

MADE = 1_800_000_000_123
MINUTE, HOUR = 60_000, 3_600_000


@pytest.mark.parametrize("seconds", [0, 0.999, -1, float("nan"), float("inf"), 1e12, True, "60", None])
def test_an_interval_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(Invalid) as refused:
        Every(seconds)
    assert (refused.value.code, refused.value.pointers) == ("invalid", ("/seconds",))


@given(interval=st.floats(1, 1e6), passed=st.integers(0, 10**12))
def test_an_interval_counts_from_when_it_was_made(interval: float, passed: int) -> None:
    rule = Every(interval)
    due = next_due(rule, MADE + passed, anchor_ms=MADE)
    assert (due - MADE) % rule.ms == 0
    assert 0 < due - (MADE + passed) <= rule.ms


def test_a_clock_that_was_set_back_waits_for_the_first_due_time() -> None:
    assert next_due(Every(60), MADE - HOUR, anchor_ms=MADE) == MADE + MINUTE


@given(
    interval=st.integers(1, 5_000),
    first=st.integers(1, 20),
    late=st.integers(0, 10**8),
    catch_up=st.integers(0, 100),
)
def test_of_what_was_missed_the_latest_are_made_up_for(interval: int, first: int, late: int, catch_up: int) -> None:
    rule = Every(interval)
    start = MADE + first * rule.ms
    now = start + late
    decided = firing(rule, next_ms=start, now_ms=now, anchor_ms=MADE, catch_up=catch_up)
    assert decided.next_ms == next_due(rule, now, anchor_ms=MADE)
    last = decided.next_ms - rule.ms
    if catch_up == 0:
        assert decided.due == ((last,) if now - last <= MINUTE else ())
        return
    missed = (last - start) // rule.ms + 1
    assert decided.due == tuple(last - n * rule.ms for n in reversed(range(min(missed, catch_up))))


def test_a_year_of_missed_minutes_is_no_more_work_than_a_day() -> None:
    decided = firing(Cron("* * * * *"), next_ms=MADE // MINUTE * MINUTE, now_ms=MADE + 365 * 24 * HOUR, anchor_ms=MADE, catch_up=100)
    assert len(decided.due) == 100
    assert decided.due[-1] + MINUTE == decided.next_ms


def test_a_due_time_off_the_rule_is_fired_all_the_same() -> None:
    """As the rules of a zone may be other ones by now than when it was computed."""
    for rule in (Cron("0 2 * * *"), Every(HOUR / 1000)):
        decided = firing(rule, next_ms=MADE + 61_001, now_ms=MADE + 61_002, anchor_ms=MADE, catch_up=1)
        assert decided.due == (MADE + 61_001,)
        assert decided.next_ms > MADE + 61_002


@pytest.mark.parametrize(("given", "number"), [("skip", 0), ("one", 1), (1, 1), (2, 2), (100, 100)])
def test_a_policy_is_kept_as_a_number(given: Any, number: int) -> None:
    assert check_catch_up(given) == number
    assert shown_catch_up(number) == ("one" if given == 1 else given)


@pytest.mark.parametrize("given", [0, -1, 101, 1.5, True, "all", "", None])
def test_a_policy_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(Invalid, match="catch_up"):
        check_catch_up(given)


@pytest.mark.parametrize("rule", [Cron("0 2 * * MON", zone="Europe/Berlin"), Every(90), Every(1.5)])
def test_a_rule_is_read_as_it_was_stored(rule: Any) -> None:
    assert read(stored(rule)) == rule


@pytest.mark.parametrize(
    "text", ["{}", "[]", "3", '{"every":"60"}', '{"cron":"0 2 * * *"}', '{"every":0}', '{"cron":"x","zone":"UTC"}', "{"]
)
def test_a_rule_that_this_version_does_not_know_is_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        read(text)


def test_a_rule_has_words() -> None:
    assert words(stored(Cron("0 2 * * *", zone="Europe/Berlin"))) == "0 2 * * * (Europe/Berlin)"
    assert words(stored(Every(90))) == "every 90 s"
    assert words('{"moon":"full"}') == "unknown"
