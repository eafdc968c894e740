"""`make models`: three small models of what must never break, explored completely by spin; with an error put in, each is refuted.

    python -m models.run [--long]

Of each model every state is visited, and no assertion fails, nobody waits for ever, and what has to happen happens in the end. A statement
of a model that is reached in no variant would be proof of nothing, and fails. Then each error that a model knows is put in, and has to be
found.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
_FAILED, _CANNOT = 1, 2
_ERRORS = re.compile(r"errors: (\d+)")
_STATES = re.compile(r"^\s*(\S+) states, stored", re.MULTILINE)
_DEPTH = re.compile(r"depth reached (\d+)")
_UNREACHED = re.compile(r"\.pml:(\d+), state \d+, \"(.*)\"")


@dataclass(frozen=True, slots=True)
class Model:
    """A model, in the variants in which it has to hold, and the errors that have to be found, each in a variant."""

    name: str
    variants: tuple[tuple[str, ...], ...]
    errors: tuple[tuple[str, ...], ...]
    fair: bool = False
    """Whether it says what happens in the end, under weak fairness."""
    long: tuple[str, ...] = ()
    """What a long run adds."""


MODELS = (
    Model(
        "lease",
        ((),),
        (
            ("NO_FENCE_CHECK",),
            ("NO_LEASE_CHECK",),
            ("NO_REVOKED_CHECK",),
            ("NO_FENCE_INCREMENT",),
            ("SWEEP_BELIEVES",),
            ("DELETE_FIRST",),
            ("REVOKE_ONLY_HELD",),
        ),
        long=("MAX_FENCE=6",),
    ),
    Model(
        "dispatch",
        ((),),
        (
            ("NO_SWEEP",),
            ("SWEEP_ONCE",),
            ("TAKEN_FOR_EVER",),
            ("DELETE_BEFORE_CONFIRM",),
            ("ACKNOWLEDGE_FIRST",),
            ("BELIEVES_HINTS",),
        ),
        fair=True,
        long=("FAULTS=3",),
    ),
    Model(
        "effect",
        (("WAY=0",), ("WAY=1",), ("WAY=2",)),
        (
            ("CALL_BEFORE_INTENT", "WAY=0"),
            ("NO_WAIT", "WAY=0"),
            ("LATE_CALL", "WAY=0"),
            ("ABOUT_WHATEVER_STANDS", "WAY=0"),
            ("LAST_REPORT_WINS", "WAY=0"),
            ("FORGETS_DOUBT", "WAY=1"),
            ("REPEATS_UNKNOWN", "WAY=2"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Explored:
    """What spin said of a model with these definitions."""

    complete: bool
    errors: int
    states: str
    depth: int
    unreached: frozenset[tuple[str, str]]
    said: str


@dataclass(slots=True)
class Report:
    """The lines of the table, and whether all passed."""

    lines: list[str] = field(default_factory=list[str])
    passed: bool = True

    def add(self, name: str, definitions: Sequence[str], said: str, *, passed: bool) -> None:
        """One line more."""
        self.passed = self.passed and passed
        self.lines.append(f"{name:<9} {' '.join(definitions):<29} {'passed' if passed else 'FAILED'}  {said}")
        print(self.lines[-1], flush=True)


def missing_tool() -> str | None:
    """What is not installed; None where all is there."""
    missing = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} not installed (apt-get install spin gcc libc6-dev)" if missing else None


def explore(model: Model, definitions: Sequence[str], *, optimise: str = "-O1") -> Explored:
    """Every state of the model with these definitions, or the first error."""
    given = [f"-D{name}" for name in definitions]
    with tempfile.TemporaryDirectory(prefix="outlast-models-") as folder:
        shutil.copy(HERE / f"{model.name}.pml", folder)
        kinds = ["-DNFAIR=4"] if model.fair else ["-DSAFETY"]
        _must(folder, "spin", *given, "-a", f"{model.name}.pml")
        _must(folder, "gcc", "-w", optimise, *kinds, *given, "-o", "pan", "pan.c")
        ran = subprocess.run(
            ["./pan", "-m3000000", *(["-a", "-f"] if model.fair else [])], cwd=folder, capture_output=True, text=True, check=False
        )
    said = ran.stdout
    errors, states, depth = _ERRORS.search(said), _STATES.search(said), _DEPTH.search(said)
    if errors is None or states is None or depth is None:
        raise RuntimeError(f"spin did not come to its end with {model.name} {' '.join(definitions)}:\n{said[-2000:]}{ran.stderr[-2000:]}")
    # A search that was cut off says so; so does one that ran into an error.
    complete = ran.returncode == 0 and "Search not completed" not in said and "max search depth too small" not in said
    unreached = frozenset((line, text) for line, text in _UNREACHED.findall(said) if text != "-end-")
    first = next((line.strip() for line in said.splitlines() if line.startswith("pan:1:")), "")
    return Explored(complete, int(errors[1]), f"{float(states[1]):,.0f}", int(depth[1]), unreached, first)


def _must(folder: str, *command: str) -> None:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")


def _reason(said: str) -> str:
    """What was violated, without where."""
    return said.removeprefix("pan:1: ").partition(" (at depth")[0]


def prove(models: Sequence[Model] = MODELS, *, long: bool = False) -> Report:
    """Prints the table."""
    report = Report()
    for model in models:
        unreached: list[frozenset[tuple[str, str]]] = []
        for variant in model.variants:
            definitions = (*variant, *(model.long if long else ()))
            whole = explore(model, definitions)
            unreached.append(whole.unreached)
            cut = "" if whole.complete else f", NOT COMPLETE: {whole.said}"
            said = f"{whole.states} states, depth {whole.depth}, {whole.errors} errors{cut}"
            report.add(model.name, definitions, said, passed=whole.complete and whole.errors == 0)
        never = frozenset.intersection(*unreached)
        if never:
            shown = "; ".join(f"line {line}: {text}" for line, text in sorted(never)[:5])
            report.add(model.name, (), f"never reached: {shown}", passed=False)
        for error in model.errors:
            found = explore(model, error)
            refuted = found.errors > 0
            said = f"refuted at depth {found.depth}: {_reason(found.said)}" if refuted else "NOT FOUND"
            report.add(model.name, error, said, passed=refuted)
    return report


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="make models", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--long", action="store_true", help="more claims, more faults")
    given = parser.parse_args()
    missing = missing_tool()
    if missing is not None:
        print(f"NOTHING IS PROVEN: {missing}.", file=sys.stderr)
        return _CANNOT
    began = time.monotonic()
    report = prove(long=given.long)
    print(f"{len(report.lines)} runs, {time.monotonic() - began:.0f} s")
    return 0 if report.passed else _FAILED


if __name__ == "__main__":
    sys.exit(main())
