"""Killed anywhere between the first business write and the commit's answer: both are there or neither, through every object."""

from __future__ import annotations

import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from joining.adapters import Adapter
from joining.conftest import Order, Shop
from joining.killed import submit_and_die
from outlast.worker.runtime import Worker
from worker.accounts import ANN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
MOST = 60


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServerContext]:
    """Processes that need not load the libraries each."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["joining.killed"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))  # the server of forks has no other way to them
        context.Process(target=str).start()
    yield context
    from multiprocessing import forkserver  # noqa: PLC0415

    forkserver._forkserver._stop()  # type: ignore[attr-defined]


async def test_killed_at_any_point(adapter: Adapter, shop: Shop, forks: ForkServerContext, start: Callable[..., Awaitable[Worker]]) -> None:
    committed = died = 0
    for place in range(MOST):
        ours, theirs = forks.Pipe(duplex=False)
        process = forks.Process(target=submit_and_die, args=(adapter.name, shop.url, place, theirs))
        process.start()
        theirs.close()
        process.join(30)
        said = []
        try:
            while ours.poll():
                said.append(ours.recv())
        except EOFError:
            pass
        ours.close()
        bought, jobs = shop.bought, shop.rows()["job"]
        assert (bought, jobs) in (([], 0), (["book"], 1)), place
        assert jobs == 1 or "committed" not in said
        if "alive" in said:
            assert process.exitcode == 0
            break
        assert process.exitcode == -9, said
        died += 1
        committed += jobs
        if jobs:
            break
    assert (died > 5, committed) == (True, 1)
    await start(shop.jobs)
    again = await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, key="k")
    assert again.replayed
    assert (await shop.jobs.wait(again.id, principal=ANN, timeout=15)).outcome == "succeeded"
    assert shop.found == [("book", True)]
