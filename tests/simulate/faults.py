"""What goes wrong, and where: drawn from the seed at every statement, independently of everything else that the seed decides.

The n-th draw of a seed is the same whatever came of the earlier ones, so that a failing run can be repeated with a part of its faults.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final, Literal

Point = Literal["statement", "commit", "read", "turn", "answer"]
"""Inside a transaction; its commit; a read; before a transaction, with what it will write; the answer that the API gives."""

KINDS: Final[dict[Point, tuple[tuple[str, int], ...]]] = {
    "statement": (("busy", 20), ("lost", 15), ("full", 4), ("crash", 44), ("freeze", 9), ("stall", 8)),
    "commit": (
        ("crash before", 18),
        ("crash after", 24),
        ("lost before", 19),
        ("lost after", 34),
        ("busy", 6),
        ("freeze", 4),
        ("pause", 12),
    ),
    "read": (("lost", 30), ("crash", 40), ("pause", 30)),
    "turn": (("pause", 1),),
    "answer": (("answer lost", 70), ("answer late", 30)),
}
"""By point, what may happen and how often, in relation to each other."""

RATES: Final[dict[Point, float]] = {"statement": 0.015, "commit": 0.08, "read": 0.02, "turn": 0.004, "answer": 0.10}
CRASHES: Final = frozenset({"crash", "crash before", "crash after"})
UNKNOWN: Final = frozenset({"lost before", "lost after"})
"""Commits after which the process lives and does not know."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One that is due: which draw it was, its kind, and a number from 0 to 1 for how bad it is."""

    place: int
    kind: str
    degree: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a seed is left out when a failure is shortened: all faults but these (None: none), and these actors."""

    faults: frozenset[int] | None = None
    without: frozenset[str] = frozenset()


class Faults:
    """The faults of one seed."""

    def __init__(self, seed: int, plan: Plan, *, intensity: float) -> None:
        self._random = random.Random(f"faults {seed}")
        self._allowed = plan.faults
        self._place = 0
        self._intensity = intensity
        # Each seed leaves a few kinds out: what one of them hides from another would otherwise never be seen.
        every = sorted({kind for kinds in KINDS.values() for kind, _ in kinds})
        self._left_out = {kind for kind in every if self._random.random() < 0.15}
        self.over = False
        self.fired: list[Fault] = []

    def draw(self, point: Point, times: float = 1.0) -> Fault | None:
        """What happens at this point, if anything; so many times as often as elsewhere."""
        if self.over:
            return None
        self._place += 1
        if self._random.random() >= RATES[point] * self._intensity * times:
            return None
        which, degree = self._random.random(), self._random.random()
        kind = _pick(point, which)
        if kind in self._left_out or (self._allowed is not None and self._place not in self._allowed):
            return None
        fault = Fault(self._place, kind, degree)
        self.fired.append(fault)
        return fault


def _pick(point: Point, which: float) -> str:
    kinds = KINDS[point]
    left = which * sum(weight for _, weight in kinds)
    for kind, weight in kinds:
        left -= weight
        if left < 0:
            return kind
    return kinds[-1][0]


@dataclass(slots=True)
class Counts:
    """What a run came to."""

    statements: int = 0
    commits: int = 0
    crashes: int = 0
    unknown: int = 0
    pauses: int = 0
    errors: int = 0
    refused: int = 0
    swept: int = 0
    jobs: int = 0
    completed: int = 0
    calls: int = 0
    checks: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        """Sums up."""
        for name in self.__slots__:
            if name != "by_kind":
                setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, number in other.by_kind.items():
            self.by_kind[kind] = self.by_kind.get(kind, 0) + number
