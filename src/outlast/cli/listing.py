"""`outlast jobs list`: one page of jobs, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import click

from outlast.cli.options import Whole, as_option, at_store, json_option, opened, store_option
from outlast.cli.output import note, say, say_json
from outlast.cli.views import job_json, list_of, view_of
from outlast.client import cursors
from outlast.client.reading import MAX_PAGE
from outlast.domain.access import OPERATOR, Scope
from outlast.domain.model import Principal, State
from outlast.domain.work import Filter
from outlast.store.programs import status

_STATES = ("active", *get_args(State))


@click.command("list")
@as_option
@click.option("--state", type=click.Choice(_STATES), help="A shown state, or active: not final.")
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--limit", type=Whole(1, MAX_PAGE), default=50, show_default=True)
@click.option("--cursor", help="Where the page before said that this one begins.")
@store_option
@json_option
def command(
    *, acting: Principal | None, state: str | None, kind: str | None, limit: int, cursor: str | None, store: str | None, as_json: bool
) -> None:
    """List jobs, newest first: of all tenants, or with --as the owner's own, or those of the operator's tenant."""
    app = at_store(store)
    scope = scope_of_list(acting)
    bound = f"{scope}\n{state}\n{kind}"
    before = None if cursor is None else cursors.read(cursor, bound)
    with opened(app) as client:
        rows, following = client.store.run_sync(status.jobs(scope, Filter(state, kind), limit=limit, before=before))
    jobs = [(view_of(row, app.registry), row if scope is None or scope.owner is None else None) for row in rows]
    after = None if following is None else cursors.write(following, bound)
    if as_json:
        say_json({"items": [job_json(*job) for job in jobs], "next": after})
        return
    if jobs:
        say(list_of(jobs, datetime.now(UTC)))
    else:
        note("no jobs" if after is None else "none on this page")
    if after is not None:
        note(f"more: --cursor {after}")


def scope_of_list(acting: Principal | None) -> Scope | None:
    """Whose rows a list shows; None: those of all tenants."""
    if acting is None:
        return None
    return Scope(acting.tenant, None if OPERATOR in acting.roles else acting.subject)
