"""What a recording says: every change of a file and of its folder, and what was acknowledged, in order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import msgspec


class Linked(msgspec.Struct, tag=True, frozen=True):
    """A file was made, under a name."""

    file: int
    name: str


class Unlinked(msgspec.Struct, tag=True, frozen=True):
    """A name was taken away; synced: and its folder was synced after it."""

    name: str
    synced: bool


class Written(msgspec.Struct, tag=True, frozen=True):
    """Bytes of a file."""

    file: int
    offset: int
    data: bytes


class Truncated(msgspec.Struct, tag=True, frozen=True):
    """A file was cut."""

    file: int
    size: int


class Synced(msgspec.Struct, tag=True, frozen=True):
    """A file was synced; folder: and the folder that it stands in, as SQLite does for a new journal."""

    file: int
    folder: bool


class Acknowledged(msgspec.Struct, tag=True, frozen=True):
    """Somebody was told that this is stored."""

    fact: tuple[str, ...]


Event: TypeAlias = Linked | Unlinked | Written | Truncated | Synced | Acknowledged


class History(msgspec.Struct, frozen=True):
    """The file as it was at the start, durable, under the number 0, and what followed."""

    name: str
    start: bytes
    events: list[Event]
    build: str
    journal: str

    def save(self, path: Path) -> None:
        """Writes it to a file."""
        path.write_bytes(msgspec.msgpack.encode(self))

    @staticmethod
    def load(path: Path) -> History:
        """Reads it from a file."""
        return msgspec.msgpack.decode(path.read_bytes(), type=History)


def python_path() -> str:
    """Where a process of its own finds the modules: as this one does, and those of the tests."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(Path(__file__).parent.parent))))
