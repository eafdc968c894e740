"""Whether a failed attempt is repeated, and when. Now and chance are arguments, all times milliseconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from outlast.domain.defaults import LONGEST, RETRY_BASE, RETRY_CAP, RETRY_WINDOW
from outlast.domain.errors import Invalid

MAX_SECONDS: Final = LONGEST
"""Ten years: no duration of a policy is longer, and what a provider asks for beyond it counts as this."""

_SECONDS: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,18})?")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = f"(?P<month>{'|'.join(_MONTHS)})"
_CLOCK: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_HTTP_DATES: Final = (  # RFC 9110, 5.6.7: the fixed form, then the two obsolete ones that a recipient accepts too
    re.compile(rf"[A-Z][a-z]{{2}}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_CLOCK} GMT"),
    re.compile(rf"[A-Z][a-z]{{5,8}}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_CLOCK} GMT"),
    re.compile(rf"[A-Z][a-z]{{2}} {_MONTH} (?P<day>[ 0-9][0-9]) {_CLOCK} (?P<year>[0-9]{{4}})"),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Delay before retry n (from 0): uniform in 0 .. min(cap, base * 2**n). Seconds; whole milliseconds count.

    No retry starts later than `window` after the first failure; a window of 0 means none. A cap below base caps from
    the first retry on; a base or cap of 0 retries at once. Invalid: below 0, not finite, or more than ten years.
    """

    base: float = RETRY_BASE
    cap: float = RETRY_CAP
    window: float = RETRY_WINDOW

    def __post_init__(self) -> None:
        for name in ("base", "cap", "window"):
            value: object = getattr(self, name)
            usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS
            if not usable:
                raise Invalid(f"The {name} of a retry policy must be seconds, from 0 to {MAX_SECONDS}.")

    @property
    def base_ms(self) -> int:
        """The most that the first retry waits."""
        return round(self.base * 1000)

    @property
    def cap_ms(self) -> int:
        """The most that any retry waits, unless a provider asks for more."""
        return round(self.cap * 1000)

    @property
    def window_ms(self) -> int:
        """How long after the first failure a retry may still start."""
        return round(self.window * 1000)


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Run it again after so many milliseconds."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Attempts or window are used up."""


Decision: TypeAlias = RetryIn | GiveUp


def delay_ms(n: int, policy_base_ms: int, policy_cap_ms: int, jitter: float) -> int:
    """The delay before retry `n` (from 0): uniform in 0 .. min(cap, base * 2**n), for a jitter uniform in [0, 1).

    Never below 0, never above the cap, at the same cost for every n. A jitter out of range counts as its nearer end.
    """
    if policy_base_ms <= 0 or policy_cap_ms <= 0:
        return 0
    # 2**n alone passes the cap when n reaches its number of bits, so that nothing larger is ever computed.
    doublings = min(max(n, 0), policy_cap_ms.bit_length())
    ceiling = min(policy_cap_ms, policy_base_ms << doublings)
    if not jitter > 0:
        return 0
    return min(ceiling, int(min(jitter, 1.0) * (ceiling + 1)))


def parse_retry_after(value: object, *, now_ms: int) -> int | None:
    """How long a provider's Retry-After asks to wait, rounded up; None where it says nothing usable. Never raises.

    Seconds as int, float or text, or an HTTP date as text. More than ten years, infinity too, counts as ten years. None: any
    other type (bool and bytes too), any other text, NaN, negative seconds, and a date that has passed.
    """
    if isinstance(value, str):
        return _text_ms(value.strip(" \t"), now_ms)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _seconds_ms(value)
    return None


def decide(
    *,
    consumed: bool,
    spent: int,
    max_attempts: int,
    first_failed_at_ms: int | None,
    now_ms: int,
    base_ms: int,
    cap_ms: int,
    window_ms: int,
    retry_after_ms: int | None,
    jitter: float,
) -> Decision:
    """What follows an attempt that ended without a result and is neither permanent nor a question.

    consumed: it was a failure or a crash, the `spent` + 1st of `max_attempts`. It is repeated while attempts and window
    last, after the larger of backoff and Retry-After, and never later than the window's end. Not consumed (a snooze):
    it is repeated after exactly `retry_after_ms`, whatever was spent.
    """
    wait = max(0, retry_after_ms or 0)
    if not consumed:
        return RetryIn(wait)
    first = now_ms if first_failed_at_ms is None else first_failed_at_ms
    left = first + window_ms - now_ms
    if spent + 1 >= max_attempts or left <= 0:
        return GiveUp()
    return RetryIn(min(left, max(wait, delay_ms(spent, base_ms, cap_ms, jitter))))


def _seconds_ms(seconds: float) -> int | None:
    if not seconds >= 0:  # NaN compares to nothing
        return None
    return MAX_SECONDS * 1000 if seconds >= MAX_SECONDS else math.ceil(seconds * 1000)


def _text_ms(text: str, now_ms: int) -> int | None:
    if _SECONDS.fullmatch(text):
        return _seconds_ms(float(text))
    for form in _HTTP_DATES:
        date = form.fullmatch(text)
        if date is not None:
            return _date_ms(date, now_ms)
    return None


def _date_ms(date: re.Match[str], now_ms: int) -> int | None:
    year = int(date["year"])
    if len(date["year"]) < 4:  # noqa: PLR2004 - digits of a full year
        year = _full_year(year, now_ms)
    try:
        at = datetime(
            year,
            _MONTHS.index(date["month"]) + 1,
            int(date["day"]),
            int(date["hour"]),
            int(date["minute"]),
            59 if date["second"] == "60" else int(date["second"]),  # a leap second
            tzinfo=UTC,
        )
    except ValueError:
        return None
    wait = (at - _EPOCH).days * 86_400_000 + (at - _EPOCH).seconds * 1000 - now_ms
    return min(wait, MAX_SECONDS * 1000) if wait >= 0 else None


def _full_year(two_digits: int, now_ms: int) -> int:
    """RFC 9110: a date that looks more than 50 years ahead is the latest one in the past with these digits."""
    this_year = 1970 + now_ms // 31_556_952_000
    year = this_year // 100 * 100 + two_digits
    return year - 100 if year > this_year + 50 else year
