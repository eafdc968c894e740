"""`make powerloss`: the power goes after every write, and the process is killed at every write, and nothing acknowledged is lost.

    python -m powerloss.run [--seed 1] [--images 20000] [--long] [--processes 2]

First the store's own code runs through a VFS that writes down what SQLite does to its files, in both journal modes, and the power is cut
after each change: what was not synced is kept, dropped or torn. Then a real process that does one whole job is killed at its n-th write
or sync, for every n, on both drivers. Mistakes made on purpose have to be found. Anything else is a failure, and so is a tool that is
missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from powerloss.cuts import Report, cut
from powerloss.history import History, python_path
from powerloss.kills import Kills, kill_everywhere, missing_tool

JOURNALS = ("wal", "delete")
DRIVERS = ("sqlite3", "apsw")
MISTAKES = (("wal", "normal"), ("delete", "normal"), ("delete", "full"), ("wal", "hasty"), ("delete", "hasty"))
"""With less synchronisation than the journal needs, and acknowledged before the commit."""
FLOOR = 20_000
_ROUNDS = 8
_MISTAKEN_ROUNDS = 1
_ENOUGH = 5
_FAILED, _CANNOT = 1, 2


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table."""

    what: str
    said: str
    passed: bool


def recorded(journal: str, rounds: int, mistake: str = "") -> History:
    """The workload, in a process of its own: apsw brings another SQLite."""
    with tempfile.TemporaryDirectory(prefix="outlast-recording-") as folder:
        path = Path(folder) / "history"
        environment = {**os.environ, "OUTLAST_SQLITE_DRIVER": "apsw", "PYTHONPATH": python_path()}
        command = [sys.executable, "-m", "powerloss.recording", journal, str(rounds), str(path), *([mistake] if mistake else [])]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"the workload failed:\n{ran.stderr[-3000:]}")
        return History.load(path)


def cut_all(journal: str, *, seed: int, images: int, rounds: int) -> tuple[str, Report]:
    """The build, and what came of the cuts in one journal mode."""
    history = recorded(journal, rounds)
    if history.journal != journal:
        raise RuntimeError(f"the store ran in {history.journal} mode, not in {journal}")
    return history.build, cut(history, seed=seed, images=images)


def cut_mistaken(journal: str, mistake: str, *, seed: int) -> Report:
    """The same of a store that is wrong on purpose, until that is found."""
    return cut(recorded(journal, _MISTAKEN_ROUNDS, mistake), seed=seed, images=1, stop_at=_ENOUGH)


def _cuts_line(journal: str, build: str, report: Report) -> Line:
    said = (
        f"{report.images} images of {report.cuts} cuts, {report.distinct} distinct; {report.acknowledged} acknowledgements; "
        f"lost in {report.lost}, unsound {report.unsound}"
    )
    return Line(f"power loss, {journal} (SQLite {build})", said, report.clean)


def _kills_line(kills: Kills) -> Line:
    said = (
        f"killed at {kills.points} calls; {kills.acknowledged} acknowledgements; lost {len(kills.lost)}, unsound {len(kills.unsound)}; "
        f"{kills.recovered} brought to their end"
    )
    return Line(f"kills, {kills.driver}", said, kills.clean)


def _table(lines: list[Line]) -> None:
    width = max(len(line.what) for line in lines)
    for line in lines:
        print(f"{line.what:<{width}}  {'passed' if line.passed else 'FAILED'}  {line.said}", flush=True)


def prove(*, seed: int, images: int, long: bool, processes: int) -> bool:
    """Prints the table; whether all passed."""
    began = time.monotonic()
    each = -(-images // len(JOURNALS))
    rounds = _ROUNDS * (4 if long else 1)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        cuts = {journal: pool.submit(cut_all, journal, seed=seed, images=each, rounds=rounds) for journal in JOURNALS}
        mistakes: dict[tuple[str, str], Future[Report]] = {
            (journal, mistake): pool.submit(cut_mistaken, journal, mistake, seed=seed) for journal, mistake in MISTAKES
        }
        kills = {driver: pool.submit(kill_everywhere, driver) for driver in DRIVERS}
        lines: list[Line] = []
        details: list[str] = []
        made = 0
        for journal, running in cuts.items():
            build, report = running.result()
            made += report.images
            details += report.examples
            lines.append(_cuts_line(journal, build, report))
        for (journal, mistake), seeded in mistakes.items():
            found = seeded.result()
            words = f"lost in {found.lost} of {found.images} images"
            lines.append(Line(f"mistake on purpose: {mistake}, {journal}", words, found.lost > 0))
        for killing in kills.values():
            killed = killing.result()
            details += [*killed.lost, *killed.unsound]
            lines.append(_kills_line(killed))
    lines.append(Line("images in all", f"{made}, at least {images}", made >= images))
    _table(lines)
    print(*details[:20], sep="\n", end="\n" if details else "")
    print(f"seed {seed}, {time.monotonic() - began:.0f} s")
    return all(line.passed for line in lines)


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="make powerloss", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="what is drawn, a whole number")
    parser.add_argument("--images", type=int, default=FLOOR, help="at least so many, both journal modes together")
    parser.add_argument("--long", action="store_true", help="ten times as many")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if given.images < 1 or given.processes < 1:
        parser.error("--images and --processes are at least 1")
    missing = "apsw is not installed (pip install 'outlast[apsw]')" if importlib.util.find_spec("apsw") is None else missing_tool()
    if missing is not None:
        print(f"NOTHING IS PROVEN: {missing}.", file=sys.stderr)
        return _CANNOT
    proven = prove(seed=given.seed, images=given.images * (10 if given.long else 1), long=given.long, processes=given.processes)
    return 0 if proven else _FAILED


if __name__ == "__main__":
    sys.exit(main())
