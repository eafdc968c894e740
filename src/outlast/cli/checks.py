"""What `outlast doctor` finds: checks with a value, how grave it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["ok", "note", "action"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. note: worth knowing, nothing is wrong. action: something has to be done, and `advice` says what."""

    name: str
    value: str | int | float | None
    level: Level = "ok"
    advice: str = ""


def clock_check(difference_ms: float, *, unsure_ms: float) -> Check:
    """The store's clock against this machine's; what the round trip hides does not count."""
    value = round(difference_ms)
    if abs(difference_ms) - unsure_ms < _NOTICED_MS:
        return Check("clock difference (ms)", value)
    return Check(
        "clock difference (ms)",
        value,
        "action",
        "The store's clock decides, so no lease is in danger; but times that this machine gives (not before, ids) are off by that "
        "much. Synchronise both clocks (NTP).",
    )


_NOTICED_MS = 2_000
