"""Ids: UUIDv7 (RFC 9562, section 5.7) for jobs, made by the submitting process before the insert, and fresh ids for workers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, TypeGuard

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_RANDOM_BYTES = 10
_MAX_MS = (1 << 48) - 1
LOWEST: Final = "00000000-0000-0000-0000-000000000000"
HIGHEST: Final = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def uuid7(unix_ms: int, entropy: bytes) -> str:
    """A UUIDv7 in canonical form: 48 bits of time, version, 74 bits taken from `entropy` (10 bytes).

    The time orders ids roughly, for the walk of the retention and for cursors; nothing is decided by it.
    """
    if len(entropy) != _RANDOM_BYTES:
        raise ValueError("entropy must be 10 bytes")
    noise = int.from_bytes(entropy, "big")
    value = (min(max(unix_ms, 0), _MAX_MS) << 80) | (0x7 << 76) | (((noise >> 62) & 0xFFF) << 64) | (0b10 << 62) | (noise & ((1 << 62) - 1))
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def first_id(unix_ms: int) -> str:
    """The id below which all ids stand that were made before this time."""
    text = f"{min(max(unix_ms, 0), _MAX_MS) << 80:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def moment_of(job_id: str) -> datetime:
    """When an id was made, by the clock of the process that made it: the job's acceptance by the store's clock comes a little later."""
    return datetime.fromtimestamp(int(job_id.replace("-", "")[:12], 16) / 1000, UTC)


def is_job_id(text: object) -> TypeGuard[str]:
    """Whether the text is an id in the one form that is stored; everything else is unknown without asking the store."""
    return isinstance(text, str) and _CANONICAL.match(text) is not None
