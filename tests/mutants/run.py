"""`make mutants`: one guard after the other is taken out of a copy of the package, and the tests that are named for it have to notice.

    python -m mutants.run [--processes 2] [--only TEXT]

First all of these tests have to pass as the package is. Then each mutation's run with a copy of the package in the place of the real one,
which is not touched. One that no test notices survives, and fails the command; so does one whose text is not there exactly once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import outlast
from mutants.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(outlast.__file__).parent
_ENDS = re.compile(r"^(?=-- name:|(?:async )?def |class |@)|^    (?=@|def |async def )", re.MULTILINE)
_FAILED = 1
_LIMIT = 600  # seconds; a mutant may wait for what never comes
_TAIL = 15
_WITHOUT = ("cacheprovider", "randomly", "schemathesis", "hypothesispytest")  # chance, and what takes long to import


class Stale(Exception):
    """The text of a mutation is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What the tests said."""

    name: str
    killed: bool
    said: str
    seconds: float


def mutated(text: str, mutation: Mutation) -> str:
    """The text of its file with the mutation in it; Stale if that is not one place."""
    if text.count(mutation.within) != 1:
        raise Stale(f"{mutation.name}: {mutation.file} has {mutation.within!r} {text.count(mutation.within)} times, not once")
    begin = text.index(mutation.within)
    end = _ENDS.search(text, begin + len(mutation.within))
    part = text[begin : end.start() if end else len(text)]
    if part.count(mutation.old) != 1:
        raise Stale(
            f"{mutation.name}: behind {mutation.within!r} {mutation.file} has {mutation.old!r} {part.count(mutation.old)} times, not once"
        )
    return text[:begin] + part.replace(mutation.old, mutation.new) + text[begin + len(part) :]


def stale(mutations: Iterable[Mutation]) -> list[str]:
    """The mutations whose text is not there exactly once."""
    found = []
    for mutation in mutations:
        try:
            mutated((PACKAGE / mutation.file).read_text("utf-8"), mutation)
        except (OSError, Stale) as error:
            found.append(str(error))
    return found


def try_out(mutation: Mutation) -> Tried:
    """Runs its tests on a copy of the package that has the mutation."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="outlast-mutant-") as folder:
        copy = Path(folder) / "outlast"
        shutil.copytree(PACKAGE, copy)  # with what was compiled
        file = copy / mutation.file
        file.write_text(mutated(file.read_text("utf-8"), mutation), "utf-8")
        status, said = _pytest(mutation.tests, folder)
    # Only by a test that failed: one that is not there, or could not begin, has noticed nothing.
    killed = status == _FAILED and " failed" in said.rstrip().rpartition("\n")[2]
    return Tried(mutation.name, killed, said, time.monotonic() - began)


def _pytest(tests: Sequence[str], package: str | None = None) -> tuple[int, str]:
    """Exit status and output."""
    environment = {**os.environ, **({} if package is None else {"PYTHONPATH": package})}
    options = ["-n0", "-x", "-q", "--tb=short", *(part for name in _WITHOUT for part in ("-p", f"no:{name}"))]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return -1, f"it did not come to its end in {_LIMIT} s"
    return ran.returncode, ran.stdout + ran.stderr


def sound(mutations: Sequence[Mutation]) -> str | None:
    """What the tests of these mutations say against the package as it is; None if they pass."""
    status, said = _pytest(sorted({test for mutation in mutations for test in mutation.tests}))
    return None if status == 0 else said


def _tail(said: str) -> str:
    return "\n".join(f"    {line}" for line in said.rstrip().splitlines()[-_TAIL:])


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="those whose name has this in it")
    given = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if given.only in mutation.name]
    if given.processes < 1 or not chosen:
        parser.error("--processes is at least 1, and --only is part of a name")
    began = time.monotonic()
    wrong = stale(MUTATIONS)
    if wrong:
        print(*wrong, sep="\n")
        return _FAILED
    broken = sound(chosen)
    if broken is not None:
        print("The tests do not pass as the package is, so that nothing can be said of mutants:", _tail(broken), sep="\n")
        return _FAILED
    print(f"as it is, the tests pass ({time.monotonic() - began:.0f} s)", flush=True)
    survivors = 0
    with ThreadPoolExecutor(given.processes) as pool:
        for tried in pool.map(try_out, chosen):
            print(f"{'killed' if tried.killed else 'SURVIVED':<9} {tried.seconds:5.1f} s  {tried.name}", flush=True)
            if not tried.killed:
                survivors += 1
                print(_tail(tried.said))
    print(f"{len(chosen)} mutants, {len(chosen) - survivors} killed, {survivors} survived; {time.monotonic() - began:.0f} s")
    return _FAILED if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
