"""`outlast relay`: moves committed rows on until told to stop."""

from __future__ import annotations

import click

from outlast.cli.inbound import move
from outlast.cli.log import log_options, write_log
from outlast.cli.options import application, seconds, store_option, target_argument
from outlast.cli.outbox import source_option, table_option


@click.command()
@target_argument
@store_option
@source_option
@table_option
@click.option("--every", type=seconds, default=1.0, show_default=True, help="How often an empty outbox is looked at, in seconds.")
@click.option("--once", is_flag=True, help="End when no row is left that may be tried now, or a database is away.")
@log_options
def command(target: str, *, store: str | None, source: str, table: str, every: float, once: bool, log: str, log_format: str) -> None:
    """Move rows of an outbox in another database into the store, as jobs of TARGET (module:attribute), until told to stop.

    Prints `relay of URL ready` once it reaches both databases; while one of them is away it waits. A row is deleted after its job is
    committed, and its id is the job's key: a row may be met twice, and is one job. SIGTERM or SIGINT: it ends after the present rows.
    """
    app = application(target, store)
    write_log(log, log_format)
    move(app, source, table=table, every=every, once=once)
