"""The commands of `outlast` as commands of `manage.py`, on the project's own store and with its own kinds; their options are the same."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import click
from django.core.management.base import BaseCommand, CommandError, CommandParser

from outlast.cli.main import commands, main
from outlast.cli.options import STORE
from outlast.integrations.django.addresses import store_url
from outlast.integrations.django.configuration import configuration

TARGET: Final = "outlast.integrations.django:jobs"
_DJANGOS_VALUES: Final = frozenset({"--settings", "--pythonpath", "--verbosity", "-v"})
_DJANGOS_FLAGS: Final = frozenset({"--traceback", "--no-color", "--force-color", "--skip-checks"})
_VERBOSITY: Final = re.compile(r"-v[0-3]")


class OutlastCommand(BaseCommand):
    """A command of `outlast`; `manage.py outlast_worker --help` shows its options."""

    outlast: ClassVar[str]
    """The name of the command."""

    def run_from_argv(self, argv: list[str]) -> None:
        """Runs it with what stands behind its name, and ends the process with its exit code."""
        command = commands.get_command(click.Context(commands), self.outlast)
        if command is None:
            raise CommandError(f"There is no command {self.outlast}.")
        if self.outlast == "serve":
            from outlast.integrations.django.mounting import application  # noqa: PLC0415 - an extra

            application()  # so that it is known who calls
        # A variable goes before a default: one for another program's store would turn this project's commands to that.
        os.environ.pop(STORE, None)
        command.context_class = _Context
        _hide_targets(command)
        main(
            [self.outlast, *targeted(command, without_djangos(argv[2:]))],
            name=f"{Path(argv[0]).name} outlast",
            defaults={self.outlast: defaults(command, {"store": store_url(configuration().database), "target": TARGET})},
        )

    def add_arguments(self, parser: CommandParser) -> None:
        """Takes all that `call_command` may be given, to say what `handle` says."""
        parser.add_argument("arguments", nargs=argparse.REMAINDER)

    def handle(self, *args: object, **options: object) -> None:
        """`call_command` runs none of them: they end their process."""
        del args, options
        raise CommandError(f"{self.outlast} is run by manage.py only: it ends its process. In code use outlast.integrations.django.jobs.")


class _Context(click.Context):
    """Of a command that is one word here: `manage.py outlast_worker`."""

    @property
    def command_path(self) -> str:
        """How usage names it."""
        return super().command_path if self.parent is None else f"{self.parent.command_path}_{self.info_name}"


def _hide_targets(command: click.Command) -> None:
    """Usage names no TARGET, which is the project's and cannot be given."""
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        _hide_targets(below)
    for param in command.params:
        if isinstance(param, click.Argument) and param.name == "target":
            setattr(param, "get_usage_pieces", _no_pieces)  # noqa: B010 - click has no other way


def _no_pieces(ctx: click.Context) -> list[str]:
    del ctx
    return []


def without_djangos(given: Sequence[str]) -> list[str]:
    """The arguments without those that every command of manage.py takes, and which Django has heeded by now."""
    kept: list[str] = []
    rest = iter(given)
    for argument in rest:
        if argument == "--":
            return [*kept, argument, *rest]
        name, equals, _ = argument.partition("=")
        if name in _DJANGOS_VALUES:
            if not equals:
                next(rest, None)
        elif argument not in _DJANGOS_FLAGS and not _VERBOSITY.fullmatch(argument):
            kept.append(argument)
    return kept


def targeted(command: click.Command, given: Sequence[str]) -> list[str]:
    """The arguments with the project's own `Outlast` where the command takes a TARGET."""
    rest = list(given)
    passed: list[str] = []
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command = command.commands[rest[0]]
        passed.append(rest.pop(0))
    takes = any(isinstance(param, click.Argument) and param.name == "target" for param in command.params)
    return [*passed, *([TARGET] if takes else []), *rest]


def defaults(command: click.Command, values: Mapping[str, str]) -> dict[str, Any]:
    """The defaults of a command's options, and of all commands below it."""
    if not isinstance(command, click.Group):
        return dict(values)
    return {**values, **{name: defaults(below, values) for name, below in command.commands.items()}}
