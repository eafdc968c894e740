"""The outside: a provider that is called with keys, counts what it did, and fails in every way that a provider can."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from outlast import Confirmed, Context, Refused, Retry

if TYPE_CHECKING:
    from simulate.world import World

Mode = Literal["idempotent", "reconcile", "neither"]
TIMEOUT = 30.0
"""Seconds that a call may take."""


@dataclass
class Receipt:
    """What the provider says about what it did."""

    number: int


class Provider:
    """One for all. With `idempotent` a key's second call does nothing; else each call that gets through is another effect."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.happened: Counter[str] = Counter()
        self.receipts: dict[str, Receipt] = {}
        self.allowed: Counter[str] = Counter()  # repeats that an owner chose
        self.on_its_way: Counter[str] = Counter()
        self.modes: dict[str, Mode] = {}
        self.calls = 0

    async def call(self, key: str, ctx: Context, mode: Mode) -> Receipt:
        """Does it, or not, and says so, or not."""
        world = self._world
        self.calls += 1
        world.counts.calls += 1
        self.modes[key] = mode
        job_id, fence, begun = world.history.intents.get(key, ("", 0, 0))
        if (job_id, fence) != (ctx.job_id, ctx.fence):
            world.violated(f"G2: {ctx.label} of {ctx.job_id}, fence {ctx.fence}, called the outside without an intent of its own")
        draw = 1.0 if world.calm else world.random.random()
        if draw < 0.08:
            raise ConnectionError("it never got there")
        if draw < 0.13 and not self.happened[key] and not self.on_its_way[key]:
            raise Refused("no_such_address", "There is nobody there.")
        if draw < 0.18:
            raise Retry("provider_busy", after=world.random.uniform(0.5, 15.0), pause_key=world.random.random() < 0.5)
        # What is on its way arrives even when nobody waits for it any more, but within the time that the call has.
        latest = (begun - world.clock.start_ms) / 1000 + TIMEOUT - 0.1
        after = max(0.0, min(world.random.uniform(0.0, TIMEOUT), latest - world.clock.now)) if draw < 0.4 else 0.0
        self.on_its_way[key] += 1
        world.people.loop.call_later(after, self._arrive, key)
        if draw < 0.26:
            raise ConnectionError("the answer was lost")
        await asyncio.sleep(after + (world.random.uniform(0.0, TIMEOUT) if draw < 0.33 else 0.05))
        return self.receipts.get(key) or Receipt(0)

    def _arrive(self, key: str) -> None:
        world = self._world
        self.on_its_way[key] -= 1
        if self.modes[key] == "idempotent" and self.happened[key]:
            return
        self.happened[key] += 1
        self.receipts.setdefault(key, Receipt(len(self.receipts) + 1))
        if self.happened[key] > 1 + self.allowed[key]:
            world.violated(
                f"G5: the effect {key[:12]} happened {self.happened[key]} times, {self.allowed[key]} of them by its owner's choice"
            )

    def contradicts(self, key: str, state: str) -> bool:
        """Whether the ledger says of an effect what is not so; but for an owner who let it happen twice."""
        if state == "confirmed":
            return not self.happened[key]
        return state == "refused" and bool(self.happened[key]) and not self.allowed[key]

    async def look_up(self, key: str) -> Confirmed[Receipt]:
        """Whether it happened."""
        world = self._world
        if not world.calm and world.random.random() < 0.1:
            raise ConnectionError("nobody answers")
        await asyncio.sleep(0.05)
        if not self.happened[key]:
            raise Refused
        return Confirmed(self.receipts[key])
