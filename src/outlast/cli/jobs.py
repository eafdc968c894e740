"""`outlast jobs`: submit, list, show, cancel, retry, replay, rerun."""

from __future__ import annotations

import click

from outlast.cli import decide, listing, show, submit


@click.group()
def command() -> None:
    """Submit jobs, see how they stand, and decide about them.

    Without --as a command acts as an operator at the store itself, on any job. With --as TENANT:SUBJECT it sees and may do what
    that owner does; with --as TENANT:SUBJECT:operator what an operator of that tenant does.
    """


for _command in (submit.command, listing.command, show.command, decide.cancel, decide.retry, decide.replay, decide.rerun):
    command.add_command(_command)
