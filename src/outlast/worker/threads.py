"""Threads for plain functions. A thread cannot be killed: one that outlives its lease is counted, and others are made in its place."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_IDLE_SECONDS = 30.0


class Threads:
    """Daemon threads, made as needed and reused, so that what a library keeps per thread (a connection, say) is kept."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[contextvars.Context, Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._idle = 0
        self._made = 0
        self._lock = threading.Lock()

    def submit(self, fn: Callable[[], T]) -> Future[T]:
        """The future of `fn()`, run in a thread with a copy of the caller's context variables."""
        future: Future[T] = Future()
        with self._lock:
            self._work.put((contextvars.copy_context(), fn, future))
            if self._idle > 0:
                self._idle -= 1
                return future
            self._made += 1
            name = f"outlast-task-{self._made}"
        threading.Thread(target=self._loop, name=name, daemon=True).start()
        return future

    async def run(self, fn: Callable[[], T], running: set[Future[Any]]) -> T:
        """`fn()`, run in a thread, without blocking the loop. It stands in `running` until its code has ended, cancelled or not."""
        future = self.submit(fn)
        running.add(future)
        future.add_done_callback(running.discard)
        return await asyncio.wrap_future(future)

    def _loop(self) -> None:
        while True:
            try:
                context, fn, future = self._work.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._idle > 0 and self._work.empty():
                        self._idle -= 1
                        return
                continue
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(context.run(fn))
                except BaseException as error:  # SystemExit of a handler is its failure, not the worker's end
                    future.set_exception(error)
            del context, fn, future
            with self._lock:
                self._idle += 1
