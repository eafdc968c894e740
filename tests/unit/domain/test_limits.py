"""Limits: what can be one, and whose turn it is."""

from __future__ import annotations

from typing import Any

import pytest

from outlast.domain.errors import Invalid
from outlast.domain.limits import MAX_LIMIT, START, Limit, Room, Share, share_out


def room(key: str, limit: int, held: int = 0, *, tenant: str = "t", made: int | None = None, paused_ms: int = 0) -> Room:
    return Room(tenant, key, limit, limit if made is None else made, held, paused_ms)


def takes(*rooms: Room, limit: int) -> dict[str, int]:
    return {share.key: share.take for share in share_out(rooms, limit)[0]}


@pytest.mark.parametrize("slots", [0, -1, MAX_LIMIT + 1, True, 1.0, "2", None])
def test_slots_are_a_whole_number_from_one_on(slots: Any) -> None:
    with pytest.raises(Invalid, match="from 1 to 1000") as refused:
        Limit("key", slots)
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\nb", 7, None])
def test_a_key_is_text_for_one_line(key: Any) -> None:
    with pytest.raises(Invalid) as refused:
        Limit(key, 1)
    assert refused.value.code == "invalid"


def test_limits_are_values() -> None:
    assert Limit("x" * 200, MAX_LIMIT) == Limit(key="x" * 200, slots=MAX_LIMIT)
    assert len({Limit("a", 1), Limit("a", 1), Limit("a", 2)}) == 2


def test_one_of_each_before_the_second_of_any() -> None:
    rooms = (room("a", 9), room("b", 2), room("c", 1))
    assert takes(*rooms, limit=1) == {"a": 1}
    assert takes(*rooms, limit=3) == {"a": 1, "b": 1, "c": 1}
    assert takes(*rooms, limit=5) == {"a": 2, "b": 2, "c": 1}
    assert takes(*rooms, limit=500) == {"a": 9, "b": 2, "c": 1}
    assert takes(*rooms, limit=0) == takes(limit=3) == {}


def test_who_was_served_last_is_where_the_next_round_begins() -> None:
    rooms = [room("a", 9), room("b", 9), room("c", 1)]
    assert share_out(rooms, 4)[1] == ("t", "a")
    assert share_out(rooms, 5)[1] == ("t", "b")
    assert share_out([], 5)[1] == START


def test_full_and_resting_keys_have_no_turn() -> None:
    assert takes(room("full", 2, 2), room("over", 1, 3), room("rests", 5, paused_ms=1), room("open", 2, 1), limit=9) == {"open": 1}


def test_a_key_is_its_tenants() -> None:
    shares, last = share_out([room("k", 5, tenant="a"), room("k", 5, tenant="b")], 3)
    assert shares == [Share("a", "k", 5, 2, short=False), Share("b", "k", 5, 1, short=False)]
    assert last == ("a", "k")


def test_of_several_limits_of_a_key_the_first_that_leaves_a_slot_counts() -> None:
    assert share_out([room("k", 1, 1), room("k", 3, 1), room("k", 5, 1)], 9)[0] == [Share("t", "k", 3, 2, short=False)]


def test_slots_that_are_not_there_are_made() -> None:
    assert share_out([room("k", 3, 1, made=2)], 9)[0] == [Share("t", "k", 3, 2, short=True)]
