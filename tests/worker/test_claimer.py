"""The claimer after a claim whose commit had no answer: it looks for what it took, and looks once more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from outlast.domain.errors import OutcomeUnknown, StoreUnavailable
from outlast.domain.work import Claimed, TaskRef
from outlast.worker.claimer import Claimer, Slots
from outlast.worker.hold import Hold

CLAIMED = Claimed(TaskRef("acme", "job", 0, 1, "w:1"), 0, "kind@1:work", "default", 60_000, 0, "one", None, "{}", "{}", "ann", "c")


class Store:
    """Commits a claim without an answer, is away for a while, and then says what was claimed."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    async def run(self, operation: Any) -> Any:
        if operation.name == "claim":
            raise OutcomeUnknown("The connection was lost at the commit.")
        if self.away:
            raise StoreUnavailable("The store cannot be reached.")
        if operation.name == "claimed_by":
            self.asked += 1
            return [CLAIMED]
        raise AssertionError(operation.name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The claimer's clock, as the test sets it."""
    now = [100.0]
    monkeypatch.setattr("outlast.worker.claimer.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_both_looks_fall_due_while_the_store_is_away(clock: list[float]) -> None:
    store, held = Store(), list[Hold]()
    claimer = Claimer(store, Slots({"default": 3}), worker="w", handlers=("kind@1:work",), lease=30.0, started=held.extend)  # type: ignore[arg-type]
    store.away = True

    async def go() -> None:
        assert await claimer._claim("default", 1) == 1
        with pytest.raises(StoreUnavailable):
            await claimer._adopt_orphans()
        clock[0] += 10.0  # longer than until the second look
        store.away = False
        await claimer._adopt_orphans()
        await claimer._adopt_orphans()

    asyncio.run(go())
    assert [hold.claimed for hold in held] == [CLAIMED]  # once, and the worker lives
    assert store.asked == 1
