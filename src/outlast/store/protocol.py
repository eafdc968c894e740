"""What a store offers to client and worker, whatever is behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from outlast.store.drive import Fault, SubPrograms
from outlast.store.program import Operation, T
from outlast.store.programs.status import Whereabouts


class Hints:
    """Word that a queue may have work. Never authority: a lost hint costs one polling interval."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], None]] = []
        self._lock = threading.Lock()

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Calls the listener, from any thread, with a queue's name; returns what ends that."""
        with self._lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def send(self, queue: str) -> None:
        """Tells the listeners of this process."""
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(queue)


class SyncRunner(Protocol):
    """Runs operations and waits for them."""

    def run_sync(self, operation: Operation[T]) -> T:
        """The operation's value; raises the errors of the domain, with nothing written unless the error says otherwise."""
        ...

    def close_sync(self) -> None:
        """Gives back what it holds."""
        ...


class Store(SyncRunner, Protocol):
    """A store in both colours. Opens nothing before the first call; safe before fork."""

    hints: Hints

    @property
    def dialect(self) -> str:
        """Postgresql or sqlite."""
        ...

    @property
    def default_lease(self) -> float:
        """Seconds a task is held without renewal, unless set otherwise."""
        ...

    async def run(self, operation: Operation[T]) -> T:
        """As `run_sync`, without blocking the loop."""
        ...

    @property
    def texts(self) -> Mapping[str, str]:
        """The statements by name, for programs that run on a session of the host's."""
        ...

    @property
    def subprograms(self) -> SubPrograms:
        """What stands for a statement of that name."""
        ...

    async def whereabouts(self, *, fresh: bool) -> Whereabouts:
        """Where the store's own connections are; as it was found before, unless fresh. Invalid if nobody else may open it."""
        ...

    def whereabouts_sync(self, *, fresh: bool) -> Whereabouts:
        """The same in blocking code."""
        ...

    def fault_of(self, error: BaseException) -> Fault:
        """What a driver's error means."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """While it lasts a transaction of the host's may be open on a session. On SQLite there is one at a time; others wait here."""
        ...

    def turn_sync(self) -> AbstractContextManager[None]:
        """The same in blocking code."""
        ...

    def lend(self) -> AbstractAsyncContextManager[Any]:
        """A connection of the driver's, for a transaction of the host's in async code."""
        ...

    def lend_sync(self) -> AbstractContextManager[Any]:
        """A connection of the driver's, for a transaction of the host's in blocking code."""
        ...

    def lend_at_most(self, connections: int) -> None:
        """How many connections of each colour may be lent at once; who asks for one more waits."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What who starts a worker on it should know, in sentences."""
        ...

    def reserved(self) -> SyncRunner:
        """A runner of its own connection, for the lease keeper; on SQLite the writer thread, ahead of its queue."""
        ...

    def announce(self, queues: tuple[str, ...]) -> None:
        """After a commit: a hint to the workers of this process and, where the store can, of others. Best effort, never waits."""
        ...

    async def listen(self) -> None:
        """Passes on the hints of other processes, as long as it is not cancelled."""
        ...

    async def close(self) -> None:
        """Gives back what it holds."""
        ...
