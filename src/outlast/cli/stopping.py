"""How a worker's process ends on a signal: by draining, and in any case in time, whatever its threads, its loop or its store do."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
LATE: Final = 1.5
"""Seconds after the grace period in which what is left is handed back; then the process ends."""
_PATIENCE: Final = 2  # signals after which there is none left


class Stopping:
    """Watches for signals in a thread of its own, which hears them even while the main thread is deep in other code.

    Before `begin` nothing is held yet, and a signal ends the process at once. After it the first one stops, the second hurries, the
    third ends the process; and it ends `LATE` seconds after the grace period even if the stop did not come through.
    """

    def __init__(self) -> None:
        self._begun: tuple[Callable[[], None], float] | None = None
        self._wake = -1
        self._code = 0
        self._until: float | None = None

    def install(self) -> None:
        """Takes the signals over; again is no matter."""
        if self._wake >= 0:
            return
        heard, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _heard)
        threading.Thread(target=self._watch, args=(heard,), name="outlast-signals", daemon=True).start()

    def begin(self, stop: Callable[[], None], *, grace: float) -> None:
        """From now on a signal calls `stop`, from another thread."""
        self._begun = (stop, grace)

    def limit(self, seconds: float, code: int) -> None:
        """The process stops by itself, without a signal: it ends then at the latest, with this code."""
        self._code = self._code or code
        if self._until is None:
            self._until = time.monotonic() + seconds
            with suppress(OSError):
                os.write(self._wake, b"\0")  # so that the thread looks at the time

    def _watch(self, heard: int) -> None:
        count = 0
        while True:
            left = None if self._until is None else max(self._until - time.monotonic(), 0.0)
            ready, _, _ = select.select([heard], [], [], left)
            if not ready:
                os._exit(self._code)
            for number in os.read(heard, 64):
                if number in SIGNALS:
                    count += 1
                    self._hear(count)

    def _hear(self, count: int) -> None:
        begun = self._begun
        if begun is None or count > _PATIENCE:
            os._exit(self._code)
        stop, grace = begun
        limit = time.monotonic() + (grace if count == 1 else 0.0) + LATE
        self._until = limit if self._until is None else min(self._until, limit)
        stop()


def leave(code: int) -> NoReturn:
    """Ends the process now, after what was printed is out: threads that still run cannot hold it up."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _heard(_number: int, _frame: FrameType | None) -> None:
    """The thread has it."""


stopping: Final = Stopping()
"""Of this process; there is one set of signals."""
