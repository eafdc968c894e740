"""Runs calls on a store, in both colours."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol, TypeVar

from outlast.client.calls import Call
from outlast.client.submitting import queues_of, still_admitting
from outlast.domain.errors import Locked, OutlastError
from outlast.domain.work import Admission
from outlast.store.program import Operation
from outlast.store.protocol import Store

T = TypeVar("T")


class AsyncRunner(Protocol):
    """Runs operations: a store, or a transaction of the caller's."""

    async def run(self, operation: Operation[T]) -> T:
        """The operation's value."""
        ...


class Runner(Protocol):
    """The same in blocking code."""

    def run_sync(self, operation: Operation[T]) -> T:
        """The operation's value."""
        ...


async def adrive_call(call: Call[T], store: AsyncRunner) -> T:
    """Runs a call to its end without blocking the loop."""
    from asyncio import sleep  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

    try:
        wanted = next(call)
        while True:
            if isinstance(wanted, int | float):
                await sleep(wanted)
                wanted = call.send(None)
                continue
            try:
                given = await store.run(wanted)
            except OutlastError as error:
                wanted = call.throw(error)  # a call may know better what was refused
            else:
                wanted = call.send(given)
    except StopIteration as stop:
        value: T = stop.value
        return value


def drive_admission(call: Call[T], prepared: Sequence[Admission], store: Store) -> T:
    """Runs the call that admits these in this thread, and gives the workers a hint."""
    try:
        value = drive_call(call, store)
    except Locked as error:
        raise still_admitting(error, prepared) from error
    store.announce(queues_of(prepared))
    return value


def drive_call(call: Call[T], store: Runner) -> T:
    """Runs a call to its end in this thread."""
    try:
        wanted = next(call)
        while True:
            if isinstance(wanted, int | float):
                time.sleep(wanted)
                wanted = call.send(None)
                continue
            try:
                given = store.run_sync(wanted)
            except OutlastError as error:
                wanted = call.throw(error)
            else:
                wanted = call.send(given)
    except StopIteration as stop:
        value: T = stop.value
        return value
