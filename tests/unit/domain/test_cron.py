"""Due times over the changes of the clock: written out for three zones, compared with cronsim's own, and with counting minutes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast import Cron, Invalid

NEW_YORK, HELSINKI, LORD_HOWE = "America/New_York", "Europe/Helsinki", "Australia/Lord_Howe"
ODD = (LORD_HOWE, "Asia/Beirut", "Africa/Casablanca", "Pacific/Chatham", "America/Santiago", "Africa/Cairo", "UTC")
"""Changes of half an hour, at midnight, four times a year, at a quarter to, in the southern half, and none."""


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def due_times(expression: str, zone: str, start: str, end: str) -> list[str]:
    """All due times between two instants, as the zone's clock shows them, with its offset."""
    rule, shown, at = Cron(expression, zone=zone), ZoneInfo(zone), ms(start)
    found: list[str] = []
    while (at := rule.next_after(at)) < ms(end):
        found.append(datetime.fromtimestamp(at / 1000, shown).isoformat(timespec="minutes"))
        assert len(found) < 200, "it has no end"
    return found


# -- written out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "start", "end", "midnight", "half_past_two"),
    [
        # Summer time begins: the clock goes from 02:00 to 03:00.
        (NEW_YORK, "2026-03-07T12:00-05:00", "2026-03-09T12:00-04:00", ("03-08T00:00-05:00", "03-09T00:00-04:00"),
         ("03-08T03:00-04:00", "03-09T02:30-04:00")),
        # It ends: from 02:00 back to 01:00.
        (NEW_YORK, "2026-10-31T12:00-04:00", "2026-11-02T12:00-05:00", ("11-01T00:00-04:00", "11-02T00:00-05:00"),
         ("11-01T02:30-05:00", "11-02T02:30-05:00")),
        # 03:00 to 04:00, and 04:00 back to 03:00.
        (HELSINKI, "2026-03-28T12:00+02:00", "2026-03-30T12:00+03:00", ("03-29T00:00+02:00", "03-30T00:00+03:00"),
         ("03-29T02:30+02:00", "03-30T02:30+03:00")),
        (HELSINKI, "2026-10-24T12:00+03:00", "2026-10-26T12:00+02:00", ("10-25T00:00+03:00", "10-26T00:00+02:00"),
         ("10-25T02:30+03:00", "10-26T02:30+02:00")),
        # 02:00 to 02:30, and 02:00 back to 01:30.
        (LORD_HOWE, "2026-10-03T12:00+10:30", "2026-10-05T12:00+11:00", ("10-04T00:00+10:30", "10-05T00:00+11:00"),
         ("10-04T02:30+11:00", "10-05T02:30+11:00")),
        (LORD_HOWE, "2026-04-04T12:00+11:00", "2026-04-06T12:00+10:30", ("04-05T00:00+11:00", "04-06T00:00+10:30"),
         ("04-05T02:30+10:30", "04-06T02:30+10:30")),
    ],
)  # fmt: skip
def test_b27_each_day_of_a_change_has_its_run(
    zone: str, start: str, end: str, midnight: tuple[str, ...], half_past_two: tuple[str, ...]
) -> None:
    assert [due[5:] for due in due_times("0 0 * * *", zone, start, end)] == list(midnight)
    assert [due[5:] for due in due_times("30 2 * * *", zone, start, end)] == list(half_past_two)


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        (NEW_YORK, "2026-03-08T01:00-05:00", ["01:30-05:00", "03:00-04:00", "03:30-04:00", "04:00-04:00"]),
        (NEW_YORK, "2026-11-01T00:30-04:00",
         ["01:00-04:00", "01:30-04:00", "01:00-05:00", "01:30-05:00", "02:00-05:00"]),
        (HELSINKI, "2026-03-29T02:00+02:00", ["02:30+02:00", "04:00+03:00", "04:30+03:00"]),
        (HELSINKI, "2026-10-25T02:30+03:00", ["03:00+03:00", "03:30+03:00", "03:00+02:00", "03:30+02:00", "04:00+02:00"]),
        (LORD_HOWE, "2026-10-04T01:00+10:30", ["01:30+10:30", "02:30+11:00", "03:00+11:00"]),
        (LORD_HOWE, "2026-04-05T01:00+11:00", ["01:30+11:00", "01:30+10:30", "02:00+10:30", "02:30+10:30"]),
    ],
)  # fmt: skip
def test_b27_what_runs_each_half_hour_does_so_whatever_the_clock_shows(zone: str, start: str, expected: list[str]) -> None:
    rule, at = Cron("*/30 * * * *", zone=zone), ms(start)
    for shown in expected:
        following = rule.next_after(at)
        assert following - at == 1_800_000
        at = following
        assert datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).isoformat(timespec="minutes").partition("T")[2] == shown


def test_b27_two_missing_readings_move_to_one_run() -> None:
    assert due_times("0,30 2 * * *", NEW_YORK, "2026-03-08T00:00-05:00", "2026-03-08T12:00-04:00") == ["2026-03-08T03:00-04:00"]
    assert due_times("*/15 2 * * *", NEW_YORK, "2026-03-08T00:00-05:00", "2026-03-08T12:00-04:00") == ["2026-03-08T03:00-04:00"]


def test_b27_a_fixed_reading_that_comes_twice_runs_the_first_time() -> None:
    expected = ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]
    assert due_times("30 1 * * *", NEW_YORK, "2026-10-31T12:00-04:00", "2026-11-02T12:00-05:00") == expected
    # Also where the count begins between the two.
    assert due_times("30 1 * * *", NEW_YORK, "2026-11-01T01:10-05:00", "2026-11-02T12:00-05:00") == expected[1:]
    assert due_times("45 1 * * *", LORD_HOWE, "2026-04-05T01:50+11:00", "2026-04-06T12:00+10:30") == ["2026-04-06T01:45+10:30"]


def test_b27_a_whole_day_that_is_left_out_has_one_run() -> None:
    """Samoa had no 30 December 2011."""
    found = due_times("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00-10:00", "2012-01-01T00:00+14:00")
    assert found == ["2011-12-29T09:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T09:00+14:00"]


def test_the_zone_of_the_process_is_of_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[tuple[str, ...]] = set()
    for here in ("America/New_York", "Europe/London", "Asia/Kolkata"):
        monkeypatch.setenv("TZ", here)
        time.tzset()
        found.add(tuple(due_times("30 2 * * *", HELSINKI, "2026-03-28T00:00+00:00", "2026-03-31T00:00+00:00")))
    monkeypatch.undo()
    time.tzset()
    assert len(found) == 1
    assert os.environ.get("TZ") is None or time.tzname


# -- compared -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", [NEW_YORK, HELSINKI, "UTC"])
@pytest.mark.parametrize(
    "expression", ["0 0 * * *", "30 2 * * *", "*/30 * * * *", "15 */2 * * *", "0 9 * * MON", "30 3 L * *", "0 1 * 3,10 SUN#4"]
)
def test_it_agrees_with_cronsim_where_that_knows_the_change(zone: str, expression: str) -> None:
    rule = Cron(expression, zone=zone)
    for month in (3, 10, 11):
        at = datetime(2026, month, 1, tzinfo=UTC)
        theirs = CronSim(expression, at.astimezone(ZoneInfo(zone)))
        mine = round(at.timestamp() * 1000)
        for _ in range(40):
            mine = rule.next_after(mine)
            assert mine == round(next(theirs).timestamp() * 1000)


def matches(expression: str, reading: datetime) -> bool:
    """Whether a reading is one of an expression of numbers, lists and steps."""

    def field(text: str, value: int) -> bool:
        if text.startswith("*"):
            return value % int(text[2:] or 1) == 0
        return value in map(int, text.split(","))

    minute, hour, *_ = expression.split()
    return field(minute, reading.minute) and field(hour, reading.hour)


def counted(expression: str, zone: str, start: datetime, minutes: int) -> Iterator[datetime]:
    """The due times, found by looking at the clock each minute."""
    minute, hour, *_ = expression.split()
    shown = ZoneInfo(zone)
    before = start.astimezone(shown)
    for n in range(1, minutes):
        at = start + timedelta(minutes=n)
        here = at.astimezone(shown)
        passed = before.replace(tzinfo=None) + timedelta(minutes=1)
        left_out = False
        while passed < here.replace(tzinfo=None):
            left_out = left_out or matches(expression, passed)
            passed += timedelta(minutes=1)
        twice = minute.startswith("*") or hour.startswith("*")
        if (left_out and not hour.startswith("*")) or (matches(expression, here) and (twice or not here.fold)):
            yield at
        before = here


CHANGES = {
    LORD_HOWE: ("2026-04-04", "2026-10-03"),
    "Asia/Beirut": ("2026-03-28", "2026-10-24"),
    "Africa/Casablanca": ("2026-02-14", "2026-03-21"),
    "Pacific/Chatham": ("2026-04-04", "2026-09-26"),
    "America/Santiago": ("2026-04-04", "2026-09-05"),
    "Africa/Cairo": ("2026-04-23", "2026-10-29"),
    "UTC": ("2026-03-08", "2026-11-01"),
}
MINUTES = st.sampled_from(["*", "*/7", "*/30", "0", "30", "15,45", "0,10,59"])
HOURS = st.sampled_from(["*", "*/2", "0", "1", "2", "3", "0,1,2", "1,23"])


@settings(max_examples=60, deadline=None)
@given(minute=MINUTES, hour=HOURS, zone=st.sampled_from(ODD), which=st.integers(0, 1), shift=st.integers(0, 1_000))
def test_it_agrees_with_who_looks_at_the_clock_each_minute(minute: str, hour: str, zone: str, which: int, shift: int) -> None:
    start = datetime.fromisoformat(f"{CHANGES[zone][which]}T06:00+00:00") + timedelta(minutes=shift)
    expression = f"{minute} {hour} * * *"
    rule = Cron(expression, zone=zone)
    at = round(start.timestamp() * 1000)
    for expected in counted(expression, zone, start, 2_400):
        at = rule.next_after(at)
        assert at == round(expected.timestamp() * 1000)


@settings(max_examples=40, deadline=None)
@given(minute=MINUTES, hour=HOURS, zone=st.sampled_from(ODD), most=st.integers(1, 50), back=st.integers(0, 20_000))
def test_the_latest_of_many_are_those_that_counting_gives(minute: str, hour: str, zone: str, most: int, back: int) -> None:
    rule = Cron(f"{minute} {hour} * * *", zone=zone)
    until = ms(f"{CHANGES[zone][0]}T20:17+00:00")
    first = rule.next_after(until - back * 60_000)
    every, at = [], first
    while at <= until:
        every.append(at)
        at = rule.next_after(at)
    assert list(rule.latest(first, max(until, first), most)) == (every[-most:] or [first])


# -- refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "59 23 31 11 */2", "0 0 */5 2 MON#5"],
)
def test_an_expression_that_never_comes_due_is_refused(expression: str) -> None:
    with pytest.raises(Invalid, match="never comes due") as refused:
        Cron(expression)
    assert (refused.value.code, refused.value.pointers) == ("invalid", ("/expression",))


def test_a_day_that_comes_every_few_years_is_none_of_them() -> None:
    rule = Cron("0 12 29 2 *")
    assert rule.next_after(ms("2096-03-01T00:00+00:00")) == ms("2104-02-29T12:00+00:00")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "empty"),
        ("* * * *", "five fields"),
        ("0 * * * * *", "five fields"),
        ("@daily", "five fields"),
        ("60 * * * *", "field minute of the cron expression cannot be read: 0 to 59"),
        ("* 24 * * *", "field hour of the cron expression cannot be read: 0 to 23"),
        ("* * 32 * *", "field day of month"),
        ("* * 0 * *", "field day of month"),
        ("* * * 13 *", "field month"),
        ("* * * * 8", "0 to 7 or SUN to SAT"),
        ("* * * * FRI-MON", "FRI-MON is FRI,SAT,SUN,MON"),
        ("* * * * MON#6", "field day of week"),
        ("*/0 * * * *", "field minute"),
        ("- * * * *", "field minute"),
        ("5-1 * * * *", "field minute"),
        ("\u0661 * * * *", "field minute"),
        ("x" * 300, "longer than"),
        ("0 0 * * *\n", "line breaks"),
        (None, "text"),
        (7, "text"),
    ],
)
def test_an_expression_that_cannot_be_read_is_refused(expression: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said) as refused:
        Cron(expression)
    assert refused.value.code == "invalid"


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe", "localtime", "right/UTC", "CEST+1\x00", 7, None]
)
def test_an_unknown_zone_is_refused(zone: Any) -> None:
    with pytest.raises(Invalid) as refused:
        Cron("0 0 * * *", zone=zone)
    no_name = zone in ("", "CEST+1\x00", 7, None)
    assert refused.value.code == ("invalid" if no_name else "zone_unknown")


def test_a_machine_without_zone_data_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import zoneinfo  # noqa: PLC0415 - its data are taken away

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)

    assert Cron("0 0 * * *").zone == "UTC", "which needs none"
    with pytest.raises(Invalid, match="pip install tzdata"):
        Cron("0 0 * * *", zone="Europe/Berlin")


def missing(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfoNotFoundError  # noqa: PLC0415 - beside what is taken away

    raise ZoneInfoNotFoundError(name)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cronsim", None)

    with pytest.raises(Invalid, match=r"outlast\[schedules\]"):
        Cron("0 0 * * *")


def test_it_is_a_value() -> None:
    assert Cron(" 0  2 * * * ") == Cron("0 2 * * *", zone="UTC")
    assert hash(Cron("0 2 * * *")) == hash(Cron("0 2 * * *"))
    with pytest.raises(AttributeError):
        Cron("0 2 * * *").zone = "x"  # type: ignore[misc]
