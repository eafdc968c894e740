"""What the linked SQLite build can do, and which journal mode is safe with it.

Builds from 3.7.0 to 3.51.2 can corrupt a WAL database when a checkpoint races with a commit (fixed in 3.51.3, and in the branches
3.50.7 and 3.44.6); they run with the rollback journal. STRICT tables need 3.37.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

OLDEST = (3, 37, 0)


@dataclass(frozen=True, slots=True)
class Build:
    """A SQLite build: its version, and whether its WAL can be trusted."""

    version: tuple[int, int, int]

    @property
    def wal_is_safe(self) -> bool:
        """Whether the WAL-reset defect is fixed in it."""
        return self.version >= (3, 51, 3) or (3, 50, 7) <= self.version < (3, 51, 0) or (3, 44, 6) <= self.version < (3, 45, 0)

    @property
    def usable(self) -> bool:
        """Whether it knows what the schema needs."""
        return self.version >= OLDEST

    @property
    def journal_mode(self) -> str:
        """The journal mode that loses nothing with this build."""
        return "wal" if self.wal_is_safe else "delete"

    def __str__(self) -> str:
        return ".".join(str(part) for part in self.version)


def linked() -> Build:
    """The build that this Python links."""
    major, minor, patch = sqlite3.sqlite_version_info
    return Build((major, minor, patch))
