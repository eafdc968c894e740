"""Times as people read them. The page says UTC; its script says the same in the reader's own zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def machine(moment: datetime) -> str:
    """RFC 3339 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def human(moment: datetime, *, seconds: bool = False) -> str:
    """Such as 30 Nov 2026, 21:04 UTC. The months are ours: the process's locale has no say."""
    at = moment.astimezone(UTC)
    clock = f"{at:%H:%M:%S}" if seconds else f"{at:%H:%M}"
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}, {clock} UTC"
