"""Who writes next: one transaction at a time in this process, in order of asking, but for the store's own writer, which goes first.

SQLite lets one writer in at a time anyway; here others wait for it without blocking the loop that it may need to come to its end.
The writer thread goes ahead of those who wait, so that leases are renewed between two transactions of the host's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager


class Turns:
    """Hands the turn from one to the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[Future[None]] = deque()

    def ask(self, *, first: bool = False) -> Future[None]:
        """Done when it is the caller's turn. first: ahead of all who wait."""
        future: Future[None] = Future()
        with self._lock:
            if not self._taken:
                self._taken = True
                future.set_result(None)
            elif first:
                self._waiting.appendleft(future)
            else:
                self._waiting.append(future)
        return future

    def give(self, future: Future[None]) -> None:
        """Ends the turn that was asked for with this future; or the wait for it."""
        if future.cancel():
            return
        with self._lock:
            while self._waiting:
                following = self._waiting.popleft()
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            self._taken = False

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None, None]:
        """The turn, waited for without blocking the loop."""
        from asyncio import wrap_future  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        future = self.ask()
        try:
            await wrap_future(future)
            yield
        finally:
            self.give(future)

    @contextmanager
    def turn_sync(self) -> Generator[None, None, None]:
        """The turn, waited for in this thread."""
        future = self.ask()
        try:
            future.result()
            yield
        finally:
            self.give(future)
