"""`outlast doctor`: looks at versions, store, clock and leftovers, and says what to do."""

from __future__ import annotations

import platform
from importlib.metadata import version

import click

import outlast
from outlast.app import Outlast
from outlast.cli import doctor_schedules, doctor_sqlite, doctor_unfinished
from outlast.cli.checks import Check
from outlast.cli.exits import Exit
from outlast.cli.options import TARGET, application, at_store, json_option, opened, store_option
from outlast.cli.output import local, moment_of, safe, say, say_json, table
from outlast.domain.errors import OutlastError
from outlast.domain.work import Pause, UnfinishedRow
from outlast.store.open import open_store, parse, pending
from outlast.store.programs import queues, status

_MARKS = {"ok": "", "note": "note", "action": "TO DO"}


@click.command()
@click.argument("target", required=False, envvar=TARGET)
@store_option
@json_option
def command(target: str | None, *, store: str | None, as_json: bool) -> None:
    """Check versions, the store, its clock, and what is left over; each finding says what to do.

    With TARGET (module:attribute): also whether every unfinished task has code that can run it. Exit code 1 if anything has to be done.
    """
    app = at_store(store) if target is None else application(target, store)
    checks = [*_versions(), *_store(app)]
    todo = [check for check in checks if check.level == "action"]
    unfinished: list[UnfinishedRow] | None = None
    if not todo:
        with opened(app) as client:
            unfinished = client.store.run_sync(status.unfinished_handlers())
            _, pauses = client.store.run_sync(queues.stand())
            overdue = doctor_schedules.checks_of(client)
        checks.extend(map(_paused, pauses))
        checks.extend(doctor_unfinished.checks_of(unfinished, app.registry, target))
        checks.extend(overdue)
        todo = [check for check in checks if check.level == "action"]
    if as_json:
        said = [{"name": c.name, "value": c.value, "level": c.level, "advice": c.advice} for c in checks]
        work = None if unfinished is None else doctor_unfinished.json_of(unfinished, app.registry, target)
        say_json({"ok": not todo, "store": parse(app.url).shown, "checks": said, "unfinished": work})
    else:
        _print(checks, parse(app.url).shown)
    if todo:
        raise click.exceptions.Exit(int(Exit.ATTENTION))


def _versions() -> list[Check]:
    return [
        Check("outlast", outlast.__version__),
        Check("Python", platform.python_version()),
        Check("msgspec", version("msgspec")),
        Check("click", version("click")),
    ]


def _store(app: Outlast) -> list[Check]:
    address = parse(app.url)
    checks = [Check("dialect", address.dialect), *_dialect(app.url)]
    if any(check.level == "action" for check in checks):
        return checks
    try:
        missing = pending(app.url)
    except OutlastError as error:
        return [*checks, Check("migrations", "not this version's", "action", error.message)]
    if missing:
        names = ", ".join(f"{step.number:04d}_{step.name}" for step in missing)
        return [*checks, Check("migrations", f"pending: {names}", "action", "Run `outlast migrate --store URL`.")]
    return [*checks, Check("migrations", "all applied")]


def _dialect(url: str) -> list[Check]:
    address = parse(url)
    if address.dialect == "sqlite":
        return doctor_sqlite.checks_of(address.target)
    try:
        from outlast.cli import doctor_postgres  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        return [Check("psycopg", "not installed", "action", "pip install 'outlast[postgres]'")]
    open_store(url)  # opens nothing yet, and refuses a URL that cannot be read
    return doctor_postgres.checks_of(address.target)


def _paused(pause: Pause) -> Check:
    since = f"since {local(moment_of(pause.at_ms))} by {pause.by}"
    reason = pause.reason.rstrip()
    ended = reason if reason.endswith((".", "!", "?")) else f"{reason}."
    advice = f"{ended} Nothing of it is claimed until: outlast queues resume {pause.queue} --reason TEXT"
    return Check(f"paused queue {pause.queue}", since, "note", advice)


def _print(checks: list[Check], shown: str) -> None:
    say(f"store {shown}")
    lines = [(c.name, "" if c.value is None else str(c.value), _MARKS[c.level]) for c in checks]
    for check, line in zip(checks, table(("", "", " "), lines).split("\n")[1:], strict=True):
        say(f"  {line}")
        if check.advice:
            say(f"      {safe(check.advice)}")
    todo = sum(check.level == "action" for check in checks)
    say("all is well" if not todo else f"{todo} to do")
