"""What must hold of a store after a test: all that `outlast verify` knows, and what only a test's own clock allows to ask.

    from invariants import check
    check(url)

It reads one snapshot, so that workers may go on meanwhile.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import unquote

import psycopg

from outlast.store.open import snapshot
from outlast.store.programs.verify import BEGINNINGS, verify


def check(url: str, *, settled: bool = False) -> None:
    """AssertionError with everything that is wrong. settled: moreover, that nothing waits, runs or is blocked any more."""
    found = problems(url)
    if settled:
        found = [*found, *unsettled(url)]
    assert not found, f"{len(found)} invariants do not hold:\n" + "\n".join(found[:50])


def problems(url: str) -> list[str]:
    """What is wrong in a store, a line each; empty when all holds."""
    late = untimely(url)  # first: its connection brings in order what a killed process left of a SQLite file
    with snapshot(url, beginnings=BEGINNINGS) as moment:
        report = moment.run(verify(limit=50))
    said = [f"{f.rule.full}: job {f.job_id}, task {f.no}: {f.found}; should be: {f.expected}" for f in report.findings]
    return [*said, *late]


_UNTIMELY = {
    "D6: the job {id} ended before it was accepted": "select id from {job} where finished_at < accepted_at",
    "D6: an attempt of the job {id} ended before it began": "select job_id as id from {attempt} where started_at > ended_at",
    "D9: a task of the job {id} started before its parent ended": (
        "select d.job_id as id from {edge} d "
        "join {task} p on p.tenant = d.tenant and p.job_id = d.job_id and p.no = d.parent "
        "join {task} c on c.tenant = d.tenant and c.job_id = d.job_id and c.no = d.child "
        "where c.state = 'completed' and p.state in ('completed', 'failed') and c.started_at < p.finished_at"
    ),
}


def untimely(url: str) -> list[str]:
    """What happened in the wrong order, by times: the clock of a test is not set back, as one in the field may be."""
    with _Reading(url) as run:
        return [said.format_map(row) for said, sql in _UNTIMELY.items() for row in run(sql, ())]


def unsettled(url: str) -> list[str]:
    """The jobs that are neither final nor in need of attention, and the entries that stand."""
    with _Reading(url) as run:
        jobs = [f"job {row['id']} is open" for row in run("select id from {job} where state = 'open'", ())]
        return [*jobs, *(f"job {row['job_id']}: task {row['no']} has an entry" for row in run("select job_id, no from {queue_entry}", ()))]


def query(url: str, sql: str, params: Sequence[object] = ()) -> list[dict[str, Any]]:
    """Rows of one statement with `{table}` names, such as `select * from {job}`; parameters are written `?`."""
    with _Reading(url) as run:
        return run(sql, params)


class _Reading:
    """A reading transaction on a store."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> Callable[[str, Sequence[object]], list[dict[str, Any]]]:
        if self._url.startswith("sqlite:"):
            path = unquote(self._url.partition(":///")[2])
            self._lite = sqlite3.connect(path, isolation_level=None, timeout=20)
            self._lite.row_factory = sqlite3.Row
            self._lite.execute("begin")
            self._close = self._lite.close
            return self._run_lite
        self._pg = psycopg.connect(self._url, autocommit=True)
        self._pg.execute("begin isolation level repeatable read read only")
        self._close = self._pg.close
        return self._run_pg

    def __exit__(self, *_exc: object) -> None:
        self._close()

    def _run_lite(self, sql: str, params: Sequence[object]) -> list[dict[str, Any]]:
        return [dict(row) for row in self._lite.execute(_named(sql, "outlast_"), tuple(params))]

    def _run_pg(self, sql: str, params: Sequence[object]) -> list[dict[str, Any]]:
        text = _named(sql, "outlast.").replace("%", "%%").replace("?", "%s")
        cursor = self._pg.execute(text, tuple(params))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, _plain(row), strict=True)) for row in cursor.fetchall()]


def _named(sql: str, prefix: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: prefix + match[1], sql)


def _plain(row: Iterable[Any]) -> list[Any]:
    """Ids as text, as SQLite has them."""
    return [str(value) if type(value).__name__ == "UUID" else value for value in row]
