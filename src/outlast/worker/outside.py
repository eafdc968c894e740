"""What `ctx` has done beside plain operations, in each colour: a function of the host's called, time waited, a report made."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from outlast.domain.errors import Invalid, OutlastError
from outlast.store.program import Operation
from outlast.store.protocol import Store, SyncRunner


@dataclass(frozen=True, slots=True)
class Calling:
    """A function of the host's is called with the provider's key. A coroutine is cancelled after so many seconds."""

    fn: Callable[[str], Any]
    key: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time passes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reporting:
    """An operation whose failure is a value, and which is not given up when the handler is cancelled."""

    operation: Operation[Any]


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a call or report: a value or an exception. `never`: it surely was not made at all."""

    value: Any = None
    error: BaseException | None = None
    never: bool = False

    def get(self) -> object:
        """The value; raises the exception."""
        if self.error is not None:
            raise self.error
        return self.value


Doing: TypeAlias = Operation[Any] | Calling | Waiting | Reporting


async def aperform(doing: Doing, store: Store) -> object:
    """Does it without blocking the loop."""
    match doing:
        case Calling(fn, key, timeout):
            return await _acall(fn, key, timeout)
        case Waiting(seconds):
            import asyncio  # noqa: PLC0415 - `import outlast` stays quick

            await asyncio.sleep(seconds)
            return None
        case Reporting(operation):
            return await _areport(operation, store)
        case Operation() as operation:
            return await store.run(operation)


def perform(doing: Doing, store: SyncRunner) -> object:
    """Does it in this thread."""
    match doing:
        case Calling(fn, key, _timeout):
            return _call(fn, key)
        case Waiting(seconds):
            time.sleep(seconds)
            return None
        case Reporting(operation):
            try:
                return Made(store.run_sync(operation))
            except OutlastError as error:
                return Made(error=error)
        case Operation() as operation:
            return store.run_sync(operation)


async def _acall(fn: Callable[[str], Any], key: str, timeout: float) -> Made:
    import asyncio  # noqa: PLC0415 - `import outlast` stays quick

    try:
        async with asyncio.timeout(timeout):
            value = fn(key)
            return Made(await value if inspect.isawaitable(value) else value)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # the attempt is over; what became of the call is found out by the next one
        ended = RuntimeError("The call was cancelled by what it called.")  # as it is, a task group would pass over it
        ended.__cause__ = error
        return Made(error=ended)
    except BaseException as error:
        return Made(error=error)


def _call(fn: Callable[[str], Any], key: str) -> Made:
    try:
        value = fn(key)
    except BaseException as error:
        return Made(error=error)
    if inspect.iscoroutine(value):
        value.close()  # it has not begun
        return Made(error=Invalid("A task that is a plain def gives plain functions to ctx.effect, no coroutines."), never=True)
    return Made(value)


async def _areport(operation: Operation[Any], store: Store) -> Made:
    import asyncio  # noqa: PLC0415 - `import outlast` stays quick

    async def run() -> Made:
        try:
            return Made(await store.run(operation))
        except OutlastError as error:
            return Made(error=error)

    reported: asyncio.Future[Made] = asyncio.ensure_future(run())
    reported.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(reported)
