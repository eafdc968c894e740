"""Signals that end the demo: it is told of them where it can still end what it has started."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal ends the demo."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._number = number

    def end(self) -> NoReturn:
        """Ends this process as the signal does where nobody takes it over, so that whoever sent it sees that it worked."""
        sys.stdout.flush()
        signal.signal(self._number, signal.SIG_DFL)
        signal.raise_signal(self._number)
        raise SystemExit(1)


class Ending:
    """Raises Stopped at the first signal, and never while it is held; later signals change nothing."""

    def __init__(self) -> None:
        self._held = False
        self._heard: int | None = None

    def install(self) -> None:
        """Takes the signals over, except those that whoever started this process had ignored, as nohup does."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._hear)

    @contextmanager
    def held(self) -> Generator[None]:
        """A signal waits until the block has ended: no process is started without its being noted."""
        before = self._heard
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if before is None and self._heard is not None:
            raise Stopped(self._heard)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self._heard is not None:
            return
        self._heard = number
        if not self._held:
            raise Stopped(number)
