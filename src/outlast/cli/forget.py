"""`outlast forget`: deletes everything that is one person's, on request, and keeps a record that it was done."""

from __future__ import annotations

import click

from outlast.cli.exits import Exit, Refused
from outlast.cli.options import at_store, identity, json_option, opened, operator_of, person, store_option
from outlast.cli.output import counted, note, safe, say, say_json
from outlast.client.operating import person_digest
from outlast.domain.access import OPERATOR
from outlast.domain.model import Principal
from outlast.store.programs import forgetting


@click.command()
@click.option(
    "--owner",
    type=person,
    required=True,
    metavar="TENANT:SUBJECT",
    help="Whose jobs, schedules, keys and effects are deleted. All behind the first colon is the subject, more colons too.",
)
@click.option("--reason", metavar="TEXT", help="Why, in one line without names; kept with who did it. Needed unless --dry-run.")
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--as",
    "acting",
    type=identity,
    metavar="TENANT:SUBJECT:operator",
    help="Act as this operator of the person's tenant. Without it: as operator at the store.",
)
@store_option
@json_option
def command(
    *, owner: Principal, reason: str | None, dry_run: bool, yes: bool, acting: Principal | None, store: str | None, as_json: bool
) -> None:
    """As an operator, delete everything of a person: schedules, and jobs; open ones are cancelled first. It cannot be undone.

    Exits 1 while a worker still has a task of theirs; run it again then. Exits 3, with nothing on record, where nothing is theirs.
    """
    if reason is None and not dry_run:
        raise click.UsageError("Say why, for the record: --reason TEXT. Or look first: --dry-run.")
    if acting is not None and acting.tenant != owner.tenant:
        raise Refused("Only an operator of the tenant may delete what is a person's.", Exit.FORBIDDEN, code="forbidden")
    with opened(at_store(store)) as client:
        jobs, live, keys, schedules, quotas = client.store.run_sync(forgetting.counted(owner.tenant, owner.subject))
        if not (jobs or keys or schedules or quotas) and (acting is None or OPERATOR in acting.roles):
            raise Refused(
                f"Nobody of that name has anything here: the tenant {owner.tenant!r}, the subject {owner.subject!r}. Nothing was recorded.",
                Exit.NOT_FOUND,
                code="not_found",
            )
        found = (counted(jobs, "job"), counted(schedules, "schedule"))
        if dry_run or reason is None:
            if as_json:
                say_json({"dry_run": True, "jobs": jobs, "open": live, "keys": keys, "schedules": schedules})
            else:
                say(f"{found[0]} would be deleted, {live} of them open, {found[1]}, and {counted(keys, 'key')} of purged jobs")
            return
        if not yes:
            name = safe(f"{owner.tenant}:{owner.subject}")
            click.confirm(
                f"Delete {found[0]} of {name}, {live} of them open, and {found[1]}, for good?",
                abort=True,
                err=True,
            )
        done = client.forget(owner.subject, principal=acting or operator_of(owner.tenant), reason=reason)
    record = person_digest(owner.tenant, owner.subject)
    if as_json:
        counts = {"jobs": done.jobs, "cancelled": done.cancelled, "stopping": done.stopping, "keys": done.keys, "schedules": done.schedules}
        say_json({"dry_run": False, **counts, "record": record})
    else:
        gone = f"{counted(done.jobs, 'job')}, {counted(done.schedules, 'schedule')} and {counted(done.keys, 'key')} deleted"
        say(f"{gone}; {counted(done.cancelled, 'open job')} cancelled")
        say(f"on record as {record}")
    if done.stopping:
        note(f"cancelled, and a worker still has a task of it: {counted(done.stopping, 'job')}; run the same command again")
        raise click.exceptions.Exit(int(Exit.ATTENTION))
