"""Plans as PostgreSQL gives them: a statement of the store, prepared and explained as a session of ours would run it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg

from outlast.store.postgres.dialect import SCHEMA, statements
from outlast.store.postgres.session import Profile
from outlast.store.program import Operation, Statement

Connection = psycopg.Connection[tuple[Any, ...]]

_PLACEHOLDER = re.compile(r"%\(([a-z0-9_]+)\)s")


def session(conninfo: str, *, worker: bool) -> Connection:
    """A connection with the settings of a worker's or of a client's."""
    connection = psycopg.connect(conninfo, autocommit=True)
    connection.execute(Profile(worker=worker).settings(local=False))
    return connection


def first(operation: Operation[Any]) -> Statement:
    """The first statement that an operation sends."""
    return next(operation.start())


class Prepared:
    """A statement prepared on a connection, to be explained as often as one likes."""

    def __init__(self, connection: Connection, name: str, sql: str | None = None) -> None:
        text = statements(SCHEMA)[name] if sql is None else sql
        self._names = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
        places = {parameter: f"${n}" for n, parameter in enumerate(self._names, 1)}
        numbered = _PLACEHOLDER.sub(lambda match: places[match.group(1)], text).replace("%%", "%")
        self._cursor = psycopg.ClientCursor(connection)
        self._called = f"hot_{name}"
        connection.execute(f"prepare {self._called} as {numbered}")

    def explain(self, params: Mapping[str, Any], *, analyze: bool = False) -> dict[str, Any]:
        """The plan for these values. analyze: the statement is run, and rolled back."""
        options = "analyze, buffers, timing off, format json" if analyze else "format json"
        values = ", ".join(["%s"] * len(self._names))
        with self._cursor.connection.transaction(force_rollback=True):
            call = f"explain ({options}) execute {self._called}" + (f"({values})" if values else "")
            self._cursor.execute(call, [params[name] for name in self._names])
            row = self._cursor.fetchone()
        assert row is not None
        explained: dict[str, Any] = row[0][0]
        return explained


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All nodes of a plan."""
    here = plan.get("Plan", plan)
    yield here
    for child in here.get("Plans", ()):
        yield from nodes(child)


def scans(plan: Mapping[str, Any]) -> dict[str, set[str]]:
    """How each table is read: by which index, or `(whole)`."""
    found: dict[str, set[str]] = {}
    for node in nodes(plan):
        kind = node["Node Type"]
        if kind in ("Seq Scan", "Bitmap Heap Scan"):
            found.setdefault(node["Relation Name"], set()).add(f"({kind})")
        elif kind in ("Index Scan", "Index Only Scan"):
            found.setdefault(node["Relation Name"], set()).add(node["Index Name"])
        elif kind == "Tid Scan":
            found.setdefault(node["Relation Name"], set()).add("(tid)")
    return found


def buffers(plan: Mapping[str, Any]) -> int:
    """How many pages the whole statement looked at."""
    top = plan["Plan"]
    return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])
