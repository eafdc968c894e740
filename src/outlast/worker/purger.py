"""The purge: deletes what is no longer kept, a few jobs at a time, beside the work. Every worker may do it, and none has to."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from outlast.domain.errors import OutlastError
from outlast.domain.work import DueJob
from outlast.observe.events import BadRow, Purged, StoreTrouble
from outlast.observe.hub import emit
from outlast.store.drive import BadData
from outlast.store.programs import retention
from outlast.store.protocol import Store

STRETCH: Final = 500
"""Jobs that one read looks at."""
MOST_JOBS: Final = 50
MOST_TASKS: Final = 500
"""Jobs and tasks in one transaction: on SQLite nobody else writes while it lasts."""
KEYS: Final = 500
"""Keys in one transaction."""
ENOUGH: Final = 20
"""Reads and transactions after which a run makes way, and the next one goes on from there."""
_SHARE: Final = 4.0
"""Purging takes at most a fifth of the time: a run that left something rests for so many times what it took."""


@dataclass(slots=True)
class PurgeReport:
    """What one run did: jobs purged and passed by, keys dropped, rows that could not be handled, and whether it made way before its end."""

    jobs: int = 0
    passed: int = 0
    keys: int = 0
    bad: int = 0
    more: bool = False


class Purger:
    """Walks the jobs in the order of their ids and remembers where it was, so that each run goes on where the last one made way."""

    def __init__(self, store: Store, *, retention_ms: int, horizon_ms: int, interval: float) -> None:
        self._store = store
        self._retention_ms = retention_ms
        self._horizon_ms = horizon_ms
        self._interval = interval
        self._after: str | None = None

    async def loop(self) -> None:
        """Purges as long as it is not cancelled."""
        pause = self._interval * random.uniform(0.0, 1.0)
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            try:
                report = await self.run_once()
            except OutlastError as error:
                pause = min(max(pause, 1.0) * 1.5, 5 * self._interval)
                emit(StoreTrouble("purge", error.code, pause, error.message))
                continue
            pause = self._interval * random.uniform(0.9, 1.0)
            if report.more:
                pause = min(pause, (time.monotonic() - started) * _SHARE)

    async def run_once(self) -> PurgeReport:
        """Goes on with the walk for a while, and drops keys whose horizon is over."""
        report = PurgeReport()
        left = ENOUGH
        while left > 0:
            stretch = await self._store.run(retention.due(self._after, limit=STRETCH, kept_ms=self._retention_ms))
            left -= 1
            for few in batches(stretch.due):
                left -= 1
                await self._purge(few, report)
            self._after = stretch.last
            if self._after is None:
                break
        while left > 0 and (dropped := await self._store.run(retention.drop_expired(KEYS))):
            left -= 1
            report.keys += dropped
        report.more = left <= 0
        if report.jobs or report.keys:
            emit(Purged(report.jobs, report.keys))
        return report

    async def _purge(self, few: list[DueJob], report: PurgeReport) -> None:
        """A batch; one by one where one of them cannot be handled, so that it stops nobody else's."""
        ids = [job.id for job in few]
        try:
            gone = await self._store.run(retention.purge(few[0].tenant, ids, horizon_ms=self._horizon_ms))
        except Exception as error:
            if isinstance(error, OutlastError) and not isinstance(error, BadData):
                raise  # the store is in trouble, not the rows
            if len(few) > 1:
                for job in few:
                    await self._purge([job], report)
                return
            report.bad += 1
            emit(BadRow("purge", ids[0], type(error).__name__, ""))
            return
        report.jobs += len(gone)
        report.passed += len(ids) - len(gone)


def batches(due: Iterable[DueJob]) -> Iterator[list[DueJob]]:
    """As they go together: jobs of one tenant, few, and fewer where they have many tasks."""
    of_tenant: dict[str, list[DueJob]] = {}
    for job in due:
        of_tenant.setdefault(job.tenant, []).append(job)
    for jobs in of_tenant.values():
        few: list[DueJob] = []
        tasks = 0
        for job in jobs:
            if few and (len(few) == MOST_JOBS or tasks + job.tasks > MOST_TASKS):
                yield few
                few, tasks = [], 0
            few.append(job)
            tasks += job.tasks
        yield few
