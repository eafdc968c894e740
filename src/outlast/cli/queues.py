"""`outlast queues`: what waits, what runs, how old it is, and what is paused; and `pause` and `resume`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import click
from click.core import ParameterSource

from outlast.cli.options import at_store, identity, json_option, opened, operator_of, store_option
from outlast.cli.output import age, ago, local, moment_of, note, safe, say, say_json, table
from outlast.domain.model import Principal, QueueChange, QueueView
from outlast.domain.work import Pause, QueueRow
from outlast.store.programs import queues

_AT_STORE: Final = "*"
"""The tenant on record where nobody was named: who can open the store acts on it for all."""


@click.group(invoke_without_command=True)
@store_option
@json_option
@click.pass_context
def command(ctx: click.Context, *, store: str | None, as_json: bool) -> None:
    """Show each queue by handler: ready to run, running, waiting for its time, and the age of the oldest that is ready.

    And which queues are paused: since when, by whom and why.
    """
    if ctx.invoked_subcommand is not None:
        if as_json or ctx.get_parameter_source("store") is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"Write the options behind the command: outlast queues {ctx.invoked_subcommand} NAME --store URL ...")
        return
    with opened(at_store(store)) as client:
        rows, pauses = client.store.run_sync(queues.stand())
    if as_json:
        say_json({"items": [_row_json(row) for row in rows], "paused": [_pause_json(pause) for pause in pauses]})
        return
    if rows:
        say(_table(rows, {pause.queue for pause in pauses}))
    else:
        say("nothing waits and nothing runs")
    now = datetime.now(UTC)
    for pause in pauses:
        since = moment_of(pause.at_ms)
        say(f"paused: {pause.queue} since {local(since)} ({ago(since, now)}) by {safe(pause.by)}: {safe(pause.reason)}")


def _row_json(row: QueueRow) -> dict[str, object]:
    return {
        "queue": row.queue,
        "handler": row.handler,
        "ready": row.ready,
        "running": row.held,
        "waiting": row.waiting,
        "oldest_seconds": None if row.oldest_ms is None else max(row.oldest_ms, 0) / 1000,
    }


def _pause_json(pause: Pause) -> dict[str, object]:
    return {"queue": pause.queue, "paused_at": moment_of(pause.at_ms), "paused_by": pause.by, "reason": pause.reason}


def _table(rows: list[QueueRow], paused: set[str]) -> str:
    headers = ("QUEUE", "HANDLER", "READY", "RUNNING", "WAITING", "OLDEST", "PAUSED")
    lines = [
        (
            row.queue,
            row.handler,
            str(row.ready),
            str(row.held),
            str(row.waiting),
            age(None if row.oldest_ms is None else row.oldest_ms / 1000),
            "paused" if row.queue in paused else "",
        )
        for row in rows
    ]
    return table(headers, lines, numbers=headers[2:6])


def _decision(fn: Callable[..., None]) -> Callable[..., None]:
    """The argument and options that pause and resume share."""
    for option in (
        json_option,
        store_option,
        click.option(
            "--as",
            "acting",
            type=identity,
            metavar="TENANT:SUBJECT:operator",
            help="Who acts. Without it: the account of the operating system, at the store.",
        ),
        click.option("--reason", required=True, metavar="TEXT", help="Why, in one line; kept with who did it."),
        click.argument("name"),
    ):
        fn = option(fn)
    return fn


@command.command()
@_decision
def pause(*, name: str, reason: str, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """Pause the queue NAME, for all tenants: nothing of it is claimed until it is resumed. What runs goes on. Again is no error.

    A queue that nothing is in yet can be paused in advance.
    """
    with opened(at_store(store)) as client:
        change = client.pause_queue(name, principal=_by(acting), reason=reason)
    _tell(change, "paused", "was paused before, and stays so", as_json=as_json)
    if not as_json and change.changed and _empty(change.queue):
        note("nothing is in a queue of this name now; what comes will wait")


@command.command()
@_decision
def resume(*, name: str, reason: str, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """Resume the queue NAME: what waits in it is claimed again. Again is no error."""
    with opened(at_store(store)) as client:
        change = client.resume_queue(name, principal=_by(acting), reason=reason)
    _tell(change, "resumed", "was not paused", as_json=as_json)


def _by(acting: Principal | None) -> Principal:
    return operator_of(_AT_STORE) if acting is None else acting


def _empty(view: QueueView) -> bool:
    return not (view.ready or view.running or view.waiting)


def _tell(change: QueueChange, done: str, before: str, *, as_json: bool) -> None:
    view = change.queue
    if as_json:
        say_json(_change_json(change))
        return
    say(f"{view.name} {done if change.changed else before}: {view.ready} ready, {view.running} running, {view.waiting} waiting")
    if view.paused_at is not None:
        say(f"since {local(view.paused_at)} by {safe(view.paused_by or '')}: {safe(view.reason or '')}")


def _change_json(change: QueueChange) -> dict[str, object]:
    view = change.queue
    return {
        "queue": view.name,
        "changed": change.changed,
        "ready": view.ready,
        "running": view.running,
        "waiting": view.waiting,
        "oldest_seconds": view.oldest,
        "paused_at": view.paused_at,
        "paused_by": view.paused_by,
        "reason": view.reason,
    }
