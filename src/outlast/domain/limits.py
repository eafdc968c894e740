"""Concurrency keys: how many tasks of a tenant may run at once under one name, and whose turn it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from outlast.domain.errors import Invalid
from outlast.domain.payload import check_text

MAX_LIMIT_KEY: Final = 200
MAX_LIMIT: Final = 1_000
"""Each slot is a row: a larger limit holds nothing back that is worth it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `slots` (1 to 1,000) tasks of a tenant with this concurrency key hold a lease at once, over all workers; never more.

    Code that outlives its lease (a thread past its deadline, a process that was frozen and comes back) has no slot any more and may
    overlap with the next task until it notices: call `ctx.check()` in loops, and keep the deadline above what the work can take.
    The key has 1 to 200 characters. What waits keeps the limit that it was submitted with. Invalid for anything else.
    """

    key: str
    slots: int

    def __post_init__(self) -> None:
        check_text(self.key, what="concurrency key", limit=MAX_LIMIT_KEY)
        if isinstance(self.slots, bool) or not isinstance(self.slots, int) or not 1 <= self.slots <= MAX_LIMIT:
            raise Invalid(f"The slots of a concurrency key must be a whole number from 1 to {MAX_LIMIT}.")


Place: TypeAlias = tuple[str, str]
"""A tenant and one of its keys: where a round over all keys stands."""

START: Final[Place] = ("", "")
"""Before the first key of the first tenant."""


@dataclass(frozen=True, slots=True)
class Room:
    """A key with tasks that wait under one limit, in the order in which their first one came.

    `made`: how many of its slots 1..limit there are, `held`: how many of those are taken. `paused_ms`: no task starts before.
    """

    tenant: str
    key: str
    limit: int
    made: int
    held: int
    paused_ms: int

    @property
    def left(self) -> int:
        """How many of its tasks may start now."""
        return 0 if self.paused_ms > 0 else max(0, self.limit - self.held)


@dataclass(frozen=True, slots=True)
class Share:
    """How many tasks of a key a claim takes. `short`: some of its slots have to be made first."""

    tenant: str
    key: str
    limit: int
    take: int
    short: bool


def share_out(rooms: Sequence[Room], limit: int) -> tuple[list[Share], Place]:
    """Whose turn it is, for `limit` tasks: one of each key in turn, then a second one of each, and so on; and who was served last.

    Of a key whose tasks have several limits the first that has a slot left counts. The next round begins behind who was served
    last, so that a tenant with ten thousand tasks gets no more turns than one with a single task.
    """
    open_: dict[Place, Room] = {}
    for room in rooms:
        if room.left:
            open_.setdefault((room.tenant, room.key), room)
    takes = dict.fromkeys(open_, 0)
    last, given = START, 0
    waiting = list(open_)
    while waiting and given < limit:
        for place in waiting:
            if given < limit:
                takes[place] += 1
                last, given = place, given + 1
        waiting = [place for place in waiting if takes[place] < open_[place].left]
    shares = [Share(*place, room.limit, takes[place], room.made < room.limit) for place, room in open_.items() if takes[place]]
    return shares, last
