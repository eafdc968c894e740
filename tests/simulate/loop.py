"""An event loop of asyncio's kind for one simulated process: time is the simulation's, and nothing runs unless it is told to.

What runs on it is asyncio itself (tasks, events, time-outs, `to_thread`), with two differences: there are no sockets, and a function
that asks for a thread is run at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

_MANY = 64


class Clock:
    """The one time there is: seconds since the simulation began."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.now = 0.0

    def ms(self) -> int:
        """As the store reads it."""
        return self.start_ms + int(self.now * 1000)


class Handle:
    """What was asked for, and may be cancelled."""

    __slots__ = ("args", "callback", "context", "when")

    def __init__(self, callback: Callable[..., object] | None, args: tuple[Any, ...], context: contextvars.Context, when: float) -> None:
        self.callback, self.args, self.context, self.when = callback, args, context, when

    def cancel(self) -> None:
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.callback is None


class Loop(asyncio.AbstractEventLoop):
    """Runs what is ready when `step` is called, and no more than that."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._timers: list[tuple[float, int, Handle]] = []
        self.ready: deque[Handle] = deque()
        self.tasks: list[asyncio.Task[Any]] = []

    # -- what asyncio asks of it ------------------------------------------------------------------------------

    def time(self) -> float:
        return self._clock.now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None) -> Any:
        handle = Handle(callback, args, context or contextvars.copy_context(), 0.0)
        self.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None) -> Any:
        return self.call_at(self._clock.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None) -> Any:
        handle = Handle(callback, args, context or contextvars.copy_context(), when)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None) -> asyncio.Task[Any]:
        task = asyncio.Task[Any](coro, loop=self, name=name or "-", context=context)
        self.tasks.append(task)
        if len(self.tasks) > _MANY and len(self.tasks) % _MANY == 0:
            self.tasks = [t for t in self.tasks if not t.done()]
        return task

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the caller's
            future.set_exception(error)
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Of tasks that a crash left behind; what a live one raises is looked at where it ends."""

    # -- what the simulation asks of it -----------------------------------------------------------------------

    @contextmanager
    def current(self) -> Any:
        """While it lasts, this is the running loop."""
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def due_at(self) -> float | None:
        """When something of it will be ready; None: never, by itself."""
        if self.ready:
            return self._clock.now
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def step(self) -> None:
        """Runs what is ready now."""
        timers, now = self._timers, self._clock.now
        while timers and timers[0][0] <= now:
            handle = heapq.heappop(timers)[2]
            if handle.callback is not None:
                self.ready.append(handle)
        asyncio._set_running_loop(self)
        try:
            for _ in range(len(self.ready)):
                handle = self.ready.popleft()
                if handle.callback is not None:
                    handle.context.run(handle.callback, *handle.args)
        finally:
            asyncio._set_running_loop(None)

    def abandon(self) -> None:
        """Ends all that runs on it without another word to anybody: its process is gone."""
        self.ready.clear()
        self._timers.clear()
        with self.current():
            for task in self.tasks:
                if not task.done():
                    _close(task.get_coro())
        self.tasks.clear()
        self.ready.clear()
        self._timers.clear()


def _close(coro: Any) -> None:
    """A coroutine that waits for something in a `finally` has to be told several times."""
    for _ in range(20):
        try:
            coro.close()
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001, S110 - whatever it says now, nobody hears it
            pass
        return


class InlineThreads:
    """As `worker.threads.Threads`: a function is run at once, in the loop."""

    def submit(self, fn: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(contextvars.copy_context().run(fn))
        except BaseException as error:  # noqa: BLE001 - as in a thread
            future.set_exception(error)
        return future

    async def run(self, fn: Callable[[], Any], running: set[Future[Any]]) -> Any:
        return self.submit(fn).result()


Spawn = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
