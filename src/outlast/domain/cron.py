"""Due times by the wall clock of a zone, over its changes.

The package cronsim says which readings of a clock an expression means; which instants those are, if any, is decided here, so that
it holds for changes of any size and at any hour:

- A reading that the clock leaves out (summer time begins) moves to the end of the gap, once, so that no day is without its run.
  Where the hour field begins with `*` it is left out: the hours around it have their own runs.
- A reading that comes twice (summer time ends) counts the first time. Where the minute or the hour field begins with `*` it counts
  both times, so that what runs each half hour goes on doing so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from outlast.domain.errors import Invalid
from outlast.domain.payload import check_text

MAX_EXPRESSION: Final = 200
MAX_ZONE: Final = 100
_FIELDS: Final = ("minute", "hour", "day of the month", "month", "day of the week")
_VALUES: Final = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of month": "1 to 31, L for the last, LW for the last weekday",
    "month": "1 to 12 or JAN to DEC",
    "day of week": "0 to 7 or SUN to SAT (0, 7 and SUN are Sunday; SAT-SUN is 6-7, FRI-MON is FRI,SAT,SUN,MON), MON#2, 5L",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_MINUTE: Final = timedelta(minutes=1)
_LOOK_AHEAD: Final = [timedelta(minutes=15 * n) for n in range(1, 101)]  # no clock is set back by more than a day
_NO_ZONES: Final = ("localtime", "posixrules", "Factory")  # names of files beside the zones; the first differs from host to host


@dataclass(frozen=True, slots=True)
class Cron:
    """By the wall clock of `zone`: minute, hour, day of the month, month, day of the week. Needs the extra `schedules`.

    Over a change of the clock a reading that is left out runs at the end of the gap, and one that comes twice runs the first time;
    what runs each so many minutes or hours (`*`) goes by the time that passes. Invalid: an expression that cannot be read or never
    comes due, an unknown zone.
    """

    expression: str
    zone: str = field(default="UTC", kw_only=True)

    def __post_init__(self) -> None:
        check_text(self.expression, what="cron expression", limit=MAX_EXPRESSION)
        fields = self.expression.split()
        if len(fields) != len(_FIELDS):
            raise Invalid(f"A cron expression has five fields ({', '.join(_FIELDS)}), for example '0 2 * * *'.", pointers=("/expression",))
        object.__setattr__(self, "expression", " ".join(fields))
        zone_of(self.zone)
        if next(_readings(self.expression, datetime(2000, 1, 1)), None) is None:  # noqa: DTZ001 - a reading of a clock, in no zone
            raise _never()

    def next_after(self, after_ms: int) -> int:
        """The first due time after an instant, both in milliseconds since 1970."""
        zone = zone_of(self.zone)
        after = _EPOCH + after_ms * _MS
        minute, hour, *_ = self.expression.split()
        leaves_out, counts_twice = hour.startswith("*"), "*" in (minute[0], hour[0])
        start = after.astimezone(zone).replace(tzinfo=None)
        if counts_twice and zone is not UTC:
            start -= _set_back_soon(after, zone)
        second_time: datetime | None = None
        # The first instants of later readings are no earlier ones, nor are their second instants.
        for reading in _readings(self.expression, start):
            first, second = _instants(reading, zone)
            if first > second:
                if leaves_out:
                    continue
                first = second = _after_gap(reading, zone)
            if counts_twice and second_time is None and first <= after < second:
                second_time = second
            if first > after:
                return (min(first, second_time or first) - _EPOCH) // _MS
        raise _never()

    def latest(self, first_ms: int, until_ms: int, most: int) -> tuple[int, ...]:
        """Of a due time and those that follow it until an instant, the latest, at most so many; ascending."""
        span = 3_600_000
        while True:
            since = max(until_ms - span, first_ms)
            found = [first_ms] if since == first_ms else []
            due = self.next_after(since)
            while due <= until_ms:
                found.append(due)
                due = self.next_after(due)
            if len(found) >= most or since == first_ms:
                return tuple(found[-most:])
            span *= 4


def zone_of(name: str) -> tzinfo:
    """The zone of this name, by the rules that this machine has; Invalid for an unknown one."""
    check_text(name, what="time zone", limit=MAX_ZONE)
    found = UTC if name == "UTC" else _zone(name)
    if found is not None:
        return found
    if _zone("Europe/London") is None:
        words = "This machine has no time zone data, which zones other than UTC need: pip install tzdata."
        raise Invalid(words, code="tzdata_missing", pointers=("/zone",))
    words = "There is no time zone of that name; write one of the IANA list, for example 'Europe/Berlin'."
    raise Invalid(words, code="zone_unknown", pointers=("/zone",))


def _zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - `import outlast` stays quick

    if name in _NO_ZONES or name.startswith(("posix/", "right/")):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _readings(expression: str, after: datetime) -> Iterator[datetime]:
    """The readings of a clock, later than one, that an expression means; none if it never comes due."""
    try:
        from cronsim import CronSim, CronSimError  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise Invalid("Cron needs the package cronsim: pip install 'outlast[schedules]'.", code="cronsim_missing") from None
    try:
        return iter(CronSim(expression, after))
    except CronSimError as error:
        said = str(error)
    named = said.removeprefix("Bad ").replace("-", " ")
    if named == "day of month" and _reads(expression):
        raise _never()
    raise Invalid(f"The field {named} of the cron expression cannot be read: {_may_stand(named)}.", pointers=("/expression",))


def _may_stand(named: str) -> str:
    """What a field takes, in words."""
    values = _VALUES.get(named)
    said = "" if values is None else f"{values}, "
    return f"{said}* for all, lists (1,3), ranges upwards (1-3), and steps (*/5, 1-9/2)"


def _reads(expression: str) -> bool:
    """Whether it can be read where each month has 31 days: then only the days that it names are missing in its months."""
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - an extra

    minute, hour, day, _, weekday = expression.split()
    try:
        CronSim(f"{minute} {hour} {day} * {weekday}", datetime(2000, 1, 1))  # noqa: DTZ001 - a reading of a clock, in no zone
    except CronSimError:
        return False
    return True


def _instants(reading: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """When the clock shows this, the first and the second time; the same where it does so once, the first later in a gap."""
    early = reading.replace(tzinfo=zone)
    return early.astimezone(UTC), early.replace(fold=1).astimezone(UTC)


def _after_gap(reading: datetime, zone: tzinfo) -> datetime:
    """The instant at which the clock was set forward over a reading."""
    first, second = _instants(reading, zone)
    while first > second:
        reading += _MINUTE
        first, second = _instants(reading, zone)
    return first


def _set_back_soon(after: datetime, zone: tzinfo) -> timedelta:
    """By how much the clock will be set back within a day: so much earlier readings come again."""
    now = after.astimezone(zone).utcoffset() or timedelta()
    return max(now - min((after + ahead).astimezone(zone).utcoffset() or timedelta() for ahead in _LOOK_AHEAD), timedelta())


def _never() -> Invalid:
    return Invalid("This cron expression never comes due: no month that it names has such a day.", pointers=("/expression",))
