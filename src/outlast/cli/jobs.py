"""`outlast jobs`: submit, list, show, cancel, retry, replay, rerun, answer, skip, dismiss, takeover, attach."""

from __future__ import annotations

import click

from outlast.cli import decide, listing, replay, settle, show, submit


@click.group()
def command() -> None:
    """Submit jobs, see how they stand, and decide about them.

    Without --as a command acts as an operator at the store itself, on any job. With --as TENANT:SUBJECT it sees and may do what
    that owner does; with --as TENANT:SUBJECT:operator what an operator of that tenant does. Answer, skip, dismiss, takeover and attach
    are the owner's alone.
    """


for _command in (
    submit.command,
    listing.command,
    show.command,
    decide.cancel,
    decide.retry,
    replay.command,
    decide.rerun,
    settle.answer,
    settle.skip,
    settle.dismiss,
    settle.takeover,
    settle.attach,
):
    command.add_command(_command)
