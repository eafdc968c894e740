"""The worker: starts its loops, drains them on request, and ends with an error when one of them dies."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from outlast.domain.defaults import GRACE, PURGE, PURGE_LEAST, PURGES_PER_RETENTION, SLOTS, SWEEPS_PER_LEASE, ZOMBIES, Settings
from outlast.domain.errors import Invalid, OutlastError
from outlast.domain.registry import Registry
from outlast.observe.events import AttemptStarted, LoopDied, StoreNote, StoreTrouble, WorkerStarted, WorkerStopping, Zombie
from outlast.observe.hub import emit
from outlast.store.programs import claims, status
from outlast.store.protocol import Store, SyncRunner
from outlast.store.sessions.transaction import Sessions
from outlast.worker.attempt import Ended, Runner
from outlast.worker.claimer import Claimer, Slots
from outlast.worker.committer import Committer, Windows
from outlast.worker.hold import Hold
from outlast.worker.keeper import Keeper
from outlast.worker.purger import Purger
from outlast.worker.scheduler import Scheduler
from outlast.worker.sweeper import Sweeper
from outlast.worker.threads import Threads

_WATCH = 0.05
_LAST_COMMITS = 0.5
_LAST_WORD = 1.0
_SHORTEST_LEASE = 0.1


class Exit(IntEnum):
    """How a worker ended: the command's exit code."""

    CLEAN = 0
    LOOP_DIED = 70
    ZOMBIES = 75


@dataclass(frozen=True, slots=True)
class Options:
    """How a worker runs. `queues` None: every queue in which there is work for it, with 8 slots each. Seconds."""

    queues: Mapping[str, int] | None = None
    lease: float | None = None
    grace: float = GRACE
    zombies: int = ZOMBIES

    def __post_init__(self) -> None:
        if not (math.isfinite(self.grace) and self.grace >= 0):
            raise Invalid(f"The grace period ({self.grace} s) must be finite, 0 or more.")
        if self.zombies < 1:
            raise Invalid(f"The number of hanging handlers that end a worker ({self.zombies}) must be 1 or more.")


class Worker:
    """One worker process's engine. `run` returns when it was told to stop, or when it cannot go on."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        settings: Settings,
        options: Options | None = None,
        *,
        sessions: Sessions | None = None,
    ) -> None:
        options = options or Options()
        self.id = secrets.token_hex(8)  # fresh at each start: never the name of a host or container
        self._store = store
        self._sessions = sessions or Sessions()
        self._options = options
        self.lease = _lease(store, settings, options)
        named = options.queues is not None
        queues = options.queues if options.queues is not None else dict.fromkeys(registry.queues(), SLOTS)
        if not queues or any(n < 1 for n in queues.values()):
            raise Invalid("A worker needs at least one queue, each with one slot or more: --queue NAME=SLOTS.")
        self._slots = Slots(queues, others=None if named else SLOTS)
        store.lend_at_most(sum(queues.values()))  # an attempt needs one at most
        self._handlers = registry.handlers()
        self._settings = settings
        self._registry = registry
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._moved = asyncio.Event()
        self._running: dict[asyncio.Task[None], Hold] = {}
        self._zombies: set[Hold] = set()
        self._exit = Exit.CLEAN
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat = time.monotonic()
        self.ready = False

    def stop(self) -> None:
        """Drains: no claim from now on; what does not end in the grace period is handed back. A second call does so at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()
        self.ready = False

    async def run(self, *, on_ready: Callable[[str], None] | None = None) -> Exit:
        """Works until stopped. The first answer of the store is waited for, so that a worker says ready when it is."""
        self._loop = asyncio.get_running_loop()
        windows = Windows(round(self._settings.attention_window * 1000), round(self._settings.retention * 1000))
        reserved = self._store.reserved()
        self._keeper = Keeper(reserved, lease=self.lease, on_death=self._died_in_thread, blocked_task=self._blocked_task)
        runner = Runner(
            self._registry,
            self._store,
            Threads(),
            worker=self.id,
            max_output=self._settings.max_output,
            sessions=self._sessions,
            retention_ms=windows.retention_ms,
        )
        self._runner = runner
        self._committer = Committer(self._store, windows, worker=self.id, settled=self._settled)
        self._claimer = Claimer(self._store, self._slots, worker=self.id, handlers=self._handlers, lease=self.lease, started=self._started)
        sweep = min(self._settings.sweep, self.lease / SWEEPS_PER_LEASE)
        sweeper = Sweeper(self._store, windows, interval=sweep, moved=self._claimer.key_freed)
        purger = Purger(
            self._store,
            retention_ms=windows.retention_ms,
            horizon_ms=round(self._settings.replay_horizon * 1000),
            interval=max(min(PURGE, self._settings.retention / PURGES_PER_RETENTION), PURGE_LEAST),
        )
        scheduler = Scheduler(self._store, self._registry, Threads(), max_input=self._settings.max_input, retention_ms=windows.retention_ms)
        if not await self._reach_store(reserved):
            return Exit.CLEAN
        self._keeper.start()
        for note in self._store.notes():
            emit(StoreNote(note))
        unsubscribe = self._store.hints.subscribe(self._hinted)
        loops = [
            self._supervised("claimer", self._claimer.loop()),
            self._supervised("committer", self._committer.loop()),
            self._supervised("sweep", sweeper.loop()),
            self._supervised("purge", purger.loop()),
            self._supervised("scheduler", scheduler.loop()),
            self._supervised("watch", self._watch()),
            self._supervised("listener", self._store.listen()),
        ]
        self.ready = not self._stop.is_set()
        emit(WorkerStarted(self.id, tuple(self._slots.limits)))
        if on_ready is not None:
            on_ready(self.id)
        try:
            await self._stop.wait()
            await self._drain()
        except asyncio.CancelledError:  # from outside: what is held goes back all the same
            self._hurry.set()
            self.stop()
            await self._drain()
            raise
        finally:
            unsubscribe()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            self._keeper.stop()
            if reserved is not self._store:
                await asyncio.to_thread(reserved.close_sync)
        return self._exit

    async def _reach_store(self, reserved: SyncRunner) -> bool:
        """Waits for the store. Renewals get their own connection now: later there may be none left."""
        pause = 0.2
        while not self._stop.is_set():
            try:
                await self._store.run(status.clock())
                await asyncio.to_thread(reserved.run_sync, status.clock())
            except OutlastError as error:
                if not error.retryable:
                    raise
                emit(StoreTrouble("start", error.code, pause, error.message))
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._stop.wait()
                pause = min(pause * 2, 5.0)
            else:
                return True
        return False

    # -- attempts ---------------------------------------------------------------------------------------------

    def _started(self, holds: list[Hold]) -> None:
        self._keeper.add(holds)
        loop = asyncio.get_running_loop()
        for hold in holds:
            claimed = hold.claimed
            emit(
                AttemptStarted(
                    claimed.ref.job_id,
                    claimed.ref.no,
                    claimed.handler,
                    claimed.ref.fence,
                    hold.attempt,
                    claimed.correlation_id,
                )
            )
            task = loop.create_task(self._attempt(hold), name=claimed.handler)
            self._running[task] = hold
            task.add_done_callback(self._ended)

    async def _attempt(self, hold: Hold) -> None:
        outcome = await self._runner.run(hold)
        self._committer.put(hold, outcome)

    def _ended(self, task: asyncio.Task[None]) -> None:
        hold = self._running.pop(task, None)
        if hold is not None:
            self._left_running(hold)
        if task.cancelled() or task.exception() is None:
            if hold is not None and task.cancelled():
                self._committer.put(hold, Ended(hold.lost() or "replaced"))
            return
        error = task.exception()
        if hold is not None:
            self._committer.put(hold, Ended("replaced"))
        self._died("attempt", error if error is not None else RuntimeError())

    def _left_running(self, hold: Hold) -> None:
        """A thread cannot be ended: when its claim was cut, its code goes on after the task that waited for it."""
        threads = tuple(hold.threads)
        if not hold.cut or not threads:
            self._zombies.discard(hold)
            return
        self._count_zombie(hold)
        for thread in threads:
            thread.add_done_callback(lambda _thread: self._from_thread(self._came_to_an_end, hold))

    def _came_to_an_end(self, hold: Hold) -> None:
        if not hold.threads:
            self._zombies.discard(hold)

    def _settled(self, hold: Hold, opened: int, due_in: float | None) -> None:
        self._moved.set()
        self._keeper.remove(hold)
        self._slots.give(hold)
        if hold.claimed.slot_key is not None:
            self._claimer.key_freed()
        if opened or self._slots.free(hold.claimed.queue) == 1:
            self._claimer.hint()
        if due_in is not None:
            self._claimer.due_in(due_in)

    async def _watch(self) -> None:
        """Ends by force, where it can, the code of claims that are over; counts what goes on regardless."""
        while True:
            self._beat = time.monotonic()
            for task, hold in tuple(self._running.items()):
                if not hold.cut and self._over(hold):
                    hold.cut = True
                    task.cancel()
                elif hold.cut and hold not in self._zombies:
                    self._count_zombie(hold)
            await asyncio.sleep(_WATCH)

    def _over(self, hold: Hold) -> bool:
        # Between a cancel and the end of the lease the code may still come to a safe boundary of its own.
        return hold.lost() in ("replaced", "deadline") or time.monotonic() >= hold.lease_until

    def _count_zombie(self, hold: Hold) -> None:
        self._zombies.add(hold)
        self._keeper.remove(hold)
        self._slots.give(hold)  # others may run in its place; its own writes are refused
        limit = self._options.zombies
        emit(Zombie(hold.claimed.handler, hold.claimed.ref.job_id, len(self._zombies), limit, hold.claimed.correlation_id))
        self._claimer.hint()
        if len(self._zombies) >= limit:
            self._exit = Exit.ZOMBIES
            self.stop()

    # -- stopping ---------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        self._claimer.stopping = True
        self._claimer.hint()
        emit(WorkerStopping(self.id, len(self._running)))
        until = time.monotonic() + (self._options.grace if self._exit is Exit.CLEAN else 0.0)
        while self._busy() and not self._hurry.is_set() and (left := until - time.monotonic()) > 0:
            await self._moved_within(left)
        await self._claim_answered()
        unfinished = [hold for hold in self._running.values() if hold.lost() is None]
        for hold in unfinished:
            hold.lose("drained")
            self._keeper.remove(hold)
        for task in tuple(self._running):
            task.cancel()
        await self._hand_back(unfinished)
        until = time.monotonic() + _LAST_COMMITS
        while not self._committer.idle and (left_over := until - time.monotonic()) > 0:
            await self._moved_within(left_over)

    async def _claim_answered(self) -> None:
        """A claim may have been committed when the stop came: its answer names what else has to be handed back."""
        until = time.monotonic() + _LAST_COMMITS
        while self._claimer.claiming and (left := until - time.monotonic()) > 0:
            await self._moved_within(left)

    async def _moved_within(self, seconds: float) -> None:
        """Until an attempt ended or was settled, a second stop came, or the time is over."""
        self._moved.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, _WATCH)):
                await self._moved.wait()

    def _busy(self) -> bool:
        live = any(hold not in self._zombies for hold in self._running.values())
        return live or self._claimer.claiming or not self._committer.idle

    async def _hand_back(self, holds: list[Hold]) -> None:
        if not holds:
            return
        with suppress(TimeoutError, OutlastError):
            async with asyncio.timeout(_LAST_WORD):
                await self._store.run(claims.hand_back([hold.claimed.ref for hold in holds]))

    # -- supervision ------------------------------------------------------------------------------------------

    def _supervised(self, name: str, loop: Awaitable[None]) -> asyncio.Task[None]:
        async def run() -> None:
            try:
                await loop
            except asyncio.CancelledError as error:
                if self._stop.is_set():
                    raise
                self._died(name, error)  # somebody else cancelled it: a library's shutdown, or a handler
            except BaseException as error:
                self._died(name, error)
            else:
                if not self._stop.is_set():
                    self._died(name, RuntimeError())

        return asyncio.create_task(run(), name=f"outlast-{name}")

    def _died(self, name: str, error: BaseException) -> None:
        emit(LoopDied(name, _type_and_place(error)))
        self._exit = Exit.LOOP_DIED
        self._hurry.set()
        self.stop()

    def _died_in_thread(self, name: str, error: BaseException) -> None:
        self._from_thread(self._died, name, error)

    def _hinted(self, queue: str) -> None:
        if queue in self._slots.limits or queue == "*" or self._slots.takes_any:
            self._from_thread(self._claimer.hinted, queue)

    def _from_thread(self, call: Callable[..., object], *args: object) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody needs it any more
                self._loop.call_soon_threadsafe(call, *args)

    def _blocked_task(self) -> tuple[float, str]:
        silent = time.monotonic() - self._beat
        task = asyncio.current_task(self._loop) if self._loop is not None and silent > _WATCH else None
        return silent, task.get_name() if task is not None else "something outside tasks"


def _type_and_place(error: BaseException) -> str:
    """What an exception was and where, without its text, which may hold values of users."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def _lease(store: Store, settings: Settings, options: Options) -> float:
    lease = options.lease if options.lease is not None else settings.lease
    if lease is None:
        lease = store.default_lease
    if not (math.isfinite(lease) and lease >= _SHORTEST_LEASE):
        raise Invalid(f"The lease ({lease} s) must be finite, and {_SHORTEST_LEASE} s is the least that can be renewed in time.")
    return lease
