"""What the client does, once for both colours: generators that yield store operations, or seconds to wait, and receive their values."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from outlast.domain.defaults import Settings
from outlast.domain.registry import Registry
from outlast.store.program import Operation

T = TypeVar("T")
Call: TypeAlias = Generator[Operation[Any] | float, Any, T]


@dataclass(frozen=True, slots=True)
class Application:
    """What the calls of one `Outlast` need of it."""

    registry: Registry
    settings: Settings
    base_url: str

    @property
    def retention_ms(self) -> int:
        """How long a finished job stays, in milliseconds."""
        return round(self.settings.retention * 1000)

    @property
    def horizon_ms(self) -> int:
        """How long the key of a purged job answers, in milliseconds."""
        return round(self.settings.replay_horizon * 1000)
