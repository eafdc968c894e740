"""Programs: typed generators that yield named statements, receive rows, and return a value.

A program does no I/O, reads no clock and controls no transaction. A driver runs it on a connection, sync or async; a program
is recreated, never resumed, when the store asks for a repeat. An `Operation` is a program with its arguments and what it needs
of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

Rows: TypeAlias = Sequence[tuple[Any, ...]]
T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class Statement(NamedTuple):
    """A named block of SQL with its parameters; on SQLite the name may stand for a sub-program."""

    name: str
    params: Mapping[str, Any]


Program: TypeAlias = Generator[Statement, Rows, T]


class Repeat(Exception):
    """Raised by a program that met a state in between: the driver rolls back and runs it anew."""


class Access(Enum):
    """What an operation needs of a transaction."""

    READ = "read"  # statements that write nothing, no transaction
    STATEMENT = "statement"  # one writing statement that commits by itself, and perhaps a read after it
    TRANSACTION = "transaction"  # all statements in one transaction


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """A program ready to run. `start` makes it anew for each try.

    repeatable: running it again after a commit of unknown outcome gives the true verdict and changes nothing twice.
    urgent: on SQLite it goes ahead of the writer's queue. patient: after a lock time-out it is tried again.
    """

    name: str
    access: Access
    start: Callable[[], Program[T]]
    repeatable: bool = True
    urgent: bool = False
    patient: bool = True


def operation(
    access: Access, *, repeatable: bool = True, urgent: bool = False, patient: bool = True
) -> Callable[[Callable[P, Program[T]]], Callable[P, Operation[T]]]:
    """Makes a program function into one that returns an `Operation`."""

    def wrap(fn: Callable[P, Program[T]]) -> Callable[P, Operation[T]]:
        def make(*args: P.args, **kwargs: P.kwargs) -> Operation[T]:
            return Operation(fn.__name__, access, lambda: fn(*args, **kwargs), repeatable, urgent, patient)

        make.__name__, make.__doc__ = fn.__name__, fn.__doc__
        return make

    return wrap


def rows_of(statement: Statement, row: Callable[..., R]) -> Program[list[R]]:
    """The statement's rows, each made into `row` by position."""
    rows = yield statement
    return [row(*r) for r in rows]


def row_of(statement: Statement, row: Callable[..., R]) -> Program[R | None]:
    """The statement's one row, or None where there is none."""
    rows = yield statement
    return row(*rows[0]) if rows else None
