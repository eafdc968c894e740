"""Every default in one table, and `Settings`, by which an application overrides them. Seconds and bytes unless named otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from outlast.domain.errors import Invalid

LEASE_POSTGRES: Final = 30.0
LEASE_SQLITE: Final = 60.0
RENEWALS_PER_LEASE: Final = 3
SWEEP: Final = 5.0
SWEEPS_PER_LEASE: Final = 4  # at least: a short lease is swept more often than the interval says
DEADLINE: Final = 600.0
MAX_ATTEMPTS: Final = 5
RETRY_BASE: Final = 1.0
RETRY_CAP: Final = 600.0
RETRY_WINDOW: Final = 86_400.0
ATTENTION_WINDOW: Final = 2_592_000.0
RETENTION: Final = 2_592_000.0
REPLAY_HORIZON: Final = 2_592_000.0
PURGE: Final = 60.0
PURGES_PER_RETENTION: Final = 10  # at least: what is kept for a short time is looked for more often
PURGE_LEAST: Final = 0.5
MAX_INPUT: Final = 262_144
MAX_OUTPUT: Final = 1_048_576
MAX_TASKS: Final = 1_000
MAX_EDGES: Final = 10_000
LONGEST: Final = 315_360_000  # ten years: no duration is longer
QUEUE: Final = "default"
PRIORITY: Final = 0
SLOTS: Final = 8
POLL_MIN: Final = 0.02
POLL_MAX: Final = 0.5
GRACE: Final = 25.0
ZOMBIES: Final = 32
PAUSE_MAX: Final = 86_400.0  # a concurrency key rests no longer, whatever a provider asks for
SLOT_IDLE: Final = 86_400.0  # then the row of a free slot is deleted
SLOT_IDLE_SWEEP: Final = 3_600.0
PATIENCE: Final = 5.0  # how long a call waits for a busy or restarting store before it says so

MAX_LABEL: Final = 500
MAX_PROGRESS: Final = 500
MAX_REF: Final = 2_000
MAX_DETAIL: Final = 8_000
MAX_MESSAGE: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an application may override; Invalid for a value that cannot be. lease None: 30 s on PostgreSQL, 60 s on SQLite."""

    lease: float | None = None
    sweep: float = SWEEP
    attention_window: float = ATTENTION_WINDOW
    retention: float = RETENTION
    replay_horizon: float = REPLAY_HORIZON
    max_input: int = MAX_INPUT
    max_output: int = MAX_OUTPUT

    def __post_init__(self) -> None:
        for name in ("lease", "sweep", "attention_window", "retention", "replay_horizon", "max_input", "max_output"):
            value: float | None = getattr(self, name)
            if value is None and name == "lease":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST:
                raise Invalid(f"The setting {name} must be a number above 0 and at most {LONGEST} (ten years, in seconds).")
