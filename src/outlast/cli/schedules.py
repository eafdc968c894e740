"""`outlast schedules`: list, add, remove, pause and resume what is submitted again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from outlast.cli.fault import planning
from outlast.cli.listing import scope_of_list
from outlast.cli.options import application, as_option, at_store, identity, json_option, opened, seconds, store_option
from outlast.cli.output import ago, note, say, say_json, table
from outlast.cli.submit import kind_of, read_input
from outlast.client.views import schedule as view_of
from outlast.domain.cron import Cron
from outlast.domain.model import Principal, ScheduleView
from outlast.domain.payload import dump
from outlast.domain.requests import read_request
from outlast.domain.schedules import CatchUp, Every, Rule
from outlast.store.programs import schedules

_NAME = click.argument("name")
_OWNER = click.option("--as", "owner", type=identity, required=True, metavar="TENANT:SUBJECT", help="Whose schedule it is.")


def catch_up(text: str) -> CatchUp:
    """A policy: skip, one, or a number."""
    if text == "skip":
        return "skip"
    if text == "one":
        return "one"
    if text.isascii() and text.isdigit():
        return int(text)
    raise click.BadParameter(f"{text!r} is no policy; write skip, one or a number")


@click.group()
def command() -> None:
    """What is submitted again and again: by the clock of a zone, or in intervals. Workers do it; each due time becomes one job."""


@command.command("list")
@as_option
@store_option
@json_option
def show(*, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """List schedules: of all tenants, or with --as the owner's own, or those of the operator's tenant."""
    scope = scope_of_list(acting)
    with opened(at_store(store)) as client:
        rows = client.store.run_sync(schedules.listed(scope.tenant if scope else None, scope.owner if scope else None))
    views = [(row.key.tenant, view_of(row)) for row in rows]
    if as_json:
        say_json({"items": [{"tenant": tenant, **schedule_json(view)} for tenant, view in views]})
    elif views:
        say(_lines(views, datetime.now(UTC), owners=scope is None or scope.owner is None))
    else:
        note("no schedules")


@command.command()
@click.argument("target")
@click.argument("kind")
@click.option("--name", required=True, help="What it is known by; a known name is changed.")
@click.option("--cron", metavar="EXPRESSION", help="Minute, hour, day of the month, month, day of the week: '0 2 * * *'.")
@click.option("--zone", metavar="ZONE", help="Of --cron: whose clock, for example Europe/Berlin.  [default: UTC]")
@click.option("--every", type=seconds, metavar="SECONDS", help="In intervals from now on, in place of --cron.")
@click.option("--input", "source", required=True, metavar="FILE|-", help="JSON; - reads standard input.")
@click.option(
    "--catch-up", "policy", type=catch_up, default="one", show_default=True, metavar="skip|one|N", help="Of due times that were missed."
)
@_OWNER
@store_option
@json_option
def add(
    target: str,
    kind: str,
    *,
    name: str,
    cron: str | None,
    zone: str | None,
    every: float | None,
    source: str,
    policy: CatchUp,
    owner: Principal,
    store: str | None,
    as_json: bool,
) -> None:
    """Make a schedule that submits jobs of KIND, a name that TARGET (module:attribute) registers, or change the one of that name."""
    rule = _rule(cron, zone, every)
    app = application(target, store)
    found = kind_of(app, target, kind)
    limit = app.settings.max_input
    value = read_request(found, dump(read_input(source, limit=limit), limit=limit, what="input"), None, limit=limit).value
    with opened(app) as client, planning(f"the kind {kind!r}"):
        view = client.schedule(found, value, name=name, when=rule, owner=owner, catch_up=policy)
    tell(view, as_json=as_json)


@command.command()
@_NAME
@_OWNER
@store_option
def remove(name: str, *, owner: Principal, store: str | None) -> None:
    """Remove a schedule. The jobs that it made stay."""
    with opened(at_store(store)) as client:
        client.unschedule(name, principal=owner)
    say(f"{name} removed")


@command.command()
@_NAME
@_OWNER
@store_option
@json_option
def pause(name: str, *, owner: Principal, store: str | None, as_json: bool) -> None:
    """From here on nothing of it falls due. Again is no error."""
    with opened(at_store(store)) as client:
        tell(client.pause_schedule(name, principal=owner), as_json=as_json)


@command.command()
@_NAME
@_OWNER
@store_option
@json_option
def resume(name: str, *, owner: Principal, store: str | None, as_json: bool) -> None:
    """Go on with the next due time; those in the pause are not made up for. Again is no error."""
    with opened(at_store(store)) as client:
        tell(client.resume_schedule(name, principal=owner), as_json=as_json)


def _rule(cron: str | None, zone: str | None, every: float | None) -> Rule:
    if cron is None and every is None:
        raise click.UsageError("Say when: --cron EXPRESSION (with --zone ZONE), or --every SECONDS.")
    if cron is not None and every is not None:
        raise click.UsageError("Give one of --cron and --every: a schedule has a single rule.")
    if every is not None:
        if zone is not None:
            raise click.UsageError("--zone is of --cron; an interval is the same in each zone.")
        return Every(every)
    return Cron(cron or "", zone=zone or "UTC")


def tell(view: ScheduleView, *, as_json: bool) -> None:
    """The schedule as it stands."""
    if as_json:
        say_json(schedule_json(view))
    else:
        say(_lines([("", view)], datetime.now(UTC), owners=False))


def schedule_json(view: ScheduleView) -> dict[str, object]:
    """A schedule's members."""
    return {
        "name": view.name,
        "owner": view.owner,
        "kind": view.kind,
        "when": view.when,
        "catch_up": view.catch_up,
        "paused": view.paused,
        "paused_by": view.paused_by,
        "next_at": view.next_at,
        "last_at": view.last_at,
        "last_job_id": view.last_job_id,
        "code": view.code,
    }


def _lines(views: Sequence[tuple[str, ScheduleView]], now: datetime, *, owners: bool) -> str:
    headers = ("TENANT", "OWNER", "NAME", "KIND", "WHEN", "NEXT", "LAST", "JOB", "CODE")
    lines = [
        (
            tenant if owners else "",
            view.owner if owners else "",
            view.name,
            view.kind,
            view.when,
            _next(view, now),
            ago(view.last_at, now),
            view.last_job_id or "",
            view.code or "",
        )
        for tenant, view in views
    ]
    return table(headers, lines)


def _next(view: ScheduleView, now: datetime) -> str:
    if view.next_at is None:
        return f"paused by {view.paused_by}"
    due = ago(view.next_at, now)
    return due if view.next_at > now else f"due {due}"
