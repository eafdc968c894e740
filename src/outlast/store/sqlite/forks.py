"""At a fork no file of SQLite is open and no transaction under way.

SQLite keeps in memory which locks a process holds on a file, and a fork copies that: a child would believe that it holds what its
parent holds, read where it must not, and wait for ever for what it will never get.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol
from weakref import WeakSet


class Closable(Protocol):
    """What a fork closes, and its user opens anew."""

    def close(self) -> None:
        """Closes the file."""
        ...


class _Gate:
    """Lets threads work on files, or the process fork, never both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working = 0
        self._forking = 0
        self._open: WeakSet[Closable] = WeakSet()

    @contextmanager
    def work(self) -> Generator[None, None, None]:
        """While it lasts the process does not fork: from the opening of a file, or its first lock, to the end of the transaction."""
        with self._changed:
            while self._forking:
                self._changed.wait()
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def opened(self, connection: Closable) -> None:
        """A connection that a fork has to close."""
        self._open.add(connection)

    def before(self) -> None:
        """Waits for who works, at most as long as a transaction takes, and closes what is open."""
        with self._changed:
            self._forking += 1
            while self._working:
                self._changed.wait()
            for connection in tuple(self._open):
                with suppress(Exception):
                    connection.close()
            self._open.clear()

    def after(self) -> None:
        """In the parent: all go on, and open what they need."""
        with self._changed:
            self._forking -= 1
            self._changed.notify_all()


gate = _Gate()


def _before() -> None:
    gate.before()


def _in_parent() -> None:
    gate.after()


def _in_child() -> None:
    # Nobody but the thread that forked lives on here, and another may have held the old one's lock.
    global gate  # noqa: PLW0603 - one a process
    gate = _Gate()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
