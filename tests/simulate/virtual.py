"""While it lasts the package has the simulation's time and chance in place of the machine's, and its waits are a few, longer ones."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import secrets
import sys
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any, Final

from outlast.domain.errors import OutlastError
from outlast.observe import hub
from outlast.observe.events import Event
from outlast.store.sqlite import forks
from outlast.worker import claimer, runtime, scheduler
from outlast.worker.keeper import RENEWALS_PER_LEASE, Keeper
from simulate.loop import InlineThreads

WAITS: Final[tuple[tuple[ModuleType, str, float], ...]] = (
    (claimer, "POLL_MIN", 8.0),
    (claimer, "POLL_MAX", 60.0),
    (claimer, "_KEYED_EVERY", 25.0),
    (scheduler, "LONGEST_PAUSE", 60.0),
    (runtime, "_WATCH", 15.0),
    (runtime, "SWEEPS_PER_LEASE", 2),
)
"""Only latencies: nothing that is decided by the store's clock is among them."""


class Now:
    """What is going on at present, for those who cannot be told by an argument: the package's own modules, and the handlers."""

    world: Any = None


class _Time:
    """Stands for the module `time`."""

    @staticmethod
    def monotonic() -> float:
        now: float = Now.world.clock.now
        return now

    @staticmethod
    def time() -> float:
        return int(Now.world.clock.ms()) / 1000

    @staticmethod
    def time_ns() -> int:
        return int(Now.world.clock.ms()) * 1_000_000

    @staticmethod
    def sleep(seconds: float) -> None:
        raise AssertionError("nothing blocks in a simulation")


class _Random:
    """Stands for the module `random`, `os.urandom`, `uuid.uuid4` and `secrets.token_hex`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(Now.world.random, name)


class _Os:
    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @staticmethod
    def urandom(size: int) -> bytes:
        made: bytes = Now.world.random.randbytes(size)
        return made


class _Uuid:
    @staticmethod
    def uuid4() -> uuid.UUID:
        return uuid.UUID(bytes=Now.world.random.randbytes(16), version=4)


class _Secrets:
    @staticmethod
    def token_hex(size: int) -> str:
        made: str = Now.world.random.randbytes(size).hex()
        return made


class _Gate:
    """Stands for the gate before forks: nobody forks here."""

    @staticmethod
    def work() -> AbstractContextManager[None]:
        return nullcontext()


def _told(event: Event) -> None:
    Now.world.told(event)


class LoopKeeper(Keeper):
    """The lease keeper with a task in place of its thread. What it does each time is its own `run_once`."""

    _task: Any = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._beats(), name="outlast-keeper")

    async def _beats(self) -> None:
        interval = self._lease / RENEWALS_PER_LEASE
        pause = interval
        while not self._stopping:
            await asyncio.sleep(pause)
            try:
                settled = self.run_once()
            except OutlastError:
                settled = False
            pause = interval * Now.world.random.uniform(0.85, 1.0) if settled else interval / 4

    def stop(self) -> None:
        self._stopping = True
        if self._task is not None:
            self._task.cancel()


_STAND_INS: Final[tuple[tuple[ModuleType, str, Any], ...]] = (
    (time, "time", _Time()),
    (random, "random", _Random()),
    (os, "os", _Os()),
    (uuid, "uuid", _Uuid()),
    (secrets, "secrets", _Secrets()),
)
_PARTS = ("outlast.worker.", "outlast.client.", "outlast.store.sqlite.store", "outlast.store.sqlite.writer")


@contextmanager
def virtual() -> Iterator[None]:
    """Puts it all in place, and back afterwards."""
    before: list[tuple[ModuleType, str, Any]] = []

    def put(module: ModuleType, name: str, value: Any) -> None:
        before.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    subscribers = list(hub._subscribers)
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_PARTS):
            for real, attribute, stand_in in _STAND_INS:
                if getattr(module, attribute, None) is real:
                    put(module, attribute, stand_in)
    for module, attribute, value in WAITS:
        put(module, attribute, value)
    put(forks, "gate", _Gate())
    put(runtime, "Threads", InlineThreads)
    put(runtime, "Keeper", LoopKeeper)
    hub._subscribers[:] = [_told]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "coroutine .* was never awaited")  # those of processes that crashed as they began
            yield
            gc.collect()
    finally:
        for module, attribute, value in reversed(before):
            setattr(module, attribute, value)
        hub._subscribers[:] = subscribers
        Now.world = None
