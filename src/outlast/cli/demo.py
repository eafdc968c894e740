"""`outlast demo`: the main job on real input."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from outlast.cli.options import store_option


@click.command()
@store_option
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where the results go. Default: a new folder.")
def command(*, store: str | None, folder: Path | None) -> None:
    """Make a book out of real input, lose the worker half-way, and watch the job survive."""
    run = importlib.import_module("outlast.demo.run")
    code: int = run.main(store, folder)
    raise click.exceptions.Exit(code)
