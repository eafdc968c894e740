"""The command `outlast`: its groups are imported when they are called, so that help is quick."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import click

import outlast
from outlast.cli.exits import Exit, Refused, table_of_exits, tell
from outlast.cli.stopping import stopping
from outlast.domain.errors import OutlastError

_WORKING: Final = frozenset({"dev", "serve", "worker", "relay"})
_COMMANDS: Final = {
    "dev": "Everything in this process, for development; migrates by itself.",
    "serve": "Serve the API and the page.",
    "worker": "Run tasks until told to stop.",
    "relay": "Move rows of an outbox in another database into the store.",
    "outbox": "The outbox in another database: its DDL, how it stands, what is tried again.",
    "migrate": "Bring the store's tables to this version, or say what is missing.",
    "jobs": "Submit, list, show, cancel, retry, answer and rerun jobs, and more.",
    "schedules": "List, add, remove, pause and resume what is submitted again and again.",
    "queues": "What waits, what runs, and how old it is; pause and resume.",
    "prune": "Delete jobs that are no longer kept, or say which.",
    "forget": "Delete everything that is a person's, on request.",
    "doctor": "Check versions, store, clock and leftovers; say what to do.",
    "verify": "Recompute a store's rows and say what does not hold.",
    "demo": "Run the main job on real input and watch it survive.",
    "bench": "Measure a store on this machine.",
}
_HELP: Final = "Durable background jobs on SQLite and PostgreSQL."


class Commands(click.Group):
    """The groups by name, imported when called; refusals become one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command, from the module of its name."""
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"outlast.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The table of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The exit codes."""
        formatter.write_paragraph()
        formatter.write(table_of_exits() + "\n")

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except (OutlastError, Refused) as error:
            raise click.exceptions.Exit(int(tell(error))) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(int(Exit.INTERRUPTED)) from None


@click.group(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(outlast.__version__, "-V", "--version", prog_name="outlast")
def commands() -> None:
    """All commands."""


def main(arguments: Sequence[str] | None = None, *, name: str = "outlast", defaults: Mapping[str, Any] | None = None) -> NoReturn:
    """Runs a command and exits: the one that the process was started with, or that another program, called `name`, passes on.

    defaults: what options are where nothing else says so, as click has it: by command, and below that by option.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] and given[0] in _WORKING:
        stopping.install()  # first, so that a signal during a slow start stops it as one later does
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        commands.main(given, prog_name=name, default_map=defaults)
    except Exception:  # noqa: BLE001 - nothing is left above that could handle it
        traceback.print_exc()
    sys.exit(int(Exit.DEFECT))
