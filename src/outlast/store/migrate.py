"""Migrations: numbered SQL files, one text for both dialects, applied under a lock, each in one transaction.

A file begins with `-- breaking: yes` or `-- breaking: no`; code refuses a store with a breaking migration that it does not know.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from outlast.domain.errors import NotMigrated
from outlast.store.loader import Token, expand

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, rendered for a dialect."""

    number: int
    name: str
    breaking: bool
    statements: tuple[str, ...]
    checksum: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration as the store records it."""

    number: int
    name: str
    breaking: bool
    checksum: str


def migrations(tokens: Mapping[str, Token], table: Callable[[str], str]) -> tuple[Migration, ...]:
    """All migrations in order. The checksum is of the file's own text, the same for both dialects."""
    found: list[Migration] = []
    for entry in sorted(resources.files("outlast.store").joinpath("migrations").iterdir(), key=lambda e: e.name):
        match = _FILE.fullmatch(entry.name)
        if match is None:
            continue
        text = entry.read_text("utf-8")
        body = re.sub(r"--[^\n]*", "", text)
        statements = tuple(s.strip() for s in expand(body, tokens, table).split(";") if s.strip())
        found.append(
            Migration(
                number=int(match.group(1)),
                name=match.group(2),
                breaking="-- breaking: yes" in text.splitlines()[0],
                statements=statements,
                checksum=hashlib.sha256(text.encode()).hexdigest()[:16],
            )
        )
    return tuple(found)


def pending(known: Sequence[Migration], applied: Sequence[Applied]) -> tuple[Migration, ...]:
    """What is still to be applied; NotMigrated if the store is newer than this code in a way that breaks it, or was changed."""
    by_number = {m.number: m for m in known}
    for row in applied:
        mine = by_number.get(row.number)
        if mine is None and row.breaking:
            newest = max((m.number for m in known), default=0)
            raise NotMigrated(
                f"The store has migration {row.number} ({row.name}), which this version of Outlast does not know (it knows up to "
                f"{newest}). Upgrade Outlast before it works on this store."
            )
        if mine is not None and mine.checksum != row.checksum:
            raise NotMigrated(
                f"Migration {row.number} ({row.name}) of the store differs from this version's. It was made by an unreleased version: "
                "use a new store, or the version that made it."
            )
    have = {row.number for row in applied}
    return tuple(m for m in known if m.number not in have)


def require_migrated(known: Sequence[Migration], applied: Sequence[Applied]) -> None:
    """Raises NotMigrated, with the command to run, unless the store has all that this code needs."""
    missing = pending(known, applied)
    if missing:
        names = ", ".join(f"{m.number:04d}_{m.name}" for m in missing)
        raise NotMigrated(f"The store is not migrated (missing: {names}). Run `outlast migrate --store URL`.")
