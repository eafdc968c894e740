"""The sweep: recovers what others lost, always on, by the store's clock. A row that cannot be handled stops nobody else's recovery."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from outlast.domain.defaults import SLOT_IDLE, SLOT_IDLE_SWEEP
from outlast.domain.errors import OutlastError
from outlast.domain.retry import GiveUp
from outlast.domain.work import LostLease, OpenWindow, Swept
from outlast.observe.events import BadRow, StoreTrouble
from outlast.observe.events import Swept as SweptEvent
from outlast.observe.hub import emit
from outlast.store.drive import BadData
from outlast.store.programs import slots, sweep
from outlast.store.protocol import Store
from outlast.worker.committer import Windows

BATCH = 200
_IDLE_BATCH = 1_000


@dataclass(slots=True)
class SweepReport:
    """What one sweep did: how many candidates of each outcome, and how many could not be handled."""

    outcomes: dict[Swept, int] = field(default_factory=dict[Swept, int])
    bad: int = 0

    def count(self, outcome: Swept) -> None:
        """One more of this outcome."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    @property
    def recovered(self) -> int:
        """How many tasks may be runnable because of it: they themselves, or what waited for them or for their slot."""
        return sum(self.outcomes.get(outcome, 0) for outcome in (Swept.RETRIED, Swept.SKIPPED, Swept.GAVE_UP, Swept.STOPPED))


class Sweeper:
    """Looks for ended leases and questions whose window is over, one job a transaction."""

    def __init__(self, store: Store, windows: Windows, *, interval: float, moved: Callable[[], None]) -> None:
        self._store = store
        self._windows = windows
        self._interval = interval
        self._moved = moved
        self.swept_at = time.monotonic()
        self._idle_due = time.monotonic() + SLOT_IDLE_SWEEP * random.uniform(0.1, 1.0)

    async def loop(self) -> None:
        """Sweeps as long as it is not cancelled."""
        pause = self._interval * random.uniform(0.2, 1.0)
        while True:
            await asyncio.sleep(pause)
            try:
                report = await self.run_once()
                pause = self._interval * random.uniform(0.9, 1.0)
            except OutlastError as error:
                pause = min(pause * 1.5, 5 * self._interval)
                emit(StoreTrouble("sweep", error.code, pause, error.message))
                continue
            self.swept_at = time.monotonic()
            if report.recovered:
                self._moved()

    async def run_once(self) -> SweepReport:
        """One whole sweep."""
        report = SweepReport()
        lost: LostLease | None = None
        while rows := await self._store.run(sweep.ended_leases(lost, BATCH)):
            for row in rows:
                await self._isolated(report, row, str(row.no), partial(self._lost, row))
            lost = rows[-1]
            if len(rows) < BATCH:
                break
        over: OpenWindow | None = None
        while questions := await self._store.run(sweep.windows_over(over, BATCH)):
            for question in questions:
                closing = sweep.close_window(question, retention_ms=self._windows.retention_ms)
                await self._isolated(report, question, question.id, partial(self._store.run, closing))
            over = questions[-1]
            if len(questions) < BATCH:
                break
        if time.monotonic() >= self._idle_due:
            await self._drop_idle_slots()
        return report

    async def _drop_idle_slots(self) -> None:
        while await self._store.run(slots.drop_idle(round(SLOT_IDLE * 1000), _IDLE_BATCH)) == _IDLE_BATCH:
            pass
        self._idle_due = time.monotonic() + SLOT_IDLE_SWEEP * random.uniform(0.9, 1.1)

    async def _lost(self, row: LostLease) -> Swept:
        if row.revoked:
            return await self._store.run(sweep.stop_lost(row))
        decided = await self._store.run(sweep.lost(row, random.random()))
        if decided is None:
            return Swept.PASSED
        if isinstance(decided, GiveUp):
            window = self._windows
            return await self._store.run(sweep.give_up_lost(row, window_ms=window.attention_ms, retention_ms=window.retention_ms))
        return await self._store.run(sweep.retry_lost(row, decided.delay_ms))

    async def _isolated(self, report: SweepReport, row: LostLease | OpenWindow, no: str, run: Callable[[], Awaitable[Swept]]) -> None:
        try:
            outcome = await run()
        except Exception as error:
            if isinstance(error, OutlastError) and not isinstance(error, BadData):
                raise  # the store is in trouble, not the row
            report.bad += 1
            emit(BadRow("sweep", row.job_id, type(error).__name__, row.correlation_id))
            return
        report.count(outcome)
        if outcome is not Swept.PASSED:
            emit(SweptEvent(row.job_id, no, outcome.value, row.correlation_id))
