"""Counts what the imports left in the tables, against the file itself."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate
from typing import Any

from examples.airports import source
from examples.airports.rules import Judged, Rules, judge
from examples.airports.tables import Totals, ask, content


class Wrong(Exception):
    """Something is not as it was promised."""


def check(right: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raises Wrong unless it is right."""
    if not right:
        raise Wrong(otherwise)


@dataclass
class Expected:
    """What an import of the file by some rules has to leave: each line as it is stored, in order, and why lines are rejected."""

    lines: list[str]
    reasons: list[str]

    def totals(self, upto: int) -> Totals:
        """The totals of the first lines."""
        rejected = sum(bool(reason) for reason in self.reasons[:upto])
        return Totals(upto - rejected, rejected)

    def by_reason(self) -> str:
        """The reasons with their numbers, as a sentence says them."""
        return ", ".join(f"{reason} {number:,}" for reason, number in Counter(self.reasons).most_common() if reason)


def expected(rules: Rules) -> Expected:
    """By the file itself."""
    judged = list(judge(source.read()[1], rules))
    return Expected([repr(stored(one)) for one in judged], [one.reason for one in judged])


def landed(url: str, job: str) -> int:
    """How many rows the job's steps have written, by the log that they wrote with them."""
    return int(ask(url, "select coalesce(sum(size), 0) from landing where job = ?", job)[0][0])


def steps(url: str, ids: Sequence[str]) -> int:
    """How many steps the jobs have written, by the same log."""
    return int(ask(url, f"select count(*) from landing where job in ({', '.join('?' * len(ids))})", *ids)[0][0])  # noqa: S608 - marks


def whole(url: str, job: str, wanted: Expected, *, published: bool) -> Totals:
    """The totals of an import whose rows are those of the file from its first line on, each once; Wrong if they are not.

    A published one has all of them.
    """
    upto = landed(url, job)
    check(upto == len(wanted.lines) or not published, f"{job} was published with {upto:,} of {len(wanted.lines):,} rows")
    rows: list[tuple[Any, ...]] = ask(url, f"select line, {', '.join(source.COLUMNS)} from airport where job = ?", job)  # noqa: S608
    rows += ask(url, "select line, reason, content from reject where job = ?", job)
    found = {row[0]: repr(row) for row in rows}
    check(len(rows) == len(found), f"{job} has {len(rows) - len(found):,} rows twice")
    check(sorted(found) == list(range(1, upto + 1)), f"{job} should have the first {upto:,} lines, and has {len(found):,}")
    lines = [found[line] for line in range(1, upto + 1)]
    check(_digest(lines) == _digest(wanted.lines[:upto]), f"{job} has other rows than the file")
    totals = wanted.totals(upto)
    counted = ask(url, "select imported, rejected, published from edition where job = ?", job)
    said = [(totals.imported, totals.rejected, int(published))] if upto else []
    check(counted == said, f"{job} should have the totals {said}, and has {counted}")
    return totals


def at_once(url: str, ids: Iterable[str]) -> tuple[dict[str, int], int]:
    """The most imports at one moment, of each tenant and of all, by the store's clock.

    A claim was held from the first to the last of the steps that it stored, each under its guard; that is what can be known for sure.
    """
    held: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for job in ids:
        for tenant, fence, at in ask(url, "select tenant, fence, at from landing where job = ?", job):
            held[tenant, job, int(fence)].append(float(at))
    spans = [(tenant, min(times), max(times)) for (tenant, _, _), times in held.items()]
    tenants = {tenant for tenant, _, _ in spans}
    return {one: _most((a, b) for tenant, a, b in spans if tenant == one) for one in sorted(tenants)}, _most((a, b) for _, a, b in spans)


def _most(spans: Iterable[tuple[float, float]]) -> int:
    moves = sorted(move for begin, end in spans for move in ((begin, 0, 1), (end, 1, -1)))  # at the same moment who comes is there already
    return max(accumulate(step for _, _, step in moves))


def stored(judged: Judged) -> tuple[object, ...]:
    """The row as the tables have it."""
    if judged.airport is None:
        return (judged.line, judged.reason, content(judged.row))
    return (judged.line, *astuple(judged.airport))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
