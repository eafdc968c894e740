"""`outlast outbox`: the table in another database that jobs are asked for in: its DDL, how it stands, and what is tried again."""

from __future__ import annotations

import click

from outlast.cli.exits import Exit
from outlast.cli.options import json_option
from outlast.cli.output import age, counted, say, say_json, table
from outlast.relay.dialects import DIALECTS, EXAMPLES, TABLE, script
from outlast.relay.source import Parked, Source, Standing

_SOURCE = "OUTLAST_OUTBOX"
_MOST_SHOWN = 100

source_option = click.option("--from", "source", required=True, metavar="URL", envvar=_SOURCE, show_envvar=True, help=EXAMPLES)
table_option = click.option("--table", default=TABLE, show_default=True, metavar="NAME", help="The outbox's table, or SCHEMA.NAME.")


@click.group()
def command() -> None:
    """The outbox in another database, for business data that does not live in the store's."""


@command.command()
@click.option("--dialect", type=click.Choice(sorted(DIALECTS)), required=True, help="Of the database that the business data is in.")
@click.option("--table", "name", default=TABLE, show_default=True, metavar="NAME", help="The outbox's table, or SCHEMA.NAME.")
def sql(*, dialect: str, name: str) -> None:
    """Print the DDL of the outbox table, and how a row is written."""
    click.echo(script(DIALECTS[dialect], name), nl=False)


@command.command()
@source_option
@table_option
@json_option
def status(*, source: str, table: str, as_json: bool) -> None:
    """Show how many rows wait, the age of the oldest, and what is put off and parked, by code, and the first 100 that are parked.

    Exit code 1 if anything is parked.
    """
    outbox = Source(source, table=table)
    try:
        standing = outbox.standing()
        parked = outbox.parked(most=_MOST_SHOWN) if standing.parked else []
    finally:
        outbox.close()
    if as_json:
        say_json(_json(outbox, standing, parked))
    else:
        _tell(standing, parked)
    if standing.parked:
        raise click.exceptions.Exit(int(Exit.ATTENTION))


@command.command()
@click.option("--code", metavar="CODE", help="Only those with this code.")
@source_option
@table_option
@json_option
def retry(*, code: str | None, source: str, table: str, as_json: bool) -> None:
    """Let the relay try again, at once, the rows that are parked or put off."""
    outbox = Source(source, table=table)
    try:
        rows = outbox.release(code)
    finally:
        outbox.close()
    if as_json:
        say_json({"outbox": outbox.shown, "rows": rows})
    else:
        say(f"{counted(rows, 'row')} will be tried again")


def _json(outbox: Source, standing: Standing, parked: list[Parked]) -> dict[str, object]:
    return {
        "outbox": outbox.shown,
        "waiting": standing.waiting,
        "oldest_seconds": None if standing.oldest_ms is None else standing.oldest_ms / 1000,
        "put_off": standing.put_off,
        "parked": standing.parked,
        "parked_rows": [{"seq": row.seq, "id": row.id, "code": row.code, "detail": row.detail} for row in parked],
    }


def _tell(standing: Standing, parked: list[Parked]) -> None:
    oldest = "" if standing.oldest_ms is None else f", the oldest since {age(standing.oldest_ms / 1000)}"
    say(f"{counted(standing.waiting, 'row')} wait{'s' if standing.waiting == 1 else ''}{oldest}")
    lines = [(code, "tried again later", str(n)) for code, n in standing.put_off.items()]
    lines += [(code, "parked", str(n)) for code, n in standing.parked.items()]
    if lines:
        say(table(("CODE", "STATE", "ROWS"), lines, numbers=("ROWS",)))
    if parked:
        say(
            table(("SEQ", "ID", "CODE", "DETAIL"), [(str(row.seq), row.id, row.code, row.detail or "") for row in parked], numbers=("SEQ",))
        )
