"""`outlast worker`: runs tasks until told to stop."""

from __future__ import annotations

import click

from outlast.cli.log import log_options, write_log
from outlast.cli.options import Whole, application, seconds, store_option, target_argument
from outlast.cli.work import work
from outlast.domain.defaults import GRACE, LEASE_POSTGRES, LEASE_SQLITE, SLOTS, ZOMBIES
from outlast.domain.errors import Invalid
from outlast.domain.kinds import check_name
from outlast.worker.runtime import Options

_MOST_SLOTS = 10_000


def slots_of(queues: tuple[str, ...]) -> dict[str, int] | None:
    """Slots by queue, from NAME=SLOTS or NAME; None if none was named."""
    found: dict[str, int] = {}
    for text in queues:
        name, equals, number = text.partition("=")
        try:
            check_name(name, what="queue name")
        except Invalid as error:
            raise click.BadParameter(error.message, param_hint="--queue") from error
        if equals and not (number.isdecimal() and number.isascii() and 1 <= int(number) <= _MOST_SLOTS):
            raise click.BadParameter(f"{text!r}: write NAME=SLOTS with 1 to {_MOST_SLOTS} slots, for example mail=4", param_hint="--queue")
        if name in found:
            raise click.BadParameter(f"the queue {name!r} is named twice", param_hint="--queue")
        found[name] = int(number) if equals else SLOTS
    return found or None


@click.command()
@target_argument
@store_option
@click.option(
    "--queue", "queues", multiple=True, metavar="NAME=SLOTS", help=f"May be repeated. Default: all known queues, {SLOTS} slots each."
)
@click.option(
    "--lease", type=seconds, help=f"How long a task is held unless renewed. Default: {LEASE_POSTGRES:g}, on SQLite {LEASE_SQLITE:g}."
)
@click.option("--grace", type=seconds, default=GRACE, show_default=True, help="How long running tasks may go on after a stop signal.")
@click.option("--zombies", type=Whole(min=1), default=ZOMBIES, show_default=True, help="At so many tasks that outlive their lease: end.")
@log_options
def command(
    target: str,
    *,
    store: str | None,
    queues: tuple[str, ...],
    lease: float | None,
    grace: float,
    zombies: int,
    log: str,
    log_format: str,
) -> None:
    """Run the tasks of TARGET (module:attribute) until told to stop.

    Prints `worker ID ready` once it works. SIGTERM or SIGINT: no task is claimed any more, those that run have the grace period,
    what is left then is handed back for another worker at once; exit code 0. A second signal hands back now.
    """
    slots = slots_of(queues)
    app = application(target, store)
    write_log(log, log_format)
    work(app, Options(slots, lease=lease, grace=grace, zombies=zombies))
