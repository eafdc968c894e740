"""What the linked SQLite build can do, and which journal mode is safe with it.

Builds from 3.7.0 to 3.51.2 can corrupt a WAL database when a checkpoint races with a commit (fixed in 3.51.3, and in the branches
3.50.7 and 3.44.6); they run with the rollback journal. STRICT tables need 3.37.
"""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from dataclasses import dataclass
from functools import cache

from outlast.domain.errors import Invalid

OLDEST = (3, 37, 0)
DRIVER_VARIABLE = "OUTLAST_SQLITE_DRIVER"


@dataclass(frozen=True, slots=True)
class Build:
    """A SQLite build: its version, and whether its WAL can be trusted."""

    version: tuple[int, int, int]
    driver: str = "sqlite3"

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


@cache
def linked() -> Build:
    """The build that is used: the one that this Python links, or apsw's where OUTLAST_SQLITE_DRIVER asks for it.

    Never by itself: two SQLite libraries in one process that open one file cancel each other's locks, and corrupt it.
    """
    major, minor, patch = sqlite3.sqlite_version_info
    wanted = os.environ.get(DRIVER_VARIABLE) or "sqlite3"
    if wanted not in ("sqlite3", "apsw"):
        raise Invalid(f"{DRIVER_VARIABLE} is sqlite3 or apsw.")
    if wanted == "sqlite3":
        return Build((major, minor, patch))
    if importlib.util.find_spec("apsw") is None:
        raise Invalid(f"{DRIVER_VARIABLE} names apsw, which is not installed: pip install 'outlast[apsw]'.")
    import apsw  # noqa: PLC0415 - an extra

    major, minor, patch = (int(part) for part in apsw.sqlite_lib_version().split(".")[:3])
    return Build((major, minor, patch), "apsw")
