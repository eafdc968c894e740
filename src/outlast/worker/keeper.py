"""Keeps leases: a thread and a connection of its own, so that a handler that blocks the event loop does not lose its lease."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from outlast.domain.defaults import RENEWALS_PER_LEASE
from outlast.domain.errors import OutlastError
from outlast.domain.failures import StopReason
from outlast.domain.work import Renewal, Verdict
from outlast.observe.events import LeaseLost, LoopBlocked, StoreTrouble
from outlast.observe.hub import emit
from outlast.store.programs import claims
from outlast.store.protocol import SyncRunner
from outlast.worker.hold import Hold

_BLOCKED = 1.0
_LOOK = 0.5
_STOOD = 1.0  # seconds that this thread came late: it was not the event loop alone that did not turn


class Keeper:
    """Renews all held leases in one batch, at a third of the lease; a renewal that fails is tried again well within it."""

    def __init__(
        self,
        runner: SyncRunner,
        *,
        lease: float,
        on_death: Callable[[str, BaseException], None],
        blocked_task: Callable[[], tuple[float, str]],
    ) -> None:
        self._runner = runner
        self._lease = lease
        self._on_death = on_death
        self._blocked_task = blocked_task
        self._holds: dict[int, Hold] = {}
        self._wake = threading.Condition()
        self._stopping = False
        self._warned = False
        self.renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._loop, name="outlast-keeper", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def add(self, holds: list[Hold]) -> None:
        """Keeps these leases from now on."""
        with self._wake:
            for hold in holds:
                self._holds[id(hold)] = hold

    def remove(self, hold: Hold) -> None:
        """Lets a lease go: its end is settled, or it is lost."""
        with self._wake:
            self._holds.pop(id(hold), None)

    def stop(self) -> None:
        """Ends the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def run_once(self) -> bool:
        """One batch renewal of everything held; whether all of it was settled (False: try again soon)."""
        with self._wake:
            holds = [h for h in self._holds.values() if h.lost() is None]
        if not holds:
            return True
        sent_at = time.monotonic()
        renewals = [Renewal(h.claimed.ref, h.progress) for h in holds]
        verdicts = self._runner.run_sync(claims.renew(renewals, round(self._lease * 1000)))
        self.renewed_at = time.monotonic()
        settled = True
        for hold, verdict in zip(holds, verdicts, strict=True):
            if verdict is Verdict.ACCEPTED:
                hold.renewed(sent_at, self._lease)
            elif verdict is Verdict.BUSY:
                settled = False
            elif verdict is Verdict.STALE and hold.settling:
                continue  # ended by this process, it may be, before the renewal came: who writes the end learns which
            else:
                self._lost(hold, "cancelled" if verdict is Verdict.CANCELLED else "replaced")
        return settled

    def _lost(self, hold: Hold, reason: StopReason) -> None:
        with self._wake:
            if self._holds.pop(id(hold), None) is None:
                return  # settled while the renewal was under way
        hold.lose("deadline" if reason == "replaced" and time.monotonic() >= hold.deadline else reason)
        ref = hold.claimed.ref
        emit(LeaseLost(ref.job_id, ref.no, ref.fence, reason, hold.claimed.correlation_id))

    def _loop(self) -> None:
        interval = self._lease / RENEWALS_PER_LEASE
        due = time.monotonic() + interval
        try:
            while self._wait(due):
                try:
                    settled = self.run_once()
                except OutlastError as error:
                    settled = False
                    emit(StoreTrouble("lease keeper", error.code, interval / 4, error.message))
                pause = interval * random.uniform(0.85, 1.0) if settled else interval / 4
                due = time.monotonic() + pause
        except BaseException as error:
            self._on_death("lease keeper", error)

    def _wait(self, due: float) -> bool:
        """Waits until then; False when the thread is to end. Meanwhile it looks whether the event loop still turns."""
        with self._wake:
            while not self._stopping:
                left = due - time.monotonic()
                if left <= 0:
                    return True
                asleep_at = time.monotonic()
                self._wake.wait(min(left, _LOOK))
                self._look_at_loop(stood=time.monotonic() - asleep_at > _LOOK + _STOOD)
            return False

    def _look_at_loop(self, *, stood: bool) -> None:
        silent, task = self._blocked_task()
        if silent < _BLOCKED:
            self._warned = False
        elif not self._warned:
            self._warned = True
            emit(LoopBlocked(task, silent, stood))
