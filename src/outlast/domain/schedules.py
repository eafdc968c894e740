"""When a schedule comes due, and which of its due times become jobs. Pure: instants come from the store's clock, in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from outlast.domain.cron import Cron
from outlast.domain.defaults import LONGEST
from outlast.domain.errors import Invalid
from outlast.domain.payload import JSON, dump, parse

SHORTEST: Final = 1.0
"""Seconds between two due times, at least."""
MOST_MISSED: Final = 100
"""Missed due times that are made up for at once, at most."""
ON_TIME_MS: Final = 60_000
"""A due time that is found so late, at most, was not missed: a worker was started anew, say."""
DECISION_HOLDS_MS: Final = 30_000
"""What was decided about due times is written so much later, at most: a process may have been frozen in between."""
MAX_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Every:
    """Each `seconds` (1 or more) from when the schedule was made, however long the jobs take, and whatever clocks are set to."""

    seconds: float

    def __post_init__(self) -> None:
        given = self.seconds
        if isinstance(given, bool) or not isinstance(given, int | float) or not SHORTEST <= given <= LONGEST:
            words = f"Every takes a finite number of seconds from {SHORTEST:.0f} to {LONGEST} (ten years)."
            raise Invalid(words, pointers=("/seconds",))

    @property
    def ms(self) -> int:
        """The interval in milliseconds."""
        return round(self.seconds * 1000)


Rule: TypeAlias = Cron | Every
CatchUp: TypeAlias = Literal["skip", "one"] | int


@dataclass(frozen=True, slots=True)
class Firing:
    """The due times that become jobs, in order, and the next one to wait for. `until_ms`: not written later than this."""

    due: tuple[int, ...]
    next_ms: int
    until_ms: int


def next_due(rule: Rule, after_ms: int, *, anchor_ms: int) -> int:
    """The first due time after an instant; intervals count from the anchor."""
    if isinstance(rule, Cron):
        return rule.next_after(after_ms)
    return anchor_ms + (max(after_ms - anchor_ms, 0) // rule.ms + 1) * rule.ms


def firing(rule: Rule, *, next_ms: int, now_ms: int, anchor_ms: int, catch_up: int) -> Firing:
    """What a schedule whose due time has come leads to: of all due times since, the latest, as many as `catch_up` says.

    catch_up 0: the latest alone, and only if it is on time.
    """
    most = max(catch_up, 1)
    if isinstance(rule, Cron):
        due = rule.latest(next_ms, now_ms, most)
    else:
        last = next_due(rule, now_ms, anchor_ms=anchor_ms) - rule.ms
        due = tuple(range(last, max(last - most * rule.ms, next_ms - 1), -rule.ms))[::-1] or (next_ms,)
    if catch_up == 0 and now_ms - due[-1] > ON_TIME_MS:
        due = ()
    return Firing(due, next_due(rule, now_ms, anchor_ms=anchor_ms), now_ms + DECISION_HOLDS_MS)


def check_catch_up(value: CatchUp) -> int:
    """The number of missed due times to make up for: 0 for skip. Invalid for what is no policy."""
    if value == "skip":
        return 0
    if value == "one":
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_MISSED:
        raise Invalid(f"catch_up is 'skip', 'one' or a number from 1 to {MOST_MISSED}.", pointers=("/catch_up",))
    return value


def shown_catch_up(number: int) -> CatchUp:
    """The policy as callers write it."""
    return "skip" if number == 0 else "one" if number == 1 else number


def stored(rule: Rule) -> str:
    """A rule as JSON text."""
    value: JSON = {"cron": rule.expression, "zone": rule.zone} if isinstance(rule, Cron) else {"every": rule.seconds}
    return dump(value, limit=1_000, what="rule")


def read(text: str) -> Rule:
    """The rule of a stored text; Invalid if this process cannot tell when it comes due."""
    match parse(text, limit=1_000, what="rule of the schedule"):
        case {"cron": str(expression), "zone": str(zone)}:
            return Cron(expression, zone=zone)
        case {"every": int(seconds) | float(seconds)}:
            return Every(seconds)
        case _:
            raise Invalid("The rule of the schedule is none that this version knows.")


def words(text: str) -> str:
    """A stored rule for people, also where this process cannot tell when it comes due."""
    match parse(text, limit=1_000, what="rule of the schedule"):
        case {"cron": str(expression), "zone": str(zone)}:
            return f"{expression} ({zone})"
        case {"every": int(seconds) | float(seconds)}:
            return f"every {seconds:g} s"
        case _:
            return "unknown"


@dataclass(frozen=True, slots=True)
class ScheduleKey:
    """Which schedule: names are each owner's own."""

    tenant: str
    owner: str
    name: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What a schedule does: the job that it submits, when, and what of that is made up for. `rule` as it is stored."""

    kind: str
    schema_version: int
    input: str
    caller: str
    rule: str
    catch_up: int


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as it is shown."""

    key: ScheduleKey
    kind: str
    rule: str
    catch_up: int
    next_ms: int
    paused_ms: int | None
    paused_by: str | None
    last_due_ms: int | None
    last_job_id: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule whose time has come. `version` tells whether anybody changed or fired it since it was read."""

    key: ScheduleKey
    version: int
    definition: Definition
    made_ms: int
    next_ms: int
    now_ms: int
