"""`outlast queues`: what waits, what runs, and how old it is."""

from __future__ import annotations

import click

from outlast.cli.options import at_store, json_option, opened, store_option
from outlast.cli.output import age, say, say_json, table
from outlast.store.programs import status


@click.command()
@store_option
@json_option
def command(*, store: str | None, as_json: bool) -> None:
    """Show each queue by handler: ready to run, running, waiting for its time, and the age of the oldest that is ready."""
    with opened(at_store(store)) as client:
        rows = client.store.run_sync(status.queues())
    if as_json:
        items = [
            {
                "queue": row.queue,
                "handler": row.handler,
                "ready": row.ready,
                "running": row.held,
                "waiting": row.waiting,
                "oldest_seconds": None if row.oldest_ms is None else max(row.oldest_ms, 0) / 1000,
            }
            for row in rows
        ]
        say_json({"items": items})
        return
    if not rows:
        say("nothing waits and nothing runs")
        return
    headers = ("QUEUE", "HANDLER", "READY", "RUNNING", "WAITING", "OLDEST")
    lines = [
        (
            row.queue,
            row.handler,
            str(row.ready),
            str(row.held),
            str(row.waiting),
            age(None if row.oldest_ms is None else row.oldest_ms / 1000),
        )
        for row in rows
    ]
    say(table(headers, lines, numbers=headers[2:]))
