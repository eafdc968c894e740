"""How long a client should wait before it asks again: from how long such jobs take, and longer the longer nothing changes."""

from __future__ import annotations

import statistics
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from outlast.domain.model import JobView
from outlast.domain.registry import Registry

SHORTEST: Final = 1.0
LONGEST: Final = 60.0
WITH_OWNER: Final = 30.0
"""What waits for its owner changes when they act, and they know when they do."""
UNKNOWN: Final = 10.0
"""Seconds that a job is expected to take when neither its kind nor a measurement says."""
_SHARE: Final = 8.0
_REMEMBERED: Final = 32
_JOBS: Final = 4_096


def pace(expected: float, elapsed: float, unchanged: float) -> float:
    """Seconds until the next question: an eighth of what is left or of the time that nothing has changed, whichever is more."""
    left = max(expected - elapsed, 0.0)
    return min(max(left / _SHARE, unchanged / _SHARE, SHORTEST), LONGEST)


class Pacing:
    """Remembers how long jobs of each kind took that this process saw end, and since when it has seen each job as it is."""

    def __init__(self, registry: Registry, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._monotonic = monotonic
        self._took: dict[str, deque[float]] = {}
        self._seen: OrderedDict[str, tuple[int, str, float]] = OrderedDict()

    def retry_after(self, job: JobView) -> int | None:
        """Whole seconds; None for a job that is final."""
        unchanged = self._look(job)
        if job.final:
            return None
        if job.state == "needs_attention":
            return round(min(max(WITH_OWNER, unchanged / _SHARE), LONGEST))
        elapsed = (datetime.now(UTC) - job.accepted_at).total_seconds()
        return round(pace(self.expected(job.kind), elapsed, unchanged))

    def expected(self, kind: str) -> float:
        """Seconds that a job of this kind takes: the median of those seen to end, else its promise."""
        took = self._took.get(kind)
        if took:
            return statistics.median(took)
        known = self._registry.kinds.get(kind)
        promise = None if known is None else known.promise
        if promise is None:
            return UNKNOWN
        return promise[1] if isinstance(promise, tuple) else promise

    def room_after(self, kind: str) -> int:
        """Whole seconds until one of an owner's open jobs of this kind may have ended."""
        return round(pace(self.expected(kind), 0.0, 0.0))

    def _look(self, job: JobView) -> float:
        """Seconds for which this process has seen the job as it is."""
        now = self._monotonic()
        before = self._seen.pop(job.id, None)
        if job.final:
            if before is not None:
                self._measure(job)
            return 0.0
        since = before[2] if before is not None and before[:2] == (job.version, job.state) else now
        self._seen[job.id] = (job.version, job.state, since)
        if len(self._seen) > _JOBS:
            self._seen.popitem(last=False)
        return now - since

    def _measure(self, job: JobView) -> None:
        if job.finished_at is None or job.state != "completed" or job.kind not in self._registry.kinds:
            return
        took = self._took.setdefault(job.kind, deque(maxlen=_REMEMBERED))
        took.append((job.finished_at - job.accepted_at).total_seconds())
