"""`outlast bench`: measures a store on this machine."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from outlast.cli.measure import MOST_PICKUPS, MOST_SINGLE, Bench, Figures, Rate
from outlast.cli.options import Whole, json_option, store_option
from outlast.cli.output import note, say, say_json, table
from outlast.store.open import migrate, parse


@click.command()
@store_option
@click.option("--jobs", type=Whole(1, 1_000_000), default=5_000, show_default=True, help="For bulk and drain.")
@json_option
def command(*, store: str | None, jobs: int, as_json: bool) -> None:
    """Measure how fast a store takes, drains and picks up jobs that do nothing, with one client and one worker in one process.

    Without --store: a new SQLite file, deleted afterwards. A store that is named is migrated; it must have no unfinished jobs of
    others, and the finished jobs of the bench stay in it.
    """
    with _store(store) as url:
        migrate(url)
        note(f"measuring {parse(url).shown}, at most {MOST_SINGLE} single submits and {MOST_PICKUPS} pickups")
        figures = asyncio.run(_figures(url, jobs))
    if as_json:
        say_json(asdict(figures))
    else:
        _print(figures)


@contextmanager
def _store(named: str | None) -> Generator[str]:
    if named is not None:
        yield named
        return
    with tempfile.TemporaryDirectory(prefix="outlast-bench-") as folder:
        yield f"sqlite:///{Path(folder) / 'bench.db'}"


async def _figures(url: str, jobs: int) -> Figures:
    bench = Bench(url)
    try:
        return await bench.figures(jobs)
    finally:
        await bench.close()


def _print(figures: Figures) -> None:
    rates: list[tuple[str, Rate]] = [
        ("submit, one at a time", figures.enqueue_single),
        ("submit, 500 a call", figures.enqueue_bulk),
        ("drain by one worker", figures.drain),
    ]
    lines = [(name, str(r.jobs), f"{r.seconds:.2f}", f"{r.jobs / r.seconds:,.0f}" if r.seconds else "") for name, r in rates]
    say(table(("", "JOBS", "SECONDS", "JOBS/S"), lines, numbers=("JOBS", "SECONDS", "JOBS/S")))
    pickup = figures.pickup
    say(f"pickup of {pickup.jobs} jobs, from the answer to the first line: p50 {pickup.p50_ms:.1f} ms, p99 {pickup.p99_ms:.1f} ms")
