"""Concurrency keys: the claim of tasks that have one (T5), and the slot that is freed with its lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from outlast.domain.limits import START, Place, Room, share_out
from outlast.domain.work import Turn
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.claimed import claimed_of

KEYS: Final = 500
"""How many keys one turn looks at, at most; fewer where few tasks are wanted."""
_WINDOW: Final = 10
"""How many of a key's waiting tasks it looks at: those behind tasks of a smaller limit that is used up may pass them."""


@operation(Access.STATEMENT, repeatable=False)
def claim_keyed(queue: str, handlers: Sequence[str], limit: int, holder: str, lease_ms: int, *, after: Place = START) -> Program[Turn]:
    """Claims up to `limit` runnable tasks that have a concurrency key, one of each (tenant, key) in turn, behind a place in that round.

    Each takes a free slot of its key, or is not claimed. As `claim`, it is not repeated after a commit of unknown outcome; what comes
    before that one statement, the slots of a new key, changes nothing twice.
    """
    tenant, key = after
    keys = min(KEYS, 20 + 2 * limit)
    look = {"queue": queue, "handlers": list(handlers), "tenant": tenant, "key": key, "keys": keys, "window": _WINDOW}
    rows = yield Statement("keyed_rooms", look)
    rooms = [_room(row) for row in rows if row[2] is not None]
    shares, served = share_out(rooms, limit)
    walked = dict.fromkeys((str(row[0]), str(row[1])) for row in rows)
    resume = min((room.paused_ms for room in rooms if room.paused_ms > 0), default=None)
    if not shares:
        return Turn((), next(reversed(walked), START), len(walked) < keys, resume)
    for share in sorted(shares, key=lambda s: (s.tenant, s.key)):
        if share.short:
            yield Statement("make_slots", {"tenant": share.tenant, "key": share.key, "slot_limit": share.limit})
    taken = yield Statement(
        "claim_keyed",
        {
            "queue": queue,
            "handlers": list(handlers),
            "holder": holder,
            "lease_ms": lease_ms,
            "tenants": [s.tenant for s in shares],
            "keys": [s.key for s in shares],
            "limits": [s.limit for s in shares],
            "takes": [s.take for s in shares],
        },
    )
    full = sum(share.take for share in shares) == limit
    last = served if full else next(reversed(walked))
    return Turn(tuple(claimed_of(row, holder) for row in taken), last, not full and len(walked) < keys, resume)


@operation(Access.STATEMENT)
def drop_idle(idle_ms: int, limit: int) -> Program[int]:
    """Deletes slots that have been free for so long, at most `limit` of them; how many."""
    return len((yield Statement("drop_idle_slots", {"ago_ms": -idle_ms, "limit": limit})))


def free(slot_key: str | None, tenant: str, job_id: str, no: int, fence: int, *, pause_ms: int | None = None) -> Program[None]:
    """Frees the slot of a claim whose lease ends in this transaction, if it has one."""
    if slot_key is not None:
        yield Statement("free_slot", {"tenant": tenant, "key": slot_key, "job_id": job_id, "no": no, "fence": fence, "pause_ms": pause_ms})


def _room(row: tuple[Any, ...]) -> Room:
    tenant, key, limit, made, held, paused_ms = row
    return Room(tenant, key, int(limit), int(made), int(held), int(paused_ms))
