"""A job as commands show it: one line in a list, one JSON object everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from outlast.cli.output import age, table
from outlast.client import views
from outlast.domain.model import JobView
from outlast.domain.registry import Registry
from outlast.domain.work import JobRow

_HEADERS = ("ID", "STATE", "KIND", "LABEL", "DONE", "AGE", "TENANT", "OWNER")


def view_of(row: JobRow, registry: Registry) -> JobView:
    """A stored row as the API shows it."""
    return views.job("", registry, row)


def job_json(view: JobView, row: JobRow | None) -> dict[str, Any]:
    """The members of the HTTP API's job; with the row also whose it is, for operators."""
    members = asdict(view)
    del members["url"]  # a command knows no base URL
    return members if row is None else {**members, "tenant": row.tenant, "owner": row.owner, "schema_version": row.schema_version}


def list_of(jobs: Sequence[tuple[JobView, JobRow | None]], now: datetime) -> str:
    """A table, newest first."""
    lines = [
        (
            view.id,
            state_of(view),
            view.kind,
            view.label if view.label != view.kind else "",
            f"{view.progress.done}/{view.progress.total}",
            age((now - view.accepted_at).total_seconds()),
            row.tenant if row else "",
            row.owner if row else "",
        )
        for view, row in jobs
    ]
    return table(_HEADERS, lines, numbers=("DONE", "AGE"))


def state_of(view: JobView) -> str:
    """The state in words, with what it alone does not say."""
    extras: list[str] = []
    if view.outcome == "succeeded_with_problems":
        extras.append("with problems")
    elif view.outcome in ("abandoned", "superseded"):
        extras.append(view.outcome)
    if view.stopping:
        extras.append("stopping")
    if view.usable_at is not None and not view.final:
        extras.append("usable")
    return f"{view.state} ({', '.join(extras)})" if extras else view.state
