"""Which of several exceptions an attempt ends with."""

from __future__ import annotations

import pytest

from outlast.domain.errors import Invalid, StoreUnavailable
from outlast.domain.failures import Ask, Failure, Permanent, Refused, Retry, Snooze, Stopped, gravest

DOUBT = Permanent("cannot_know", "It may have happened.")
ORDER: list[BaseException] = [
    Stopped("cancelled"),
    Permanent("gone"),
    Ask("well", "Well?"),
    Retry(after=30),
    Retry(after=2),
    Retry(),
    DOUBT,
    Failure("odd"),
    ConnectionError("lost"),
    Snooze(5),
]


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_gravest_of_a_group_goes_first(place: int) -> None:
    rest = ORDER[place:]
    for nested in (rest, rest[::-1]):
        group = BaseExceptionGroup("all", [BaseExceptionGroup("some", [one]) for one in nested])
        assert gravest(group, [DOUBT]) is ORDER[place]


@pytest.mark.parametrize("permanent", [Permanent("gone"), Refused(), Invalid("wrong")])
def test_what_no_retry_can_help_comes_before_a_question(permanent: Exception) -> None:
    assert gravest(ExceptionGroup("all", [Ask("well", "Well?"), permanent]), []) is permanent
    assert gravest(ExceptionGroup("all", [StoreUnavailable("down"), Retry("busy")]), []).__class__ is Retry


def test_what_is_no_group_is_itself_and_a_doubt_is_not_taken_apart() -> None:
    alone = ValueError("alone")
    assert gravest(alone, []) is alone
    doubt = ExceptionGroup("of one call", [Permanent("gone")])
    assert gravest(ExceptionGroup("all", [doubt, Snooze(1)]), [doubt]) is doubt


@pytest.mark.parametrize("after", [float("nan"), "soon", -1.0, None])
def test_an_odd_time_is_none(after: float) -> None:
    right = Retry(after=1)
    assert gravest(ExceptionGroup("all", [Retry(after=after), right]), []) is right
