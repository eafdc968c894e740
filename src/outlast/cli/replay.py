"""`outlast jobs replay`: an operator takes up again what needs attention, of one job or of all that there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click

from outlast.cli.decide import acting_on, end_with_left, job_id, open_questions, tell
from outlast.cli.exits import Exit
from outlast.cli.options import Whole, as_option, at_store, json_option, opened, operator_of, store_option
from outlast.cli.output import note, say, say_json
from outlast.cli.submit import moment
from outlast.client._sync import SyncClient
from outlast.client.calls import Application
from outlast.client.driving import drive_call
from outlast.client.operating import MAX_REASON, replayed
from outlast.domain.access import OPERATOR
from outlast.domain.conflicts import Conflict
from outlast.domain.errors import Forbidden, Invalid, NotFound
from outlast.domain.model import Principal
from outlast.domain.payload import check_text
from outlast.domain.work import Asking
from outlast.store.programs import replay, status

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Report:
    """What became of each job, by id; of those that were not taken up, with the code that says why."""

    done: list[str] = field(default_factory=list[str])
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # it stands otherwise by now
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # its owner has to decide


@click.command("replay")
@click.argument("job_id", metavar="[ID]", required=False, type=job_id)
@click.option("--reason", required=True, metavar="TEXT", help="Why, in one line; kept with who did it.")
@click.option("--all", "of_all", is_flag=True, help="Instead of ID: every job that needs attention.")
@click.option("--kind", help="With --all: only jobs of this kind.")
@click.option("--code", help="With --all: only jobs with an open question of this code, for example worker_lost.")
@click.option("--raised-before", type=moment, metavar="TIME", help="With --all: only what was asked until then. Default: now.")
@click.option("--limit", type=Whole(min=1), metavar="N", help="With --all: at most so many jobs.")
@click.option("--dry-run", is_flag=True, help="With --all: name them, and change nothing.")
@as_option
@store_option
@json_option
def command(
    job_id: str | None,
    *,
    reason: str,
    of_all: bool,
    kind: str | None,
    code: str | None,
    raised_before: datetime | None,
    limit: int | None,
    dry_run: bool,
    acting: Principal | None,
    store: str | None,
    as_json: bool,
) -> None:
    """As an operator, try again all that needs attention: same job, same results and steps. Again is no error.

    With --all each job is taken up by itself, so that an interruption loses nothing: the same command with the --raised-before that it
    named goes on with the rest, and takes up nothing twice. Calls of unknown outcome are left to the owner, who alone says whether one
    may happen twice. Exit code 1 if a question of the one job is left, or with --all if a job was refused.
    """
    if of_all == (job_id is not None):
        raise click.UsageError("Name one job by its ID, or take --all that need attention.")
    if job_id is not None:
        if any(given is not None for given in (kind, code, raised_before, limit)) or dry_run:
            raise click.UsageError("--kind, --code, --raised-before, --limit and --dry-run go with --all.")
        _one(job_id, reason, acting, store, as_json=as_json)
        return
    check_text(reason, what="reason", limit=MAX_REASON)
    if acting is not None and OPERATOR not in acting.roles:
        raise Forbidden("Only an operator can take up what needs attention; its owner has `outlast jobs retry`.")
    app = at_store(store)
    with opened(app) as client:
        until_ms = client.store.run_sync(status.clock()) if raised_before is None else round(raised_before.timestamp() * 1000)
        until = datetime.fromtimestamp(until_ms / 1000, tz=UTC)
        note(f"what was asked until {until.isoformat()}; to go on after an interruption: --raised-before {until.isoformat()}")
        wanted = Asking(None if acting is None else acting.tenant, kind, code, until_ms)
        report = Report()
        for tenant, found in _asking(client, wanted):
            if limit is not None and len(report.done) == limit:
                break
            if dry_run:
                report.done.append(found)
            else:
                _take_up(client, app.desk.app, found, principal=acting or operator_of(tenant), reason=reason, report=report)
            if not as_json and report.done[-1:] == [found]:
                say(found)
    _tell(report, until, dry_run=dry_run, as_json=as_json)
    if report.refused:
        raise click.exceptions.Exit(int(Exit.ATTENTION))


def _one(job_id: str, reason: str, acting: Principal | None, store: str | None, *, as_json: bool) -> None:
    with opened(at_store(store)) as client:
        principal = acting_on(client, job_id, acting)
        try:
            view = client.replay(job_id, principal=principal, reason=reason)
        except Invalid as error:
            if error.code != "not_offered":
                raise
            view = client.get(job_id, principal=principal)
        left = open_questions(client, view, principal)
    tell(view, as_json=as_json)
    end_with_left(left, job_id, principal)


def _asking(client: SyncClient, wanted: Asking) -> Iterator[tuple[str, str]]:
    """Tenant and id of each job, once."""
    after: tuple[str, str] | None = None
    while page := client.store.run_sync(replay.asking(wanted, after=after, limit=_PAGE)):
        yield from page
        after = page[-1]


def _take_up(client: SyncClient, app: Application, found: str, *, principal: Principal, reason: str, report: Report) -> None:
    try:
        _, repeated = drive_call(replayed(app, found, principal, reason), client.store)
    except (Conflict, NotFound) as error:  # final by now, or purged
        report.skipped.append((found, error.code))
    except Invalid as error:
        report.refused.append((found, error.code))
    else:
        if repeated:  # somebody has decided meanwhile
            report.skipped.append((found, "attention_superseded"))
        else:
            report.done.append(found)


def _tell(report: Report, until: datetime, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        others = {name: [{"id": one, "code": code} for one, code in found] for name, found in _others(report).items()}
        say_json({"dry_run": dry_run, "raised_before": until, "done": report.done, **others})
        return
    for name, found in _others(report).items():
        for one, code in found:
            note(f"{name} {one}: {_WHY.get(code, 'it has ended by now')} ({code})")
    counts = f"{len(report.skipped)} skipped, {len(report.refused)} refused"
    note(f"{len(report.done)} would be taken up" if dry_run else f"{len(report.done)} done, {counts}")


def _others(report: Report) -> dict[str, list[tuple[str, str]]]:
    return {"skipped": report.skipped, "refused": report.refused}


_WHY = {
    "attention_superseded": "it was decided meanwhile, or cancelled",
    "not_offered": "nothing that it asks offers a retry; its owner has to decide",
}
