"""Whether code runs inside a transaction that was lent to it: what writes in one of its own would wait for itself there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from outlast.domain.errors import TransactionMisused


@dataclass(slots=True)
class Inside:
    """A transaction that code runs in, as long as it is open. Tasks and threads that are started meanwhile inherit it."""

    store: object
    open: bool = True


_inside: ContextVar[Inside | None] = ContextVar("outlast_inside", default=None)


def enter(store: object, what: str) -> Inside:
    """From now on this code runs inside a transaction on the store, until `open` is set to False."""
    refuse(store, what)
    inside = Inside(store)
    _inside.set(inside)
    return inside


def refuse(store: object, what: str) -> None:
    """Raises TransactionMisused inside an open transaction on this store."""
    inside = _inside.get()
    if inside is not None and inside.open and inside.store is store:
        raise TransactionMisused(
            f"{what} writes in a transaction of its own, and was called inside another: in the block of ctx.transaction(), or in a "
            "function that is given a session. Call it before or after.",
            code="inside_transaction",
        )


@contextmanager
def within(store: object) -> Generator[None, None, None]:
    """The code of the block runs inside a transaction on the store."""
    inside = Inside(store)
    token = _inside.set(inside)
    try:
        yield
    finally:
        inside.open = False
        _inside.reset(token)
