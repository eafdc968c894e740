"""How many streams and waits one principal may hold open in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from outlast.domain.model import Principal
from outlast.http.problems import Problem

Held = Literal["streams", "waits"]

STREAMS: Final = 8
WAITS: Final = 16
ALL_STREAMS: Final = 2_000
ALL_WAITS: Final = 2_000
_WORDS: Final = {
    "streams": "Close one of the event streams that you have open; one on /v1/events shows all jobs.",
    "waits": "Let one of the waits that you have open end first.",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that one principal, and that all of them, may hold open."""

    each: int
    all: int


_BOUNDS: Final[dict[Held, Bounds]] = {"streams": Bounds(STREAMS, ALL_STREAMS), "waits": Bounds(WAITS, ALL_WAITS)}


class Limits:
    """Counts what is held open, by principal."""

    def __init__(self, bounds: dict[Held, Bounds] | None = None) -> None:
        self._bounds = bounds or _BOUNDS
        self._held: Counter[tuple[Held, str, str]] = Counter()
        self._all: Counter[Held] = Counter()

    def take(self, what: Held, principal: Principal) -> tuple[Held, str, str]:
        """Counts one more until `give_back`; Problem 429 when there are as many as there may be."""
        key = (what, principal.tenant, principal.subject)
        bounds = self._bounds[what]
        if self._held[key] >= bounds.each or self._all[what] >= bounds.all:
            raise Problem("too_many_streams" if what == "streams" else "too_many_waits", _WORDS[what], headers={"Retry-After": "15"})
        self._held[key] += 1
        self._all[what] += 1
        return key

    def give_back(self, key: tuple[Held, str, str]) -> None:
        """One less."""
        self._all[key[0]] -= 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    @contextmanager
    def held(self, what: Held, principal: Principal) -> Generator[None]:
        """Counts one while the block lasts."""
        key = self.take(what, principal)
        try:
            yield
        finally:
            self.give_back(key)

    def open(self, what: Held) -> int:
        """How many are open now."""
        return self._all[what]
