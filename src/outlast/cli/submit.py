"""`outlast jobs submit`: one job, from JSON."""

from __future__ import annotations

import sys
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any, cast, get_args

import click

from outlast.app import Outlast
from outlast.cli.exits import Refused, exit_of
from outlast.cli.fault import planning
from outlast.cli.options import Whole, application, identity, json_option, opened, store_option
from outlast.cli.output import say, say_json
from outlast.client.driving import drive_admission
from outlast.client.submitting import prepare_json, submit
from outlast.domain.errors import Invalid, NotRegistered, OutcomeUnknown
from outlast.domain.kinds import Kind
from outlast.domain.model import Handle, Principal, TargetRef, Unique, UniquePolicy
from outlast.domain.payload import JSON, parse


def moment(text: str) -> datetime:
    """An aware time from ISO 8601."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter("write ISO 8601 with a zone, for example 2030-01-31T08:00:00+01:00") from error
    if found.utcoffset() is None:
        raise click.BadParameter(f"the time has no zone; add Z for UTC, or an offset, for example {found.isoformat()}+01:00")
    return found


def unique_key(text: str) -> Unique:
    """KEY or KEY:POLICY; what stands behind the last colon is the policy where it is one."""
    key, _, policy = text.rpartition(":")
    try:
        if policy in get_args(UniquePolicy):
            return Unique(key, cast("UniquePolicy", policy))
        return Unique(text, "existing")
    except Invalid as error:
        raise click.BadParameter(error.message) from error


@click.command("submit")
@click.argument("target")
@click.argument("kind")
@click.option("--input", "source", required=True, metavar="FILE|-", help="JSON; - reads standard input.")
@click.option("--as", "owner", type=identity, required=True, metavar="TENANT:SUBJECT", help="Whose job it is.")
@click.option("--key", help="Idempotency key: the same key and request again give the same job.")
@click.option(
    "--schema-version",
    "version",
    type=Whole(min=1),
    metavar="N",
    help="The version of KIND that the input is of, if not its present one.",
)
@click.option("--target-ref", metavar="REF", help="What the result is for, of a kind with a target. With --target-version.")
@click.option("--target-version", metavar="V", help="The version of it that the owner saw.")
@click.option(
    "--unique",
    type=unique_key,
    metavar="KEY[:POLICY]",
    help="One active job for this key. POLICY is existing (the default: gives that job), reject or replace.",
)
@click.option("--not-before", type=moment, metavar="TIME", help="ISO 8601 with a zone; no task starts earlier.")
@store_option
@json_option
def command(
    target: str,
    kind: str,
    *,
    source: str,
    owner: Principal,
    key: str | None,
    version: int | None,
    target_ref: str | None,
    target_version: str | None,
    unique: Unique | None,
    not_before: datetime | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Submit a job of KIND, a name that TARGET (module:attribute) registers. Prints its id, committed, and then its state."""
    app = application(target, store)
    kind_of(app, target, kind)
    aim = _aim(target_ref, target_version)
    value = read_input(source, limit=app.settings.max_input)
    sent_key = key or f"cli-{uuid.uuid4().hex}"
    known = app.desk.app
    with planning(f"the kind {kind!r}"):
        prepared = prepare_json(known, kind, version, value, owner=owner, key=sent_key, not_before=not_before, unique=unique, target=aim)
    with opened(app) as client:
        try:
            handle = drive_admission(submit(known, prepared), [prepared], client.store)
        except OutcomeUnknown as error:
            again = f"The connection was lost at the commit. Run the same command again with --key {sent_key}: it makes no second job."
            raise Refused(again, exit_of(error), code=error.code) from error
    if as_json:
        say_json({"id": handle.id, "state": handle.state, "replayed": handle.replayed, "expired": handle.expired})
        return
    say(handle.id)
    say(f"{handle.state}{came_before(handle, unique)}")


def _aim(ref: str | None, version: str | None) -> TargetRef | None:
    """The target that two options name, or neither."""
    if (ref is None) != (version is None):
        raise click.UsageError(
            "A target is named by both --target-ref and --target-version: what the result is for, and the version you saw."
        )
    return None if ref is None or version is None else TargetRef(ref, version)


def came_before(handle: Handle, unique: Unique | None = None) -> str:
    """In words, that the key is not new, and what that means where its job is no longer kept."""
    if handle.expired:
        return " (replayed: this key and request came before, and the job is no longer kept; use a new key to have it done again)"
    other = "" if unique is None else ", or the unique key's job is active"
    return f" (replayed: this key and request came before{other})" if handle.replayed else ""


def kind_of(app: Outlast, target: str, name: str) -> Kind[Any]:
    """The kind of that name; Refused, with those that there are."""
    try:
        return app.registry.kind(name)
    except NotRegistered as error:
        known = ", ".join(sorted(app.registry.kinds)) or "none; are its modules imported?"
        raise Refused(f"{target} registers no kind {name!r}. Its kinds: {known}.", code=error.code) from error


def read_input(source: str, *, limit: int) -> JSON:
    """The value in a file, read strictly."""
    try:
        if source == "-":
            body = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(source).open("rb") as file:
                body = file.read(limit + 1)
    except OSError as error:
        raise Refused(f"The input {source!r} cannot be read: {error.strerror}.", code="input") from error
    return parse(body, limit=limit)
