"""`outlast verify`: recomputes from a store's rows what must hold of them, and says what does not."""

from __future__ import annotations

import click

from outlast.cli.exits import Exit
from outlast.cli.options import json_option, named, store_option
from outlast.cli.output import safe, say, say_json
from outlast.domain.soundness.rule import Finding, count
from outlast.store.open import parse, snapshot
from outlast.store.programs.verify import BEGINNINGS, Report, verify


@click.command()
@store_option
@click.option(
    "--limit", type=click.IntRange(min=0), default=100, show_default=True, help="How many findings are shown; all of them are counted."
)
@json_option
def command(*, store: str | None, limit: int, as_json: bool) -> None:
    """Recompute every counter, state, fence, lease, edge and key from the rows, and say what differs.

    Only reads: one moment of a PostgreSQL store, while workers go on. Exit code 1 if anything is found.
    """
    url = named(store)
    shown = parse(url).shown
    with snapshot(url, beginnings=BEGINNINGS) as moment:
        report = moment.run(verify(limit=limit))
    if as_json:
        say_json({"ok": not report.total, "store": shown, **_document(report)})
    else:
        _print(report, shown)
    if report.total:
        raise click.exceptions.Exit(int(Exit.ATTENTION))


def _document(report: Report) -> dict[str, object]:
    return {
        "read": {"jobs": report.jobs, "tasks": report.tasks, "effects": report.effects},
        "total": report.total,
        "rules": [{"rule": rule.id, "name": rule.name, "sentence": rule.sentence, "findings": number} for rule, number in report.counts],
        "findings": [
            {
                "rule": finding.rule.id,
                "name": finding.rule.name,
                "tenant": finding.tenant or None,
                "job": finding.job_id or None,
                "task": finding.no,
                "found": finding.found,
                "expected": finding.expected,
            }
            for finding in report.findings
        ],
    }


def _print(report: Report, shown: str) -> None:
    say(f"store {shown}")
    say(f"read {count(report.jobs, 'job')}, {count(report.tasks, 'task')}, {count(report.effects, 'effect')}")
    for rule, number in report.counts:
        say(f"{rule.full}: {rule.sentence} ({count(number, 'finding')})")
        for finding in report.findings:
            if finding.rule.full == rule.full:
                say(f"    {_place(finding)}{safe(finding.found)}; should be: {safe(finding.expected)}")
    if report.total > len(report.findings):
        say(f"{report.total - len(report.findings)} more are not shown: --limit")
    say(count(report.total, "finding") if report.total else "all is sound")


def _place(finding: Finding) -> str:
    if not finding.job_id:
        return f"tenant {safe(finding.tenant)}: " if finding.tenant else ""
    task = "" if finding.no is None else f", task {finding.no}"
    return f"job {safe(finding.job_id)}{task} of {safe(finding.tenant)}: "
