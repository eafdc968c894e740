"""One claim that this process holds: its authority, and what tells its handler to stop. Used from several threads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from outlast.domain.defaults import MAX_PROGRESS
from outlast.domain.failures import Stopped, StopReason
from outlast.domain.payload import clean
from outlast.domain.work import Claimed

if TYPE_CHECKING:
    from concurrent.futures import Future  # `import outlast` stays quick


class Hold:
    """A claimed task. Times are this process's monotonic clock, taken before the statement was sent, so that they end early, never late."""

    __slots__ = ("_progress", "_reason", "claimed", "cut", "deadline", "lease_until", "settling", "slot_freed", "started", "threads")

    def __init__(self, claimed: Claimed, *, sent_at: float, lease: float) -> None:
        self.claimed = claimed
        self.started = sent_at
        self.deadline = sent_at + claimed.deadline_ms / 1000
        self.lease_until = min(sent_at + lease, self.deadline)
        self.cut = False  # its code was told to end, by force where that can be
        self.settling = False  # its end is being written: that the store knows the claim no more says nothing now
        self.slot_freed = False
        self.threads: set[Future[Any]] = set()  # what runs in threads for it, until that code has ended
        self._reason: StopReason | None = None
        self._progress: str | None = None

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.claimed.spent + 1

    def renewed(self, sent_at: float, lease: float) -> None:
        """The store prolonged the lease."""
        self.lease_until = min(sent_at + lease, self.deadline)

    def lose(self, reason: StopReason) -> None:
        """The handler has no authority any more; the first reason stays."""
        if self._reason is None:
            self._reason = reason

    def lost(self) -> StopReason | None:
        """Why this claim has no authority any more; None while it has."""
        if self._reason is not None:
            return self._reason
        now = time.monotonic()
        if now >= self.deadline:
            return "deadline"
        return "replaced" if now >= self.lease_until else None

    def check(self) -> None:
        """Raises Stopped when there is no authority any more."""
        reason = self.lost()
        if reason is not None:
            raise Stopped(reason)

    def report(self, text: str) -> None:
        """Keeps the latest progress, which rides on the next renewal."""
        self._progress = clean(text, limit=MAX_PROGRESS)

    @property
    def progress(self) -> str | None:
        """The latest progress that was reported."""
        return self._progress
