"""Backoff that cannot overflow, Retry-After that cannot hurt, and the decision to retry or give up."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.domain.errors import Invalid
from outlast.domain.retry import MAX_SECONDS, GiveUp, RetryIn, RetryPolicy, decide, delay_ms, parse_retry_after

unhurried = settings(deadline=None, max_examples=100)

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp()) * 1000
JUST_BELOW_1 = math.nextafter(1.0, 0.0)

jitters = st.floats(0, 1, exclude_max=True)
durations = st.integers(0, MAX_SECONDS * 1000)


class TestRetryPolicy:
    def test_has_the_documented_defaults(self) -> None:
        policy = RetryPolicy()
        assert (policy.base, policy.cap, policy.window) == (1, 600, 86_400)
        assert (policy.base_ms, policy.cap_ms, policy.window_ms) == (1_000, 600_000, 86_400_000)

    def test_allows_ten_years_at_most(self) -> None:
        assert MAX_SECONDS == 315_360_000

    def test_is_counted_in_whole_milliseconds(self) -> None:
        policy = RetryPolicy(base=1.0001, cap=0.0004, window=0.29)
        assert (policy.base_ms, policy.cap_ms, policy.window_ms) == (1_000, 0, 290)

    def test_allows_zero_and_a_cap_below_base(self) -> None:
        RetryPolicy(base=0, cap=0, window=0)
        assert RetryPolicy(cap=0.5).cap_ms == 500
        RetryPolicy(base=MAX_SECONDS, cap=MAX_SECONDS, window=MAX_SECONDS)

    @pytest.mark.parametrize("name", ["base", "cap", "window"])
    @pytest.mark.parametrize(
        "value",
        [-1, -0.001, math.nan, math.inf, -math.inf, 10**400, MAX_SECONDS + 1, True, None, "1", Decimal(1)],
        ids=lambda v: str(v)[:9],
    )
    def test_refuses_what_is_no_duration(self, name: str, value: object) -> None:
        with pytest.raises(Invalid, match=f"The {name} of a retry policy must be seconds, from 0 to"):
            RetryPolicy(**{name: value})  # type: ignore[arg-type]

    def test_is_a_frozen_value(self) -> None:
        assert RetryPolicy(base=2) == RetryPolicy(base=2.0)
        assert hash(RetryPolicy()) == hash(RetryPolicy())
        with pytest.raises(AttributeError):
            RetryPolicy().base = 3  # type: ignore[misc]
        with pytest.raises(TypeError):
            RetryPolicy(1)  # type: ignore[call-arg]


class TestDelay:
    @pytest.mark.parametrize(
        ("n", "ceiling"),
        [(0, 1_000), (1, 2_000), (2, 4_000), (9, 512_000), (10, 600_000), (11, 600_000), (5_000, 600_000), (10**9, 600_000)],
    )
    def test_doubles_up_to_the_cap(self, n: int, ceiling: int) -> None:
        assert delay_ms(n, 1_000, 600_000, 0.0) == 0
        assert delay_ms(n, 1_000, 600_000, 0.5) == ceiling // 2
        assert delay_ms(n, 1_000, 600_000, JUST_BELOW_1) == ceiling

    @pytest.mark.parametrize("base", [1.0001, 2, 5, 100])
    @pytest.mark.parametrize("cap", [0, 3_600, MAX_SECONDS])
    def test_every_retry_of_5_000_stays_in_its_bounds(self, base: float, cap: float) -> None:
        policy = RetryPolicy(base=base, cap=cap)
        delays = [delay_ms(n, policy.base_ms, policy.cap_ms, JUST_BELOW_1) for n in range(5_001)]
        assert delays == [min(policy.cap_ms, policy.base_ms * 2**n) for n in range(5_001)]

    @unhurried
    @given(st.integers(-5, 10**9), st.integers(-5, 10**12), st.integers(-5, 2**63), jitters)
    def test_is_never_below_0_nor_above_cap_or_exponential(self, n: int, base: int, cap: int, jitter: float) -> None:
        delay = delay_ms(n, base, cap, jitter)
        assert isinstance(delay, int)
        assert 0 <= delay <= max(cap, 0)
        if n < 100:
            assert delay <= max(base, 0) * 2 ** max(n, 0)

    @unhurried
    @given(st.integers(0, 60), st.integers(1, 10**6), st.integers(1, 10**9), jitters, jitters)
    def test_grows_with_the_jitter(self, n: int, base: int, cap: int, one: float, other: float) -> None:
        low, high = sorted((one, other))
        assert delay_ms(n, base, cap, low) <= delay_ms(n, base, cap, high)

    def test_is_uniform_over_both_ends(self) -> None:
        counts = [0] * 5
        for step in range(1_000):
            counts[delay_ms(2, 1, 4, step / 1_000)] += 1
        assert counts == [200] * 5

    @pytest.mark.parametrize(
        ("jitter", "expected"), [(-1.0, 0), (math.nan, 0), (-math.inf, 0), (1.0, 1_000), (7.0, 1_000), (math.inf, 1_000)]
    )
    def test_a_jitter_out_of_range_counts_as_its_nearer_end(self, jitter: float, expected: int) -> None:
        assert delay_ms(0, 1_000, 600_000, jitter) == expected

    @pytest.mark.parametrize(("base", "cap"), [(0, 600_000), (1_000, 0), (-5_000, 600_000), (1_000, -600_000), (-1, -1)])
    def test_without_base_or_cap_there_is_no_delay(self, base: int, cap: int) -> None:
        for n in (0, 3, 1_990):
            assert delay_ms(n, base, cap, JUST_BELOW_1) == 0


class TestParseRetryAfter:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (120, 120_000),
            (1.5, 1_500),
            (0.0001, 1),
            ("120", 120_000),
            (" 120\t", 120_000),
            ("1.5", 1_500),
            ("007", 7_000),
            (0, 0),
            ("0", 0),
            (MAX_SECONDS, MAX_SECONDS * 1000),
            (str(MAX_SECONDS), MAX_SECONDS * 1000),
        ],
    )
    def test_reads_seconds_rounded_up(self, value: object, expected: int) -> None:
        assert parse_retry_after(value, now_ms=NOW_MS) == expected

    @pytest.mark.parametrize(
        "value",
        [
            "Mon, 30 Nov 2026 12:02:03 GMT",
            "Monday, 30-Nov-26 12:02:03 GMT",
            "Mon Nov 30 12:02:03 2026",
        ],
    )
    def test_reads_the_three_forms_of_an_http_date(self, value: str) -> None:
        assert parse_retry_after(value, now_ms=NOW_MS) == 123_000
        assert parse_retry_after(value, now_ms=NOW_MS + 1) == 122_999
        assert parse_retry_after(value, now_ms=NOW_MS + 123_000) == 0
        assert parse_retry_after(value, now_ms=NOW_MS + 123_001) is None

    def test_reads_one_digit_days_leap_seconds_and_two_digit_years(self) -> None:
        assert parse_retry_after("Tue Dec  1 12:00:00 2026", now_ms=NOW_MS) == 86_400_000
        assert parse_retry_after("Mon, 30 Nov 2026 12:00:60 GMT", now_ms=NOW_MS) == 59_000
        assert parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", now_ms=NOW_MS) is None
        assert parse_retry_after("Saturday, 30-Nov-30 12:00:00 GMT", now_ms=NOW_MS) == (
            datetime(2030, 11, 30, 12, tzinfo=UTC) - NOW
        ) // timedelta(milliseconds=1)
        assert parse_retry_after("Monday, 30-Nov-76 12:00:00 GMT", now_ms=NOW_MS) == MAX_SECONDS * 1000  # in 50 years
        assert parse_retry_after("Tuesday, 30-Nov-77 12:00:00 GMT", now_ms=NOW_MS) is None  # 49 years ago
        new_year = int(datetime(2099, 12, 31, tzinfo=UTC).timestamp()) * 1000
        assert parse_retry_after("Friday, 31-Dec-99 00:00:10 GMT", now_ms=new_year) == 10_000

    @pytest.mark.parametrize(
        "value", [-1, -0.5, -math.inf, -(10**400), "-5", "Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"]
    )
    def test_what_is_past_counts_as_none_given(self, value: object) -> None:
        assert parse_retry_after(value, now_ms=NOW_MS) is None

    @pytest.mark.parametrize(
        "value",
        [math.inf, 10**400, 1e300, MAX_SECONDS + 1, "1" * 18, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"],
        ids=lambda v: repr(v)[:30] if not isinstance(v, int) else f"int{v.bit_length()}",
    )
    def test_what_is_far_too_long_is_as_long_as_can_be(self, value: object) -> None:
        assert parse_retry_after(value, now_ms=NOW_MS) == MAX_SECONDS * 1000

    @pytest.mark.parametrize(
        "value",
        [
            math.nan,
            "9" * 5_000,
            "nan",
            "inf",
            "1e3",
            "0x10",
            "1_000",
            "+5",
            "5 s",
            "1.",
            ".5",
            "\u0661",
            "",
            " ",
            "120\n",
            "1,2",
            "tomorrow",
            True,
            False,
            None,
            b"120",
            [120],
            {},
            pytest.param(object(), id="an object"),
            1j,
            Decimal(5),
            Fraction(5),
            NOW,
            timedelta(seconds=5),
            "Mon, 31 Nov 2026 12:02:03 GMT",
            "Mon, 30 Nov 2026 24:00:00 GMT",
            "Mon, 30 Nov 2026 12:60:00 GMT",
            "Mon, 30 Nov 2026 12:00:61 GMT",
            "Mon, 30 Nov 0000 12:00:00 GMT",
            "Mon, 00 Nov 2026 12:00:00 GMT",
            "Mon, 30 Foo 2026 12:00:00 GMT",
            "Mon, 30 Nov 2026 12:02:03 CET",
            "Mon, 30 Nov 2026 12:02:03 +0000",
            "mon, 30 Nov 2026 12:02:03 GMT",
            "2026-11-30T12:02:03Z",
            "Mon, 30 Nov 2026 12:02:03 GMT " + "x" * 100_000,
        ],
        ids=lambda v: repr(v)[:30] if not isinstance(v, int) else f"int{v.bit_length()}",
    )
    def test_what_says_nothing_usable_is_none(self, value: object) -> None:
        assert parse_retry_after(value, now_ms=NOW_MS) is None

    @unhurried
    @given(st.one_of(st.integers(), st.floats(), st.text(), st.text("0123456789.-+ eGMTNov:,"), st.binary(), st.booleans(), st.none()))
    def test_never_raises_and_never_waits_too_long(self, value: object) -> None:
        wait = parse_retry_after(value, now_ms=NOW_MS)
        assert wait is None or 0 <= wait <= MAX_SECONDS * 1000

    @unhurried
    @given(st.floats(0, MAX_SECONDS))
    def test_never_waits_less_than_asked(self, seconds: float) -> None:
        wait = parse_retry_after(seconds, now_ms=NOW_MS)
        assert wait is not None
        assert Fraction(seconds) * 1000 - Fraction(1, 1000) <= wait < Fraction(seconds) * 1000 + 2

    @unhurried
    @given(st.datetimes(datetime(2000, 1, 1), datetime(2036, 1, 1)))  # noqa: DTZ001 - hypothesis wants naive bounds
    def test_agrees_with_the_standard_library_on_dates(self, at: datetime) -> None:
        moment = at.replace(microsecond=0, tzinfo=UTC)
        asked = (moment - NOW) // timedelta(milliseconds=1)
        expected = min(asked, MAX_SECONDS * 1000) if asked >= 0 else None
        assert parse_retry_after(format_datetime(moment, usegmt=True), now_ms=NOW_MS) == expected


def outcome(
    *,
    consumed: bool = True,
    spent: int = 0,
    max_attempts: int = 5,
    first_failed_at_ms: int | None = None,
    now_ms: int = NOW_MS,
    base_ms: int = 1_000,
    cap_ms: int = 600_000,
    window_ms: int = 86_400_000,
    retry_after_ms: int | None = None,
    jitter: float = 0.5,
) -> RetryIn | GiveUp:
    return decide(
        consumed=consumed,
        spent=spent,
        max_attempts=max_attempts,
        first_failed_at_ms=first_failed_at_ms,
        now_ms=now_ms,
        base_ms=base_ms,
        cap_ms=cap_ms,
        window_ms=window_ms,
        retry_after_ms=retry_after_ms,
        jitter=jitter,
    )


class TestDecide:
    @pytest.mark.parametrize(("spent", "delay"), [(0, 500), (1, 1_000), (2, 2_000), (3, 4_000)])
    def test_retries_while_attempts_are_left(self, spent: int, delay: int) -> None:
        assert outcome(spent=spent, first_failed_at_ms=NOW_MS - 1) == RetryIn(delay)

    @pytest.mark.parametrize("spent", [4, 5, 10**9])
    def test_gives_up_when_this_was_the_last_attempt(self, spent: int) -> None:
        assert outcome(spent=spent) == GiveUp()

    def test_one_attempt_is_no_retry(self) -> None:
        assert outcome(max_attempts=1) == GiveUp()
        assert outcome(max_attempts=2) == RetryIn(500)

    def test_the_window_is_counted_from_the_first_failure(self) -> None:
        assert outcome(first_failed_at_ms=NOW_MS - 86_400_000) == GiveUp()
        assert outcome(first_failed_at_ms=NOW_MS - 86_400_001) == GiveUp()
        assert outcome(first_failed_at_ms=NOW_MS - 86_399_999) == RetryIn(1)
        assert outcome(first_failed_at_ms=None) == RetryIn(500)

    def test_a_window_of_0_is_no_retry(self) -> None:
        assert outcome(window_ms=0) == GiveUp()

    def test_no_retry_starts_after_the_window(self) -> None:
        assert outcome(window_ms=300) == RetryIn(300)
        assert outcome(first_failed_at_ms=NOW_MS - 100, window_ms=300, retry_after_ms=10_000) == RetryIn(200)

    def test_waits_for_the_larger_of_backoff_and_retry_after(self) -> None:
        assert outcome(retry_after_ms=20_000) == RetryIn(20_000)
        assert outcome(retry_after_ms=499) == RetryIn(500)
        assert outcome(retry_after_ms=0) == RetryIn(500)
        assert outcome(retry_after_ms=700_000) == RetryIn(700_000)  # beyond the cap, which bounds the backoff only
        assert outcome(retry_after_ms=-5, jitter=0) == RetryIn(0)
        assert outcome(retry_after_ms=10**400) == RetryIn(86_400_000)

    def test_what_consumes_nothing_waits_as_asked_and_never_gives_up(self) -> None:
        assert outcome(consumed=False, retry_after_ms=20_000) == RetryIn(20_000)
        assert outcome(consumed=False, retry_after_ms=None) == RetryIn(0)
        assert outcome(consumed=False, retry_after_ms=-1) == RetryIn(0)
        spent = outcome(consumed=False, spent=99, first_failed_at_ms=0, window_ms=0, retry_after_ms=7)
        assert spent == RetryIn(7)

    def test_a_chain_of_2_000_attempts_ends_at_the_last_one(self) -> None:
        verdicts = [outcome(spent=spent, max_attempts=2_000, base_ms=0, first_failed_at_ms=NOW_MS) for spent in range(1_990, 2_001)]
        assert verdicts == [RetryIn(0)] * 9 + [GiveUp()] * 2

    @unhurried
    @given(
        spent=st.integers(0, 5_000),
        max_attempts=st.integers(1, 5_000),
        first=st.none() | st.integers(NOW_MS - 10**9, NOW_MS),
        base_ms=durations,
        cap_ms=durations,
        window_ms=durations,
        retry_after_ms=st.none() | st.integers(-(10**12), 10**15),
        jitter=jitters,
    )
    def test_holds_attempts_window_and_retry_after(
        self,
        *,
        spent: int,
        max_attempts: int,
        first: int | None,
        base_ms: int,
        cap_ms: int,
        window_ms: int,
        retry_after_ms: int | None,
        jitter: float,
    ) -> None:
        verdict = outcome(
            spent=spent,
            max_attempts=max_attempts,
            first_failed_at_ms=first,
            base_ms=base_ms,
            cap_ms=cap_ms,
            window_ms=window_ms,
            retry_after_ms=retry_after_ms,
            jitter=jitter,
        )
        end = (NOW_MS if first is None else first) + window_ms
        budget_left = spent + 1 < max_attempts and end > NOW_MS
        assert isinstance(verdict, RetryIn) == budget_left
        if isinstance(verdict, RetryIn):
            backoff = delay_ms(spent, base_ms, cap_ms, jitter)
            assert verdict.delay_ms >= min(backoff, end - NOW_MS)
            assert verdict.delay_ms >= min(retry_after_ms or 0, end - NOW_MS)
            assert verdict.delay_ms in {backoff, retry_after_ms, end - NOW_MS}
            assert 0 <= verdict.delay_ms <= end - NOW_MS
