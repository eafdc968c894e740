"""Claims runnable tasks: one claimer a process, as many as there are free slots, queue by queue; wakes on a hint, else polls."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from outlast.domain.defaults import POLL_MAX, POLL_MIN
from outlast.domain.errors import OutcomeUnknown, OutlastError
from outlast.domain.limits import START, Place
from outlast.domain.work import Claimed, Turn
from outlast.observe.events import StoreTrouble
from outlast.observe.hub import emit
from outlast.store.program import Operation
from outlast.store.programs import claims, slots
from outlast.store.protocol import Store
from outlast.worker.hold import Hold

BATCH = 500
WAKE_LIMIT = 1_000
MAX_QUEUES = 200
_FEW = 3  # up to so many queues are asked one by one
_LOOK_EVERY = 1.0  # seconds between two looks for queues that nobody named
_ORPHANS_AFTER = 2.0
_KEYED_EVERY = 0.1  # seconds between two looks for tasks with a concurrency key, while there are none that can start
_KEYED_COST = 20  # and at least so many times what the last look took

T = TypeVar("T")


class Slots:
    """How many tasks of each queue may run here, and how many do; one workload cannot take them all."""

    def __init__(self, limits: Mapping[str, int], *, others: int | None = None) -> None:
        self.limits = dict(limits)
        self.used = dict.fromkeys(limits, 0)
        self._others = others

    @property
    def takes_any(self) -> bool:
        """Whether queues that nobody named are served as well."""
        return self._others is not None

    def learn(self, queues: Iterable[str]) -> bool:
        """Serves these queues too, if any is served; whether one was new. A plan may name a queue that no task does."""
        new = [queue for queue in queues if queue not in self.limits] if self._others is not None else []
        for queue in new[: MAX_QUEUES - len(self.limits)]:
            self.limits[queue] = self._others or 1
            self.used[queue] = 0
        return bool(new)

    def free(self, queue: str) -> int:
        """How many more of this queue may be claimed."""
        return self.limits[queue] - self.used[queue]

    def take(self, queue: str) -> None:
        """One more of this queue runs."""
        self.used[queue] += 1

    def give(self, hold: Hold) -> None:
        """One of its queue ended, or is counted no more."""
        if not hold.slot_freed:
            hold.slot_freed = True
            self.used[hold.claimed.queue] -= 1


class Claimer:
    """The claiming loop. `started(holds)` gets what was claimed, before anything else happens."""

    def __init__(
        self,
        store: Store,
        slots: Slots,
        *,
        worker: str,
        handlers: tuple[str, ...],
        lease: float,
        started: Callable[[list[Hold]], None],
    ) -> None:
        self._store = store
        self._slots = slots
        self._worker = worker
        self._handlers = handlers
        self._lease = lease
        self._started = started
        self._number = 0
        self._wake = asyncio.Event()
        self._interval = POLL_MIN
        self._wake_due = 0.0
        self._look_due = 0.0
        self._keyed_due: dict[str, float] = {}  # by queue: when to look again for tasks with a concurrency key
        self._key_news = 0  # how often there was word that a slot is free
        self._keyed_first: set[str] = set()  # queues in which they got no slot the last time
        self._turns: dict[str, Place] = {}  # by queue: which key was served last
        self._orphans: list[tuple[float, str, str]] = []  # (when, queue, holder) of claims whose commit was unknown
        self.stopping = False
        self.claiming = False  # a claim was sent, and is not answered yet
        self.claimed_at = time.monotonic()

    def hint(self) -> None:
        """There may be work: look now."""
        self._interval = POLL_MIN
        self._wake.set()

    def hinted(self, queue: str) -> None:
        """Word came, from whoever, that a queue has work."""
        if queue != "*":
            self._slots.learn([queue])
        self.key_freed()

    def key_freed(self) -> None:
        """A slot of a concurrency key is free: what waited for it may start."""
        self._look_for_keys()
        self.hint()

    def _look_for_keys(self) -> None:
        self._key_news += 1
        self._keyed_due.clear()

    def due_in(self, seconds: float) -> None:
        """Something falls due then."""
        self._wake_due = min(self._wake_due, time.monotonic() + seconds)
        self._wake.set()

    async def loop(self) -> None:
        """Claims until told to stop."""
        trouble = 0.0
        while not self.stopping:
            self._wake.clear()
            try:
                found = await self.run_once()
                trouble = 0.0
            except OutlastError as error:
                trouble = min(max(trouble * 2, 0.2), 5.0)
                pause = trouble * random.uniform(0.7, 1.3)
                emit(StoreTrouble("claimer", error.code, pause, error.message))
                await asyncio.sleep(pause)
                continue
            self.claimed_at = time.monotonic()
            self._interval = POLL_MIN if found else min(self._interval * 1.5, POLL_MAX)
            await self._rest(found)

    async def run_once(self) -> int:
        """Wakes what is due, and claims what the free slots can take; how many tasks were claimed."""
        now = time.monotonic()
        if now >= self._wake_due:
            woken = await self._store.run(claims.wake(WAKE_LIMIT))
            if woken.count:
                self._look_for_keys()
            next_in = POLL_MAX if woken.next_in_ms is None else min(max(woken.next_in_ms / 1000, 0.001), POLL_MAX)
            self._wake_due = time.monotonic() + (0.0 if woken.count == WAKE_LIMIT else next_in)
        await self._adopt_orphans()
        total = 0
        for queue in await self._queues(now):
            total += await self._serve(queue)
        return total

    async def _serve(self, queue: str) -> int:
        """Claims from a queue, with and without concurrency keys; who found no slot left goes first the next time."""
        keyed_first = queue in self._keyed_first
        self._keyed_first.discard(queue)
        total = 0
        for keyed in (keyed_first, not keyed_first):
            if keyed and time.monotonic() < self._keyed_due.get(queue, 0.0):
                continue
            free = self._free(queue)
            if free > 0:
                total += await (self._claim_keyed(queue) if keyed else self._claim(queue, free))
            elif keyed:
                self._keyed_first.add(queue)
        return total

    def _free(self, queue: str) -> int:
        return 0 if self.stopping else min(self._slots.free(queue), BATCH)

    async def _queues(self, now: float) -> list[str]:
        """The queues to claim from: those with a free slot, and of many only those in which something stands."""
        free = [queue for queue in self._slots.limits if self._slots.free(queue) > 0]
        look = self._slots.takes_any and now >= self._look_due
        if not look and len(free) <= _FEW:
            return free
        ready = await self._store.run(claims.ready_queues())
        self._look_due = now + _LOOK_EVERY
        self._slots.learn(sorted(ready))
        return [queue for queue in self._slots.limits if queue in ready and self._slots.free(queue) > 0]

    async def _claim(self, queue: str, limit: int) -> int:
        holder = self._next_holder()
        sent_at = time.monotonic()
        rows = await self._sent(queue, holder, claims.claim(queue, self._handlers, limit, holder, round(self._lease * 1000)))
        return 1 if rows is None else self._take(rows, sent_at)

    async def _claim_keyed(self, queue: str) -> int:
        """One round over the concurrency keys, from behind the one that was served last; how many tasks were claimed."""
        began, news = time.monotonic(), self._key_news
        start = after = self._turns.get(queue, START)
        total = 0
        while (free := self._free(queue)) > 0:
            holder = self._next_holder()
            sent_at = time.monotonic()
            lease_ms = round(self._lease * 1000)
            turn = await self._sent(queue, holder, slots.claim_keyed(queue, self._handlers, free, holder, lease_ms, after=after))
            if turn is None:
                return total + 1
            total += self._take(turn.claimed, sent_at)
            if turn.claimed:
                self._turns[queue] = turn.last
            self._rests(turn)
            if turn.ended and start == START:
                break
            after = START if turn.ended else turn.last
            start = START if turn.ended else start
        if not total and news == self._key_news:  # else a slot was freed behind this look
            ended = time.monotonic()
            self._keyed_due[queue] = ended + max(_KEYED_EVERY, _KEYED_COST * (ended - began))
        return total

    def _rests(self, turn: Turn) -> None:
        if turn.resume_ms is not None:
            self._wake_due = min(self._wake_due, time.monotonic() + turn.resume_ms / 1000)

    def _next_holder(self) -> str:
        self._number += 1
        return f"{self._worker}:{self._number}"

    async def _sent(self, queue: str, holder: str, operation: Operation[T]) -> T | None:
        """What a claim gives; None when it may have been committed, or be about to be."""
        sent_at = time.monotonic()
        self.claiming = True
        try:
            return await self._store.run(operation)
        except OutcomeUnknown:
            # Look now, and once more when it must have ended.
            self._orphans.extend(((0.0, queue, holder), (sent_at + _ORPHANS_AFTER, queue, holder)))
            return None
        finally:
            self.claiming = False

    async def _adopt_orphans(self) -> None:
        now = time.monotonic()
        due = [o for o in self._orphans if o[0] <= now]
        for orphan in due:
            if orphan not in self._orphans:
                continue  # both looks were due, after an outage, and the first one has found its tasks
            _, queue, holder = orphan
            rows = await self._store.run(claims.claimed_by(queue, holder))
            self._orphans.remove(orphan)
            if rows:
                self._orphans = [o for o in self._orphans if o[2] != holder]
                self._take(rows, now - self._lease / 2)

    def _take(self, rows: Sequence[Claimed], sent_at: float) -> int:
        holds = [Hold(row, sent_at=sent_at, lease=self._lease) for row in rows]
        for hold in holds:
            self._slots.take(hold.claimed.queue)
        if holds:
            self._started(holds)
        return len(holds)

    async def _rest(self, found: int) -> None:
        """Until a hint, a free slot or the poll interval; at once when slots are left and work was found."""
        if self.stopping or (found and any(self._slots.free(q) > 0 for q in self._slots.limits)):
            await asyncio.sleep(0)
            return
        pause = min(self._interval, max(self._wake_due - time.monotonic(), 0.001)) * random.uniform(0.8, 1.0)
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            pass
