"""The application: a kind `airports` that imports the file into the application's tables, and asks its owner when too much is rejected.

Setting, from the environment: OUTLAST_STORE.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final

import msgspec
from examples.airports import source, tables
from examples.airports.rules import Judged, Rules, judge
from examples.airports.tables import Importer, Totals

from outlast import Completion, Limit, Outlast, Permanent, Plan, RetryPolicy, SyncContext

CHUNK: Final = 2_000
"""Rows a step."""
AT_ONCE: Final = 2
"""Imports of a tenant that are at work at the same time, over all workers."""

jobs = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///airports.db"))


@dataclass
class Import:
    """Asks for the import of the file with this fingerprint. `allowed`: how many rows may be rejected before its owner is asked.

    `pace`: seconds that each step takes at least, so that it can be watched.
    """

    file: str
    rules: Rules
    allowed: int
    pace: float = 0.0


class Rejects(msgspec.Struct):
    """The owner's answer: so many rows of the file may be rejected."""

    limit: Annotated[int, msgspec.Meta(ge=0)]


@jobs.task(max_attempts=100, retry=RetryPolicy(base=0.2, cap=1), limit=Limit("imports", AT_ONCE))
def load(ctx: SyncContext, wanted: Import) -> Completion[Totals]:
    """How many rows were imported and rejected: a step for every 2,000 rows, whose rows and record commit together."""
    file, rows = source.read()
    if file != wanted.file:  # steps are stored by their lines, which mean something in one file only
        raise Permanent("file_changed", "The file is not the one whose import was asked for. Ask for an import of the new one.")
    importer = Importer(ctx.job_id, ctx.owner.tenant, ctx.fence)
    judged = judge(rows, wanted.rules)  # from the first line on, in each attempt: what is stored already says which codes are taken
    totals, allowed, asked = Totals(), wanted.allowed, 0
    while chunk := list(islice(judged, CHUNK)):
        time.sleep(wanted.pace)
        totals += ctx.commit_step(_name(chunk), tables.store, importer, chunk)
        ctx.progress(f"{totals.rows:,} of {len(rows):,} rows, {totals.rejected:,} rejected")
        while totals.rejected > allowed:
            asked += 1
            allowed = _ask(ctx, asked, totals, allowed).limit
    return ctx.commit(tables.publish, ctx.job_id, totals)


def _name(chunk: list[Judged]) -> str:
    return f"lines {chunk[0].line} to {chunk[-1].line}"


def _ask(ctx: SyncContext, asked: int, totals: Totals, allowed: int) -> Rejects:
    """The owner's answer. Each question has a code of its own, for an answer stays the answer to its question."""
    message = f"{totals.rejected:,} of the first {totals.rows:,} rows were rejected, and {allowed:,} are allowed. How many may be in all?"
    return ctx.ask("too_many_rejects" if asked == 1 else f"too_many_rejects_{asked}", message, answer=Rejects)


@jobs.kind(
    "airports",
    label="Import of airports",
    promise=(10, 10),
    success="The airports are published.",
    cancel_note="Rows that were imported so far stay in the tables, and are not published.",
    roles=["importer"],
)
def airports(plan: Plan[Import], input: Import) -> None:  # noqa: ARG001 - every import has the same plan
    """One task; its steps are where it goes on."""
    plan.task(load, label="Rows", usable=True)
