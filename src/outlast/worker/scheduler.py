"""The scheduler: makes jobs of the due times of schedules, in each worker, by the store's clock.

Any number of them may run: of those that find a due time one writes it, and what a frozen one had decided is refused by then.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from outlast.domain.errors import Contended, Invalid, Locked, NotMigrated, NotRegistered, OutcomeUnknown, OutlastError, StoreUnavailable
from outlast.domain.ids import uuid7
from outlast.domain.kinds import Kind
from outlast.domain.payload import check_code
from outlast.domain.registry import Registry
from outlast.domain.requests import admission_of, asked_for, check_may_submit, owner_of, read_request
from outlast.domain.schedules import ON_TIME_MS, DueSchedule, Firing, Rule, ScheduleKey, firing, read
from outlast.domain.work import Admission
from outlast.observe.events import ScheduleFailed, ScheduleFired, ScheduleLeft, StoreTrouble
from outlast.observe.hub import emit
from outlast.store.programs import schedules
from outlast.store.protocol import Store
from outlast.worker.threads import Threads

BATCH = 100
PLANNING = 10.0  # seconds for a kind's function to fill the plans of a schedule's due times; others wait meanwhile
LONGEST_PAUSE = 1.0  # seconds; so late, at most, a schedule is seen that another process has made
_SHORTEST_PAUSE = 0.02  # that many schedules with due times of their own are looked at together
_MOST_TROUBLE = 5.0
_OF_SCHEDULE = "schedule"  # a due time has one job, whatever the schedule was when it came


@dataclass(slots=True)
class ScheduleReport:
    """What one look at the schedules came to: fired, failed, and left for others or for later; seconds until the next one is due."""

    fired: int = 0
    failed: int = 0
    left: int = 0
    next_in: float | None = None


@dataclass(frozen=True, slots=True)
class _Decided:
    """What a due schedule leads to: its jobs, or the code of what kept it from having any."""

    firing: Firing
    jobs: list[Admission]
    code: str | None = None


class Scheduler:
    """Fires schedules whose kinds this process knows, one a transaction; one that cannot be fired stops no other."""

    def __init__(self, store: Store, registry: Registry, threads: Threads, *, max_input: int, retention_ms: int) -> None:
        self._store = store
        self._registry = registry
        self._threads = threads
        self._max_input = max_input
        self._retention_ms = retention_ms
        self._told: dict[ScheduleKey, int] = {}
        self._hanging: dict[ScheduleKey, set[Future[Any]]] = {}

    async def loop(self) -> None:
        """Fires what falls due as long as it is not cancelled."""
        pause = random.uniform(0.0, 0.2)
        while True:
            await asyncio.sleep(pause)
            try:
                report = await self.run_once()
            except OutlastError as error:
                pause = min(max(pause, LONGEST_PAUSE) * 1.5, _MOST_TROUBLE)
                emit(StoreTrouble("scheduler", error.code, pause, error.message))
                continue
            pause = LONGEST_PAUSE * random.uniform(0.9, 1.0)
            if report.next_in is not None:
                pause = min(max(report.next_in, _SHORTEST_PAUSE), pause)

    async def run_once(self) -> ScheduleReport:
        """Fires all that is due now."""
        report = ScheduleReport()
        after: DueSchedule | None = None
        while True:
            rows, next_in_ms = await self._store.run(schedules.due(after, BATCH))
            for row in random.sample(rows, len(rows)):  # so that many workers do not all meet at the same one
                await self._isolated(report, row)
            if len(rows) < BATCH:
                report.next_in = None if next_in_ms is None else max(next_in_ms, 0) / 1000
                return report
            after = rows[-1]

    async def _isolated(self, report: ScheduleReport, row: DueSchedule) -> None:
        try:
            await self._one(report, row)
        except Exception as error:
            if _in_trouble(error):
                raise
            report.left += 1
            self._tell_left(row, error.code if isinstance(error, OutlastError) else type(error).__name__)

    async def _one(self, report: ScheduleReport, row: DueSchedule) -> None:
        try:
            kind = self._registry.kind(row.definition.kind, row.definition.schema_version)
            rule = read(row.definition.rule)
        except (NotRegistered, Invalid) as error:
            report.left += 1
            if _late(row) and self._untold(row):  # before that, a process that knows it may be about to fire it
                await self._store.run(schedules.note(row, _safe(error.code)))
                self._tell_left(row, error.code)
            return
        decided = await self._decide(row, rule, kind)
        code = decided.code or await self._fire(report, row, decided)
        if code is not None and await self._store.run(schedules.fail(row, code, decided.firing.next_ms)):
            report.failed += 1
            emit(ScheduleFailed(row.key.name, row.definition.kind, code))

    async def _fire(self, report: ScheduleReport, row: DueSchedule, decided: _Decided) -> str | None:
        """The code of what its jobs are refused with, if they are."""
        try:
            ids = await self._store.run(schedules.fire(row, decided.firing, decided.jobs))
        except Locked as error:  # a quota, by an application's own long transaction: a matter of this schedule alone
            report.left += 1
            if _late(row):
                self._tell_left(row, error.code)
            return None
        except OutlastError as error:
            if _in_trouble(error):
                raise
            return _safe(error.code)
        if ids is not None:
            self._fired(report, row, decided.jobs, ids)
        return None

    async def _decide(self, row: DueSchedule, rule: Rule, kind: Kind[Any]) -> _Decided:
        """In threads, the kind's own function too: whatever it does, the loop goes on. One that does not come back is waited for once."""

        def due_times() -> Firing:
            return firing(rule, next_ms=row.next_ms, now_ms=row.now_ms, anchor_ms=row.made_ms, catch_up=row.definition.catch_up)

        due = await self._threads.run(due_times, set())
        running = self._hanging.pop(row.key, set())
        if not running:
            try:
                return await asyncio.wait_for(self._threads.run(lambda: self._planned(row, kind, due), running), PLANNING)
            except TimeoutError:
                pass
        self._hanging[row.key] = running
        return _Decided(due, [], "plan_failed")

    def _planned(self, row: DueSchedule, kind: Kind[Any], due: Firing) -> _Decided:
        try:
            return _Decided(due, [self._admission(row, kind, at) for at in due.due])
        except OutlastError as error:
            return _Decided(due, [], _safe(error.code))
        except BaseException:
            return _Decided(due, [], "plan_failed")

    def _admission(self, row: DueSchedule, kind: Kind[Any], due_ms: int) -> Admission:
        defined, key = row.definition, row.key
        check_may_submit(owner_of(key.tenant, key.owner, defined.caller), kind)
        try:
            request = read_request(kind, defined.input, defined.schema_version, limit=self._max_input)
        except Invalid as error:
            raise Invalid(error.message, code="payload_incompatible") from None
        made = admission_of(
            kind,
            request,
            job_id=uuid7(time.time_ns() // 1_000_000, os.urandom(10)),
            correlation_id=uuid.uuid4().hex,
            traceparent=None,
            tenant=key.tenant,
            owner=key.owner,
            caller=asked_for(defined.caller, due_ms),
            # A blank stands in no key of a caller's: nobody can have taken it. It outlives the job, as all keys do.
            key=f"schedule {key.name} {due_ms}",
            not_before_ms=None,
            retention_ms=self._retention_ms,
        )
        return replace(made, fingerprint=_OF_SCHEDULE)

    def _fired(self, report: ScheduleReport, row: DueSchedule, jobs: list[Admission], ids: tuple[str, ...]) -> None:
        report.fired += 1
        self._told.pop(row.key, None)
        emit(ScheduleFired(row.key.name, row.definition.kind, ids))
        if jobs:
            self._store.announce(tuple(sorted({task.queue for job in jobs for task in job.tasks if not task.parents})))

    def _tell_left(self, row: DueSchedule, code: str) -> None:
        if self._untold(row):
            self._told[row.key] = row.version
            emit(ScheduleLeft(row.key.name, row.definition.kind, code))

    def _untold(self, row: DueSchedule) -> bool:
        """Things are told once for each schedule as it stands: it is looked at each second."""
        return self._told.get(row.key) != row.version


def _late(row: DueSchedule) -> bool:
    return row.now_ms - row.next_ms > ON_TIME_MS


def _in_trouble(error: Exception) -> bool:
    """Whether it is the store that fails, not the schedule."""
    return isinstance(error, StoreUnavailable | OutcomeUnknown | Contended | NotMigrated)


def _safe(code: object) -> str:
    return str(code) if check_code(code) else "error"
