"""Options that commands share: the store, whose behalf, JSON; and the `Outlast` that they come to."""

from __future__ import annotations

import math
import os
import pwd
from collections.abc import Generator
from contextlib import contextmanager

import click

from outlast.app import Outlast
from outlast.cli.target import load
from outlast.client._sync import SyncClient
from outlast.domain.access import OPERATOR
from outlast.domain.defaults import LONGEST
from outlast.domain.errors import Invalid
from outlast.domain.model import Principal
from outlast.store.open import EXAMPLES

STORE = "OUTLAST_STORE"
TARGET = "OUTLAST_TARGET"
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

store_option = click.option(
    "--store", metavar="URL", envvar=STORE, show_envvar=True, help="sqlite:///path (four slashes: absolute) or postgresql://..."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
target_argument = click.argument("target", envvar=TARGET)


def identity(text: str) -> Principal:
    """The principal of TENANT:SUBJECT or TENANT:SUBJECT:operator. A subject may have colons of its own."""
    tenant, _, subject = text.partition(":")
    operator = subject.endswith(f":{OPERATOR}")
    subject = subject.removesuffix(f":{OPERATOR}")
    if not tenant or not subject:
        raise click.BadParameter("write TENANT:SUBJECT, or TENANT:SUBJECT:operator, for example acme:ann")
    try:
        return Principal(tenant, subject, roles=[OPERATOR] if operator else ())
    except Invalid as error:
        raise click.BadParameter(error.message) from error


def person(text: str) -> Principal:
    """The owner of TENANT:SUBJECT, split at the first colon. Nothing in it is a role: a subject may end in `:operator`."""
    tenant, _, subject = text.partition(":")
    if not tenant or not subject:
        raise click.BadParameter("write TENANT:SUBJECT, for example acme:ann; all behind the first colon is the subject")
    try:
        return Principal(tenant, subject)
    except Invalid as error:
        raise click.BadParameter(error.message) from error


as_option = click.option(
    "--as", "acting", type=identity, metavar="TENANT:SUBJECT", help="Act as this owner. Without it: as operator at the store."
)
owner_option = click.option(
    "--as",
    "acting",
    type=identity,
    metavar="TENANT:SUBJECT",
    help="The owner of the job, who alone decides this. Without it, or as anybody else, it is refused (code 7, or 3).",
)


def seconds(text: str) -> float:
    """A finite number of seconds, not below 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise click.BadParameter(f"{text!r} is not a number of seconds; write for example 30 or 0.5")
    return value


def duration(text: str) -> float:
    """Seconds from a number with a unit: 90s, 45m, 12h or 7d. A bare number is none: who writes 7 may mean days."""
    try:
        value = float(text[:-1]) * _UNITS[text[-1:]]
    except (ValueError, KeyError):
        value = math.nan
    if math.isfinite(value) and value > LONGEST:
        raise click.BadParameter(f"{text!r} is too long: {LONGEST // 86_400}d (ten years) at most")
    if not math.isfinite(value) or value < 0:
        raise click.BadParameter(f"{text!r} is not a duration; write for example 90s, 45m, 12h or 7d, with the unit")
    return value


class Whole(click.IntRange):
    """A whole number in a range; click's own name for it is none of people's words."""

    name = "whole number"


def application(target: str, store: str | None) -> Outlast:
    """The `Outlast` that TARGET names, on the store that was asked for, else on its own. Invalid if its kinds cannot be used."""
    app = load(target)
    app.registry.check()
    if store is not None:
        app.use(store)
    return app


def at_store(store: str | None) -> Outlast:
    """An `Outlast` without any kinds, for commands that need none."""
    return Outlast(named(store))


def named(store: str | None) -> str:
    """The store's URL; a usage error if none was given."""
    if store is None:
        raise click.UsageError(f"Name the store: --store URL, or the environment variable {STORE}. A URL is {EXAMPLES}.")
    return store


@contextmanager
def opened(app: Outlast) -> Generator[SyncClient]:
    """The calls of an `Outlast` for blocking code; its connections are given back afterwards."""
    try:
        yield app.sync
    finally:
        app.sync.close()


def operator_of(tenant: str) -> Principal:
    """Who acts at the store itself: an operator, named by the account of the operating system."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Principal(tenant, f"cli:{name}", roles=[OPERATOR])
