"""`outlast dev`: store and worker in one process, for development."""

from __future__ import annotations

from typing import Final

import click

from outlast.cli.log import log_option, write_log
from outlast.cli.options import application, store_option, target_argument
from outlast.cli.output import note
from outlast.cli.work import work
from outlast.store.open import migrate, parse
from outlast.worker.runtime import Options

LEASE: Final = 5.0
"""Seconds, unless the application sets its own: who kills this process and starts it again does not want to wait for a minute."""


@click.command()
@target_argument
@store_option
@click.option("--no-worker", is_flag=True, help="Prepare the store only.")
@log_option
def command(target: str, *, store: str | None, no_worker: bool, log: str) -> None:
    """Run TARGET (module:attribute) for development: migrates the store by itself, then works until told to stop.

    Without --store: the store that the code of TARGET names. Kill it and start it again: it goes on where it was.
    """
    app = application(target, store)
    for step in migrate(app.url):
        note(f"applied {step.number:04d}_{step.name}")
    note(f"store {parse(app.url).shown}")
    if no_worker:
        return
    write_log(log)
    work(app, Options(lease=app.settings.lease or LEASE))
