"""The application: a kind `report` whose text goes to a document, whose charts are drawn one a task, and which is mailed once.

Settings, from the environment: OUTLAST_STORE, REPORT_FOLDER (where charts go), REPORT_MAIL (address of the mail provider).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.report import charts, mailer
from examples.report.countries import Country, countries_of

from outlast import Completion, Context, Outlast, Permanent, Plan, SyncContext

jobs = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///report.db"))

TABLES = "create table if not exists document (ref varchar(100) primary key, text text not null, version integer not null)"


@dataclass
class Report:
    """Asks for a report about a region, mailed to somebody. `pace`: seconds that each task takes, so that it can be watched."""

    region: str
    to: str
    pace: float = 0.0


@dataclass
class Chart:
    """One chart of a report."""

    title: str
    measure: str


CHARTS = (Chart("Population", "population"), Chart("Area in square kilometres", "area"), Chart("People per square kilometre", "density"))


@jobs.target("document")
def put_text(db: Any, ref: str, expected: str, text: str) -> str | None:  # noqa: ANN401 - the driver's own connection
    """Changes the document, if it still is at the version that is expected; on the driver's own connection."""
    if not expected.isdecimal():
        return None  # an owner may name any version
    mark = "?" if isinstance(db, sqlite3.Connection) else "%s"
    changed = db.execute(
        f"update document set text = {mark}, version = version + 1 where ref = {mark} and version = {mark}",  # noqa: S608 - only the mark
        (text, ref, int(expected)),
    )
    return str(int(expected) + 1) if changed.rowcount else None


@jobs.task
async def load(ctx: Context, report: Report) -> list[Country]:
    """The figures of the region."""
    await asyncio.sleep(report.pace)
    found = await ctx.step("read the figures", countries_of, report.region)
    if not found:
        raise Permanent("no_figures", "There are no figures for this region.")
    return found


@jobs.task(max_attempts=20)
async def write_text(ctx: Context, report: Report) -> Completion[str]:
    """The text, which goes to the document, or is kept if somebody changed it meanwhile."""
    rows = await ctx.output(load)
    await asyncio.sleep(report.pace)
    people = sum(country.population for country in rows)
    lines = [f"# {report.region}", "", f"{len(rows)} countries, {people:,} people.", ""]
    lines += [f"- {country.name}: {country.population:,}" for country in rows[:10]]
    return ctx.attach("\n".join(lines))


@jobs.task(max_attempts=20)
def draw(ctx: SyncContext, report: Report, chart: Chart) -> str:
    """The path of one chart."""
    rows = ctx.output(load)
    time.sleep(report.pace)
    ctx.check()
    values = sorted(((country.name, _measure(country, chart.measure)) for country in rows), key=lambda row: -row[1])[:15]
    path = Path(os.environ.get("REPORT_FOLDER", ".")) / f"{ctx.job_id}-{chart.measure}.png"
    draft = path.with_suffix(f".{ctx.fence}")
    draft.write_bytes(charts.bars(f"{report.region}: {chart.title}", values))
    draft.rename(path)  # whole, or not there; drawn twice it is the same
    return str(path)


def _measure(country: Country, measure: str) -> float:
    match measure:
        case "population":
            return country.population
        case "area":
            return country.area
        case _:
            return country.population / country.area if country.area else 0.0


@jobs.task(max_attempts=20)
async def mail(ctx: Context, report: Report) -> str:
    """The provider's id of the one mail that is sent, however often the worker dies or the provider's answer is lost."""
    text = await ctx.output(write_text)
    drawn = await ctx.outputs(draw)
    message = {"job": ctx.job_id, "to": report.to, "text": text, "charts": [Path(path).name for path in drawn.values()]}
    return await ctx.effect(
        "mail",
        lambda key: asyncio.to_thread(mailer.send, key, message),
        reconcile=lambda key: asyncio.to_thread(mailer.find, key),
        input=report.to,
        timeout=mailer.TIMEOUT,
    )


@jobs.kind(
    "report",
    label="Report with charts",
    target=put_text,
    promise=(5, 15),
    success="The report stands in the document, and was mailed.",
    cancel_note="A mail that was sent stays sent.",
)
def report(plan: Plan[Report], input: Report) -> None:  # noqa: ARG001 - every report has the same plan
    """Figures, then text and charts, then the mail."""
    figures = plan.task(load, label="Figures")
    text = plan.task(write_text, label="Text", after=[figures], usable=True)
    drawn = plan.each(draw, CHARTS, label=lambda chart: chart.title, after=[figures])
    plan.task(mail, label="E-mail", after=[text, *drawn])
