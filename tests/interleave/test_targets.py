"""Attach, park, takeover and the owner's own attach, with each other and with what may come between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interleave import acts
from interleave.explorer import Act
from interleave.pairs import Pair
from interleave.scenes import JOB, OWNER, OWNERS, RETENTION_MS, TENANT, ref
from outlast.domain.work import Finished
from outlast.store.program import Access, Program, operation
from outlast.store.programs import targets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


class RolledBack(Exception):
    """The host's transaction is rolled back, for the guard did not hold."""


@operation(Access.TRANSACTION)
def _attach(no: int) -> Program[int]:
    result = Finished(ref(no), f"w{no}", f'"output of {no}"')
    opened = yield from targets.attach_last(result, expected="1", version="2", retention_ms=RETENTION_MS)
    if opened is None:
        raise RolledBack
    return opened


@operation(Access.TRANSACTION)
def _apply(no: int) -> Program[int]:
    version = yield from targets.apply_last(TENANT, OWNER, JOB, no, version="7")
    if version is None:
        raise RolledBack
    return version


def attach(no: int) -> Act:
    return Act(f"attach {no}", lambda: _attach(no))


def park(no: int) -> Act:
    return Act(f"park {no}", lambda: targets.park(Finished(ref(no), f"w{no}", f'"output of {no}"'), RETENTION_MS))


def takeover(version: int | None = None) -> Act:
    named = "" if version is None else f" of version {version}"
    return Act(f"takeover{named}", lambda: targets.takeover(OWNERS, JOB, version=version), client=True)


def apply(no: int) -> Act:
    return Act(f"apply {no}", lambda: _apply(no), client=True)


OURS = (attach(0), park(0), takeover(), apply(2))
OTHERS = (
    attach(1),
    park(1),
    takeover(2),
    acts.finish(0),
    acts.finish(1),
    acts.renew(0),
    acts.step(0),
    acts.hand_back(0),
    acts.give_up(0),
    acts.retry_lost(0),
    acts.cancel(),
)
PAIRS = (
    *(Pair("target", one, other) for n, one in enumerate(OURS) for other in OURS[n:]),
    *(Pair("target", one, other) for one in OURS for other in OTHERS),
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_order(pair: Pair, run_pair: Callable[[Pair], object]) -> None:
    run_pair(pair)
