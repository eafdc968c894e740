"""A failing seed with as few faults and actors as it takes: what is left out is left out as long as something still goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulate.faults import Plan
from simulate.world import ACTORS, Outcome

MOST = 80
"""Runs that shortening may take."""


def shortened(run: Callable[[Plan], Outcome], failed: Outcome, *, most: int = MOST) -> tuple[Plan, Outcome]:
    """The smallest plan that was found, and what came of it."""
    left = most
    plan, found = Plan(), failed

    def still_fails(smaller: Plan) -> Outcome | None:
        nonlocal left
        if left <= 0:
            return None
        left -= 1
        outcome = run(smaller)
        return outcome if outcome.violations else None

    for actor in ACTORS[1:]:
        outcome = still_fails(replace(plan, without=plan.without | {actor}))
        if outcome is not None:
            plan, found = replace(plan, without=plan.without | {actor}), outcome
    places = [fault.place for fault in found.faults]
    size = len(places)
    while size >= 1 and places and left > 0:
        for start in range(0, len(places), size):
            kept = [*places[:start], *places[start + size :]]
            outcome = still_fails(replace(plan, faults=frozenset(kept)))
            if outcome is not None:
                places = [fault.place for fault in outcome.faults]
                plan, found = replace(plan, faults=frozenset(places)), outcome
                break
        else:
            size //= 2
    return plan, found
