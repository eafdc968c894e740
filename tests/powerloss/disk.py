"""A disk that may lose its power: what is on it for sure, what may be, and images of how it can look afterwards.

What a file was given since its last sync may be there, be missing or be torn, each write for itself, in sectors of 512 bytes. What a folder
was told since its last sync, a file made or a name taken away, may be there up to some point: file systems keep the order of names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

from powerloss.history import Acknowledged, Event, Linked, Synced, Truncated, Unlinked, Written

SECTOR = 512
Fate = Literal["kept", "dropped", "drawn"]


@dataclass(slots=True)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Written | Truncated] = field(default_factory=list[Written | Truncated])


class Disk:
    """One folder of files. `apply` moves it on by one event."""

    def __init__(self, name: str, start: bytes) -> None:
        self._files = {0: _File(bytearray(start))}
        self._names = {name: 0}
        self._pending: list[Linked | Unlinked] = []

    def apply(self, event: Event) -> bool:
        """Whether the disk may look otherwise after it."""
        match event:
            case Linked(file):
                self._files[file] = _File()
                self._pending.append(event)
            case Unlinked(_, synced):
                self._pending.append(event)
                if synced:
                    self._sync_folder()
            case Written(file) | Truncated(file):
                self._files[file].pending.append(event)
            case Synced(file, folder):
                known = self._files[file]
                for change in known.pending:
                    _change(known.durable, change)
                known.pending.clear()
                if folder:
                    self._sync_folder()
            case Acknowledged():
                return False
        return True

    def image(self, fate: Fate, chance: Random) -> dict[str, bytes]:
        """What is found by name after the power went. drawn: each unsynced change has a fate of its own."""
        names = dict(self._names)
        for change in self._pending[: _taken(len(self._pending), fate, chance)]:
            _rename(names, change)
        keep, tear = chance.choice(((0.1, 0.1), (0.4, 0.2), (0.85, 0.1)))
        found: dict[str, bytes] = {}
        for name, number in names.items():
            known = self._files[number]
            content = bytearray(known.durable)
            for written in known.pending:
                drawn = chance.random() if fate == "drawn" else 0.0
                if fate == "dropped" or drawn > keep + tear:
                    continue
                if drawn > keep and isinstance(written, Written):
                    _tear(content, written, chance)
                else:
                    _change(content, written)
            found[name] = bytes(content)
        return found

    def _sync_folder(self) -> None:
        for change in self._pending:
            _rename(self._names, change)
        self._pending.clear()


def _taken(many: int, fate: Fate, chance: Random) -> int:
    if fate == "drawn":
        return chance.randint(0, many)
    return many if fate == "kept" else 0


def _rename(names: dict[str, int], change: Linked | Unlinked) -> None:
    if isinstance(change, Linked):
        names[change.name] = change.file
    else:
        names.pop(change.name, None)


def _change(content: bytearray, change: Written | Truncated) -> None:
    if isinstance(change, Truncated):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    _put(content, change.offset, change.data)


def _put(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _tear(content: bytearray, written: Written, chance: Random) -> None:
    """Some of its sectors arrive; at its ends it may be less than a sector."""
    offset, data = written.offset, written.data
    at = 0
    while at < len(data):
        size = SECTOR - (offset + at) % SECTOR
        if chance.random() < 0.5:
            _put(content, offset + at, data[at : at + size])
        at += size
