"""`make simulate`: the engine in simulated time, with everything that can go wrong, from seeds.

    python -m simulate.run [--seeds 200] [--from 0] [--seed N] [--processes 1] [--mutants]

Prints one table. A seed that fails is shortened, its trace is shown, it is kept in simulate/seeds.txt, and the status is 1. A seed that
is none: a message, status 2.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from simulate.mutants import MUTANTS
from simulate.runs import Sum, bench, run_all
from simulate.seeds import MOST, keep, seed_of
from simulate.shrinking import MOST as MOST_RUNS
from simulate.shrinking import shortened
from simulate.world import Outcome

_CHUNK: Final = 100
_SHOWN: Final = 3  # failing seeds that are shortened
_LINES: Final = 45
_WITHIN: Final = 300  # seeds in which a mutant has to be found


def main(argv: Sequence[str] | None = None) -> int:
    """The status of the command."""
    options = _options(argv)
    if options.mutants:
        return _mutants()
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    began, busy = time.monotonic(), time.process_time()
    total = Sum()
    if options.processes == 1:
        for start in range(0, len(seeds), _CHUNK):
            total.merge(run_all(seeds[start : start + _CHUNK]))
            _say(total, len(seeds))
        busy = time.process_time() - busy
    else:
        parts = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
        with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
            for part in pool.imap_unordered(run_all, parts):
                total.merge(part)
                _say(total, len(seeds))
        busy = (time.monotonic() - began) * options.processes
    for line in table(total, took=time.monotonic() - began, busy=busy):
        print(line)
    if options.seed is not None:
        print(f"history                {_hash(options.seed):016x}")
    for failed in total.failed[:_SHOWN]:
        _show(failed)
    return 1 if total.failed else 0


def table(total: Sum, *, took: float, busy: float) -> list[str]:
    """What a run came to, for people. busy: seconds of processors."""
    counts = total.counts
    rows = [
        ("seeds", f"{total.seeds:,}"),
        ("simulated hours", f"{total.seconds / 3600:,.1f}"),
        ("statements", f"{counts.statements:,}"),
        ("commits", f"{counts.commits:,}"),
        ("crashes", f"{counts.crashes:,}"),
        ("unknown commits", f"{counts.unknown:,}"),
        ("errors of the store", f"{counts.errors:,}"),
        ("pauses", f"{counts.pauses:,}"),
        ("guarded writes refused", f"{counts.refused:,}"),
        ("recovered by sweeps", f"{counts.swept:,}"),
        ("jobs", f"{counts.jobs:,}"),
        ("tasks completed", f"{counts.completed:,}"),
        ("calls of the provider", f"{counts.calls:,}"),
        ("readings of all rows", f"{counts.checks:,}"),
        ("seconds", f"{took:,.1f}"),
        ("seeds a second", f"{total.seeds / max(took, 0.001):,.1f}"),
        ("acceleration", f"{total.seconds / max(busy, 0.001):,.0f} x on one core"),
        ("violations", f"{sum(len(failed.violations) for failed in total.failed):,} in {len(total.failed):,} seeds"),
    ]
    return [f"{name:22} {value}" for name, value in rows]


def _say(total: Sum, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{total.seeds} of {of} seeds, {len(total.failed)} failed", end="\n" if total.seeds == of else "", file=sys.stderr)


def _hash(seed: int) -> int:
    with bench() as one:
        return one.run(seed).hash


def _show(failed: Outcome) -> None:
    with bench() as one:
        plan, found = shortened(lambda plan: one.run(failed.seed, plan), failed, most=MOST_RUNS)
        traced = one.run(failed.seed, plan, tracing=True)
    keep(failed.seed, found.violations[0])
    left = len(failed.faults) - len(found.faults)
    print(f"\nSEED {failed.seed}: {failed.violations[0]}")
    print(f"  again: make simulate SEED={failed.seed}    kept in tests/simulate/seeds.txt")
    print(f"  shortened: {len(found.faults)} faults, {left} left out; without {', '.join(sorted(plan.without)) or 'nobody'}:")
    for sentence in found.violations[:5]:
        print(f"    {sentence}")
    for fault in found.faults[:20]:
        print(f"    fault {fault.place}: {fault.kind}")
    for line in traced.trace[-_LINES:]:
        print(f"  {line}")


def _mutants() -> int:
    survived = 0
    for mutant in MUTANTS:
        found: Outcome | None = None
        with bench(mutant) as one:
            for seed in (mutant.found_by, *range(_WITHIN)):
                outcome = one.run(seed)
                if outcome.violations:
                    found = outcome
                    break
        survived += found is None
        said = "SURVIVED" if found is None else f"seed {found.seed:4}  {found.violations[0][:90]}"
        print(f"{mutant.name:52} {said}", flush=True)
    print(f"{len(MUTANTS)} mutants, {survived} survived")
    return 1 if survived else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate", description="The engine in simulated time, with everything that can go wrong.")
    parser.add_argument("--seeds", type=_number("SEEDS", 1), default=200, help="how many, from the first on")
    parser.add_argument("--from", dest="first", type=_seed, default=0, help="the first")
    parser.add_argument("--seed", type=_seed, help="this one alone")
    parser.add_argument("--processes", type=_number("PROCESSES", 1), default=1)
    parser.add_argument("--mutants", action="store_true", help="find each of the changes that break the engine")
    return parser.parse_args(argv)


def _seed(text: str) -> int:
    try:
        return seed_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _number(name: str, least: int) -> object:
    def read(text: str) -> int:
        with suppress(ValueError):
            number = seed_of(text)
            if least <= number <= MOST:
                return number
        raise argparse.ArgumentTypeError(f"{text!r} is not how many: {name} is a whole number, {least} or more.")

    return read


if __name__ == "__main__":
    sys.exit(main())
