"""Runs programs: two drivers of a few lines, and the one decision about what to do when the store fails in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any

from outlast.domain.defaults import PATIENCE
from outlast.domain.errors import Invalid, Locked, NotMigrated, OutcomeUnknown, OutlastError, StoreUnavailable
from outlast.store.program import Access, Operation, Program, Rows, Statement, T

SubPrograms = Mapping[str, Callable[[Mapping[str, Any]], Program[Rows]]]


class Fault(Enum):
    """What a driver's error means for the program that met it."""

    CONFLICT = "conflict"  # serialization failure, deadlock, lock time-out, busy: nothing was written, run it again
    LOCKED = "locked"  # a conflict too: another transaction held a lock for longer than the limit
    LOST = "lost"  # the connection is gone; at a commit the outcome is unknown
    READ_ONLY = "read_only"
    FULL = "full"
    REFUSED = "refused"  # cannot connect: address, credentials, too many connections
    SCHEMA = "schema"  # a table or column is missing
    DATA = "data"  # one of the values
    UNKNOWN = "unknown"


class BadData(Invalid):
    """The store refused a value in a batch; nothing was written. The caller runs the parts one by one."""


def drive(program: Program[T], execute: Callable[[Statement], Rows]) -> T:
    """Runs a program on a blocking connection."""
    try:
        statement = next(program)
        while True:
            statement = program.send(execute(statement))
    except StopIteration as stop:
        value: T = stop.value
        return value


async def adrive(program: Program[T], execute: Callable[[Statement], Awaitable[Rows]]) -> T:
    """Runs a program on an async connection."""
    try:
        statement = next(program)
        while True:
            statement = program.send(await execute(statement))
    except StopIteration as stop:
        value: T = stop.value
        return value


def with_subprograms(program: Program[T], subprograms: SubPrograms) -> Program[T]:
    """The same program, with each statement that names a sub-program replaced by the statements of that one."""
    try:
        statement = next(program)
        while True:
            sub = subprograms.get(statement.name)
            rows = (yield statement) if sub is None else (yield from sub(statement.params))
            statement = program.send(rows)
    except StopIteration as stop:
        value: T = stop.value
        return value


class Tries:
    """How often one operation is tried, and what is raised in the end. Time is the caller's monotonic clock."""

    def __init__(self, operation: Operation[Any], *, now: float, patience: float = PATIENCE) -> None:
        self._operation = operation
        self._until = now + patience
        self._uncertain = False
        self._count = 0

    def pause(self, fault: Fault, *, now: float, certain: bool, cause: BaseException) -> float:
        """Seconds to wait before the next try; raises when there is none. `certain`: nothing of this try was committed."""
        self._count += 1
        if fault is Fault.LOST and not certain and self._operation.access is not Access.READ:
            self._uncertain = True
            if not self._operation.repeatable:
                raise self._refusal(fault) from cause
        if fault in (Fault.DATA, Fault.UNKNOWN) and not self._uncertain:
            if fault is Fault.DATA:
                raise BadData("The store refused one of the values. Nothing was written.") from cause
            raise cause
        if fault is Fault.LOCKED and not self._operation.patient:
            raise self._refusal(fault) from cause
        if fault in (Fault.SCHEMA, Fault.READ_ONLY, Fault.FULL, Fault.DATA, Fault.UNKNOWN) or now >= self._until:
            raise self._refusal(fault) from cause
        return min(0.01 * (1 << min(self._count - 1, 6)), 0.5, max(self._until - now, 0.0))

    def _refusal(self, fault: Fault) -> OutlastError:
        if self._uncertain:
            return OutcomeUnknown("The connection to the store was lost at the commit. Repeat the call with the same key.")
        return _REFUSALS[fault]()


_REFUSALS: Mapping[Fault, Callable[[], OutlastError]] = {
    Fault.CONFLICT: lambda: StoreUnavailable("The store is busy: others held its locks for too long. Try again."),
    Fault.LOCKED: lambda: Locked("Another transaction holds what this one needs. Nothing was written; try again."),
    Fault.LOST: lambda: StoreUnavailable("The store cannot be reached. Nothing was written; try again."),
    Fault.REFUSED: lambda: StoreUnavailable(
        "The store refuses connections. Nothing was written; check its address and limits, or try again."
    ),
    Fault.READ_ONLY: lambda: StoreUnavailable(
        "The store cannot be written: it is read-only (a standby?), or the role or account lacks rights. Nothing was written."
    ),
    Fault.FULL: lambda: StoreUnavailable("The store's disk is full. Nothing was written; free some space and try again."),
    Fault.SCHEMA: lambda: NotMigrated("The store has not the tables that this version needs. Run `outlast migrate --store URL`."),
    Fault.DATA: lambda: StoreUnavailable("The store refused a value. Nothing was written."),
    Fault.UNKNOWN: lambda: StoreUnavailable("The store failed. Nothing was written."),
}


def refusal_of(fault: Fault) -> OutlastError | None:
    """What a fault of the database means for a caller whose own statements met it; None where the fault is those statements' own."""
    return None if fault in (Fault.DATA, Fault.SCHEMA, Fault.UNKNOWN) else _REFUSALS[fault]()
