"""`outlast migrate`: brings a store to this version, or says what is missing."""

from __future__ import annotations

import click

from outlast.cli.exits import Exit
from outlast.cli.options import json_option, named, store_option
from outlast.cli.output import say, say_json
from outlast.store.migrate import Migration
from outlast.store.open import migrate, parse, pending, script


@click.command()
@store_option
@click.option("--check", is_flag=True, help=f"Change nothing; list what is missing, and exit {Exit.ATTENTION.value} if anything is.")
@click.option("--sql", is_flag=True, help="Change nothing; print the whole schema as SQL, for those who apply it by other means.")
@json_option
def command(*, store: str | None, check: bool, sql: bool, as_json: bool) -> None:
    """Bring the store's tables to this version. Safe to repeat, and to start from any number of processes at once."""
    url = named(store)
    if sql:
        if check or as_json:
            raise click.UsageError("--sql prints SQL only; use it by itself.")
        click.echo(script(url), nl=False)
        return
    steps = pending(url) if check else migrate(url)
    names = [_name(step) for step in steps]
    shown = parse(url).shown
    if as_json:
        say_json({"store": shown, "pending" if check else "applied": names})
    elif check:
        for name in names:
            say(f"pending {name}")
        say(f"{shown} lacks {len(names)} of the migrations. Run: outlast migrate --store URL" if names else f"{shown} is up to date")
    else:
        for name in names:
            say(f"applied {name}")
        say(f"{shown} is up to date")
    if check and names:
        raise click.exceptions.Exit(int(Exit.ATTENTION))


def _name(step: Migration) -> str:
    return f"{step.number:04d}_{step.name}"
