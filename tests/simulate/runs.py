"""Seeds one after the other on one database, and what they came to together."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from simulate.database import Database
from simulate.faults import Counts, Plan
from simulate.virtual import virtual
from simulate.world import Mutant, Outcome, World

_COLLECT_EVERY = 25


class Bench:
    """Runs seeds; made by `bench`."""

    def __init__(self, mutant: Mutant | None = None) -> None:
        self._database = Database()
        self._mutant = mutant
        self._run = 0

    def run(self, seed: int, plan: Plan | None = None, *, tracing: bool = False) -> Outcome:
        """What came of one."""
        self._run += 1
        if self._run % _COLLECT_EVERY == 0:
            gc.collect()
        return World(seed, plan or Plan(), self._database, mutant=self._mutant, tracing=tracing).run()


@contextmanager
def bench(mutant: Mutant | None = None) -> Iterator[Bench]:
    """While it lasts this process is the simulation's: time, chance and threads of the package are replaced."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        with virtual(), nullcontext() if mutant is None or mutant.patch is None else mutant.patch():
            yield Bench(mutant)
    finally:
        if was_on:
            gc.enable()


@dataclass(slots=True)
class Sum:
    """Of many seeds."""

    seeds: int = 0
    seconds: float = 0.0
    counts: Counts = field(default_factory=Counts)
    failed: list[Outcome] = field(default_factory=list[Outcome])

    def add(self, outcome: Outcome) -> None:
        """One more."""
        self.seeds += 1
        self.seconds += outcome.seconds
        self.counts.add(outcome.counts)
        if outcome.violations:
            self.failed.append(outcome)

    def merge(self, other: Sum) -> None:
        """Those of another process."""
        self.seeds += other.seeds
        self.seconds += other.seconds
        self.counts.add(other.counts)
        self.failed += other.failed


def run_all(seeds: Iterable[int]) -> Sum:
    """The sum of these seeds."""
    total = Sum()
    with bench() as one:
        for seed in seeds:
            total.add(one.run(seed))
    return total
