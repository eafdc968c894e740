"""The application's own tables, in the store's database: written on the driver's own connection, in the transaction of a step.

Nothing in them keeps a row from standing twice, nor a total from being counted twice: what does is the transaction that they share with
the step's record.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from typing import Any, Final

from examples.airports.rules import Judged
from examples.airports.source import COLUMNS, Row

from outlast import Permanent

_TABLES: Final = (
    """create table if not exists airport (
      job varchar(36) not null, line integer not null,
      icao varchar(4) not null, iata varchar(3) not null, name text not null, city text not null, subd text not null,
      country varchar(2) not null, elevation double precision not null, lat double precision not null, lon double precision not null,
      tz text not null, lid text not null)""",
    "create index if not exists airport_job on airport (job, line)",
    """create table if not exists reject (
      job varchar(36) not null, line integer not null, reason text not null, content text not null)""",
    "create index if not exists reject_job on reject (job, line)",
    """create table if not exists edition (
      job varchar(36) primary key, tenant text not null,
      imported integer not null, rejected integer not null, published integer not null)""",
    """create table if not exists landing (
      job varchar(36) not null, tenant text not null, fence bigint not null, first_line integer not null, size integer not null,
      at double precision not null default ({clock}))""",
    "create index if not exists landing_job on landing (job)",
)
_CLOCK: Final = {"sqlite": "(julianday('now') - 2440587.5) * 86400", "postgresql": "extract(epoch from clock_timestamp())"}
"""The store's, in seconds."""


@dataclass
class Totals:
    """How many rows were imported, and how many rejected."""

    imported: int = 0
    rejected: int = 0

    @property
    def rows(self) -> int:
        """All of them."""
        return self.imported + self.rejected

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.imported + other.imported, self.rejected + other.rejected)


@dataclass
class Importer:
    """Who writes: the job, its tenant, and the fence of the claim."""

    job: str
    tenant: str
    fence: int


def store(db: Any, importer: Importer, chunk: Sequence[Judged]) -> Totals:  # noqa: ANN401 - the driver's own connection
    """Writes the rows of one step, adds them to the totals, and notes who wrote them when."""
    job = importer.job
    good = [(job, judged.line, *astuple(judged.airport)) for judged in chunk if judged.airport is not None]
    bad = [(job, judged.line, judged.reason, content(judged.row)) for judged in chunk if judged.airport is None]
    _insert(db, "airport", ("job", "line", *COLUMNS), good)
    _insert(db, "reject", ("job", "line", "reason", "content"), bad)
    landing = (job, importer.tenant, importer.fence, chunk[0].line, len(chunk))
    _insert(db, "landing", ("job", "tenant", "fence", "first_line", "size"), [landing])
    _change(db, "insert into edition values (?, ?, 0, 0, 0) on conflict (job) do nothing", job, importer.tenant)
    _change(db, "update edition set imported = imported + ?, rejected = rejected + ? where job = ?", len(good), len(bad), job)
    return Totals(len(good), len(bad))


def content(row: Row) -> str:
    """A row as it stood in the file, as text."""
    return json.dumps(row, ensure_ascii=False)


def publish(db: Any, job: str, totals: Totals) -> Totals:  # noqa: ANN401 - the driver's own connection
    """Lets people see the edition, if its totals are those of the import's steps."""
    counted = (totals.imported, totals.rejected)
    if not _change(db, "update edition set published = 1 where job = ? and imported = ? and rejected = ?", job, *counted):
        raise Permanent("totals_differ", "The totals of the edition are not those of the rows that were read.")
    return totals


def _insert(db: Any, table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:  # noqa: ANN401 - the driver's own
    """Many rows, by the way that each store has for them."""
    if isinstance(db, sqlite3.Connection):
        marks = ", ".join("?" * len(columns))
        db.executemany(f"insert into {table} ({', '.join(columns)}) values ({marks})", rows)  # noqa: S608 - names of our own
        return
    with db.cursor() as cursor, cursor.copy(f"copy {table} ({', '.join(columns)}) from stdin") as copy:
        for row in rows:
            copy.write_row(row)


def _change(db: Any, sql: str, *params: object) -> int:  # noqa: ANN401 - the driver's own connection
    changed: int = db.execute(sql if isinstance(db, sqlite3.Connection) else sql.replace("?", "%s"), params).rowcount
    return changed


def make(url: str) -> None:
    """Makes the tables where they are not."""
    clock = _CLOCK[url.partition(":")[0]]
    for statement in _TABLES:
        ask(url, statement.format(clock=clock))


def ask(url: str, sql: str, *params: object) -> list[tuple[Any, ...]]:
    """The rows of a statement on a connection of its own, outside of any job."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)) as connection, connection:
            return connection.execute(sql, params).fetchall()
    import psycopg  # noqa: PLC0415 - only where the store is one

    with psycopg.connect(url) as pg:
        cursor = pg.execute(sql.replace("?", "%s"), params)
        return cursor.fetchall() if cursor.description else []
