"""Sees jobs change, for all streams and waits of a process at once: one loop of reads, however many look on."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

from outlast.client import views
from outlast.client.desk import Desk
from outlast.domain.access import Scope
from outlast.domain.errors import OutlastError
from outlast.domain.model import JobView
from outlast.domain.work import JobRow, Watched
from outlast.http.etags import tag_of
from outlast.observe.events import Event, WatchTrouble
from outlast.observe.hub import emit, subscribe
from outlast.store.programs import status

SOONEST: Final = 0.05
QUICK: Final = 0.2
SLOW: Final = 1.0
TROUBLE: Final = 5.0
NEWEST: Final = 100
"""How many of an owner's newest jobs are looked at for new ones."""
_SHARE: Final = 5.0
"""Reading takes at most a fifth of the time: the pause grows with what a round costs."""
_LONGEST_REST: Final = 2.0
"""But it grows no further than this: one slow read does not keep all readers blind."""


class Subscription:
    """What one reader has not yet been told: the newest state of each job, so that a slow reader costs one entry a job."""

    def __init__(self, scope: Scope, tags: dict[str, str], *, all_jobs: bool) -> None:
        self.scope = scope
        self.all_jobs = all_jobs
        self.tags = tags
        self.watched = set(tags)
        self.ended = False
        self._news: OrderedDict[str, JobView] = OrderedDict()
        self._told = asyncio.Event()

    def offer(self, job: JobView) -> None:
        """Keeps a state that differs from the one the reader knows."""
        tag = tag_of(job)
        if self.tags.get(job.id) == tag:
            return
        self.tags[job.id] = tag
        self._news.pop(job.id, None)
        self._news[job.id] = job
        self._told.set()

    def forget(self, newest: set[str]) -> None:
        """Drops what it knows of jobs that are neither watched nor looked at: a stream may last for years."""
        self.tags = {job_id: tag for job_id, tag in self.tags.items() if job_id in self.watched or job_id in newest}

    def end(self) -> None:
        """Nothing comes any more: the job is gone, or the process stops."""
        self.ended = True
        self._told.set()

    async def news(self, seconds: float) -> list[JobView]:
        """What changed, oldest change first; empty after so many seconds, or at the end."""
        if not self._news and not self.ended:
            try:
                async with asyncio.timeout(seconds):
                    await self._told.wait()
            except TimeoutError:
                return []
        self._told.clear()
        found = list(self._news.values())
        self._news.clear()
        return found


def rest_after(cost: float) -> float:
    """Seconds that no read follows a read of so many seconds, whatever happens."""
    return max(SOONEST, min(cost * _SHARE, _LONGEST_REST))


class _Watch:
    """The loop of one event loop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.subscriptions: set[Subscription] = set()
        self.rounds = 0

    def add(self, subscription: Subscription) -> None:
        self.subscriptions.add(subscription)
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._run(), name="outlast-watcher")
        self._wake.set()

    def remove(self, subscription: Subscription) -> None:
        self.subscriptions.discard(subscription)

    def _hear(self, event: Event) -> None:
        """A worker of this process says what it did: look at once. From any thread."""
        if getattr(event, "job_id", None) is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _run(self) -> None:
        unsubscribe = subscribe(self._hear)
        pause = QUICK
        try:
            while self.subscriptions:
                self._wake.clear()
                started = time.monotonic()
                try:
                    changed = await self._round()
                    pause = QUICK if changed else min(pause * 1.2, SLOW)
                except Exception as error:  # noqa: BLE001 - the streams live on, whatever it was
                    started, pause = time.monotonic(), TROUBLE  # a read that failed says nothing of what reading costs
                    emit(WatchTrouble(error.code if isinstance(error, OutlastError) else type(error).__name__, pause))
                least = rest_after(time.monotonic() - started)
                await self._rest(max(pause, least), least=least)
        finally:
            unsubscribe()

    async def _rest(self, pause: float, *, least: float) -> None:
        await asyncio.sleep(least)
        try:
            async with asyncio.timeout(max(pause - least, 0.0)):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _round(self) -> bool:
        """Reads everything that anybody watches, and tells them; whether anything had changed."""
        self.rounds += 1
        lookers = tuple(self.subscriptions)
        owners = {one.scope for one in lookers if one.all_jobs}
        found = await self._read({job_id for one in lookers for job_id in one.watched}, lookers, owners)
        changed = self._tell(found, lookers)
        unknown = {job_id for one in lookers if one.all_jobs for job_id in _unknown(one, found)}
        if unknown:
            changed = self._tell(await self._read(unknown, lookers, ()), lookers, new=True) or changed
        for one in lookers:
            if one.all_jobs:
                one.forget({job_id for job_id, _ in found.newest.get(one.scope, ())})
        return changed

    async def _read(self, ids: set[str], lookers: Iterable[Subscription], owners: Iterable[Scope]) -> Watched:
        tenants = {one.scope.tenant for one in lookers}
        return await self._desk.store.run(status.watched(sorted(ids), sorted(tenants), tuple(owners), newest=NEWEST))

    def _tell(self, found: Watched, lookers: Iterable[Subscription], *, new: bool = False) -> bool:
        shown: dict[str, JobView] = {}
        changed = False
        for one in lookers:
            for job_id in found.jobs if new and one.all_jobs else tuple(one.watched):
                row = found.jobs.get(job_id)
                if row is None or not _within(row, one.scope):
                    if not new and not one.all_jobs:
                        one.end()
                    elif not new:
                        one.watched.discard(job_id)
                    continue
                view = shown.get(job_id)
                if view is None:
                    view = shown[job_id] = views.job(self._desk.app.base_url, self._desk.app.registry, row)
                changed = changed or one.tags.get(job_id) != tag_of(view)
                one.offer(view)
                if one.all_jobs:
                    (one.watched.discard if view.final and not view.stopping else one.watched.add)(job_id)
        return changed


def _within(row: JobRow, scope: Scope) -> bool:
    return row.tenant == scope.tenant and scope.owner in (None, row.owner)


def _unknown(one: Subscription, found: Watched) -> list[str]:
    """Jobs of an owner that are not watched and stand otherwise than the reader knows."""
    listed = found.newest.get(one.scope, [])
    return [
        job_id for job_id, version in listed if job_id not in one.watched and one.tags.get(job_id, "").partition(".")[0] != str(version)
    ]


class Watcher:
    """Watches on behalf of streams and waits, one loop of reads for each event loop of the process."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()
        self._stopped = False

    @asynccontextmanager
    async def watching(self, scope: Scope, known: Iterable[JobView], *, all_jobs: bool = False) -> AsyncGenerator[Subscription]:
        """A subscription that is told what differs from the states `known`; with all_jobs also of the owner's other jobs."""
        subscription = Subscription(scope, {job.id: tag_of(job) for job in known}, all_jobs=all_jobs)
        if all_jobs:
            subscription.watched = {job.id for job in known if not job.final or job.stopping}
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is None:
            watch = self._watches[loop] = _Watch(self._desk)
        if self._stopped:
            subscription.end()
        watch.add(subscription)
        try:
            yield subscription
        finally:
            watch.remove(subscription)

    def stop(self) -> None:
        """Ends all streams and waits, and those still to come: the process stops. From the loop's own thread, or a signal handler."""
        self._stopped = True
        for loop, watch in tuple(self._watches.items()):
            for subscription in tuple(watch.subscriptions):
                loop.call_soon_threadsafe(subscription.end)

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stopped

    @property
    def rounds(self) -> int:
        """How often the store was read so far."""
        return sum(watch.rounds for watch in self._watches.values())
