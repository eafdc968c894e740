"""What is found after the power came back, by the plain sqlite3 of Python: is the file whole, does the store add up, what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from contract.backends import SQLITE_CLOCK
from outlast.store.drive import drive
from outlast.store.program import Rows, Statement
from outlast.store.programs.verify import verify
from outlast.store.sqlite.dialect import statements

Fact = tuple[str, ...]

_FACTS = (
    "select 'job', id from outlast_job",
    "select 'cancelled', id from outlast_job where state = 'cancelled'",
    "select 'step', job_id, no, name, body from outlast_step",
    (
        "select 'done', t.job_id, t.no, o.body from outlast_task t join outlast_output o on o.tenant = t.tenant and o.job_id = t.job_id "
        "and o.no = t.no where t.state = 'completed'"
    ),
    "select 'asked', job_id, id from outlast_attention",
    "select 'answered', job_id, id, action from outlast_attention where resolved_at is not null",
)
_FENCES = (
    "select t.job_id, t.no, max(t.fence, coalesce(e.fence, 0)) from outlast_task t "
    "left join outlast_queue_entry e on e.tenant = t.tenant and e.job_id = t.job_id and e.no = t.no"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong with the file and the store, and which facts hold."""

    wrong: tuple[str, ...]
    facts: frozenset[Fact]

    def lacks(self, acknowledged: Fact) -> bool:
        """Whether this is not stored."""
        return acknowledged not in self.facts


def _facts(connection: sqlite3.Connection) -> Iterator[Fact]:
    for sql in _FACTS:
        for row in connection.execute(sql):
            yield tuple(map(str, row))
    for job_id, no, fence in connection.execute(_FENCES):
        for claimed in range(1, fence + 1):
            yield ("claim", job_id, str(no), str(claimed))


class Aftermath:
    """Opens images in one folder, the same image once."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._known: dict[bytes, Found] = {}
        self._sql = statements(SQLITE_CLOCK)

    @property
    def distinct(self) -> int:
        """How many images were different ones."""
        return len(self._known)

    def of(self, image: Mapping[str, bytes]) -> Found:
        """What is found in it."""
        digest = blake2b(digest_size=16)
        for name in sorted(image):
            digest.update(f"{name} {len(image[name])} ".encode())
            digest.update(image[name])
        key = digest.digest()
        if key not in self._known:
            self._known[key] = self._look(image)
        return self._known[key]

    def _look(self, image: Mapping[str, bytes]) -> Found:
        for left in self._folder.iterdir():
            left.unlink()
        for name, content in image.items():
            (self._folder / name).write_bytes(content)
        try:
            with closing(sqlite3.connect(self._folder / self._name, isolation_level=None)) as connection:
                said = [str(row[0]) for row in connection.execute("pragma integrity_check(5)")]
                wrong = [f"integrity_check: {line}" for line in said if line != "ok"]

                def read(statement: Statement) -> Rows:
                    return connection.execute(self._sql[statement.name], statement.params).fetchall()

                wrong += [f"verify: {f.rule.full}: {f.found}" for f in drive(verify(limit=5), read).findings]
                return Found(tuple(wrong), frozenset(_facts(connection)))
        except sqlite3.Error as error:
            return Found((f"{type(error).__name__}: {error}",), frozenset())
