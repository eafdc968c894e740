"""The simulator finds what it is for: each of these changes of the engine is found out by its seeds."""

from __future__ import annotations

import pytest

from simulate.mutants import MUTANTS
from simulate.runs import bench
from simulate.world import Mutant

MOST = 300
"""Seeds that are tried where those that are known no longer find it: whoever changes the simulation learns the new ones here."""

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_found(mutant: Mutant) -> None:
    with bench(mutant) as one:
        for seed in (mutant.found_by, *range(MOST)):
            found = one.run(seed).violations
            if found:
                print(f"{mutant.name}: seed {seed}: {found[0]}")
                return
    pytest.fail(f"{MOST} seeds did not find it")
