"""Meanwhile: RQ's workers hand over to Outlast what is still asked of RQ."""

from __future__ import annotations

from examples.migrating.rq import after


def brochure(order: int, pages: int) -> str:
    """What old producers enqueue. An RQ job that is run again is no harm: its key says that there is a job already."""
    return after.place(order, pages, after.HOUSE)
