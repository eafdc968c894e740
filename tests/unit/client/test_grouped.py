"""Admissions that arrive together share commits; who is refused, refuses nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from outlast.client import grouped
from outlast.client.grouped import AT_ONCE, MOST, Group
from outlast.domain.errors import Locked, OutcomeUnknown, StillAdmitting, StoreUnavailable
from outlast.domain.work import Admission, Admitted
from outlast.store.drive import BadData
from outlast.store.program import Operation


def job(number: int, *, key: str | None = "k", size: int = 2) -> Admission:
    return Admission(
        tenant="acme", owner="ann", key=key, fingerprint="f", job_id=f"job-{number}", kind="note", schema_version=1, label="a note",
        input="x" * size, caller="{}", tasks=(), not_before_ms=None, rerun_of=None, effect_root="r", correlation_id="c", traceparent=None,
    )  # fmt: skip


class Store:
    """Commits when it is let; remembers the batches."""

    def __init__(self, refuse: Callable[[list[str]], Exception | None] = lambda _ids: None) -> None:
        self.batches: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self._refuse = refuse

    async def run(self, operation: Operation[Any]) -> Any:
        program = operation.start()
        ids: list[str] = list(next(program).params["ids"])
        program.close()
        self.batches.append(ids)
        await self.go.wait()
        await asyncio.sleep(0)
        error = self._refuse(ids)
        if error is not None:
            raise error
        return [Admitted(one, replayed=False) for one in ids]


def group(store: Store) -> Group:
    return Group(lambda: store)  # type: ignore[arg-type, return-value]  # only `run` is asked for


async def admit(one: Group, *jobs: Admission) -> list[Any]:
    return await asyncio.gather(*(one.admit(j) for j in jobs), return_exceptions=True)


async def test_one_alone_waits_for_nobody() -> None:
    store = Store()
    assert await group(store).admit(job(1)) == Admitted("job-1", replayed=False)
    assert store.batches == [["job-1"]]


async def test_what_gathers_while_commits_are_under_way_goes_with_the_next_one() -> None:
    store = Store()
    outcomes = await admit(group(store), *(job(n) for n in range(50)))
    assert [o.job_id for o in outcomes] == [f"job-{n}" for n in range(50)], "each its own"
    assert sum(map(len, store.batches)) == 50
    assert len(store.batches) <= AT_ONCE + 1


async def test_a_batch_has_bounds() -> None:
    store = Store()
    await admit(group(store), *(job(n) for n in range(2 * MOST)))
    assert max(map(len, store.batches)) <= MOST
    store = Store()
    await admit(group(store), *(job(n, size=grouped.MOST_BYTES // 3) for n in range(20)))
    assert max(map(len, store.batches)) <= 4


async def test_a_row_that_the_store_refuses_fails_alone() -> None:
    store = Store(lambda ids: BadData("The store refused one of the values.") if "job-7" in ids else None)
    outcomes = await admit(group(store), *(job(n) for n in range(20)))
    assert [type(o) for o in outcomes] == [BadData if n == 7 else Admitted for n in range(20)]


async def test_a_key_that_another_transaction_holds_is_its_own_refusal() -> None:
    store = Store(lambda ids: Locked("held") if "job-7" in ids else None)
    outcomes = await admit(group(store), *(job(n) for n in range(20)))
    assert [type(o) for o in outcomes] == [StillAdmitting if n == 7 else Admitted for n in range(20)]
    (alone,) = await admit(group(store), job(7, key=None))
    assert type(alone) is Locked


@pytest.mark.parametrize("error", [StoreUnavailable("away"), OutcomeUnknown("who knows"), RuntimeError("a defect")])
async def test_what_is_no_single_rows_fault_is_told_to_all_once(error: Exception) -> None:
    store = Store(lambda _ids: error)
    outcomes = await admit(group(store), *(job(n) for n in range(20)))
    assert {type(o) for o in outcomes} == {type(error)}
    assert len(store.batches) <= AT_ONCE + 1, "not tried again one by one"


async def test_who_goes_away_does_not_stop_the_others() -> None:
    store = Store()
    store.go.clear()
    one = group(store)
    waiting = [asyncio.create_task(one.admit(job(n))) for n in range(10)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[9].cancel()
    store.go.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(o) for o in outcomes] == [asyncio.CancelledError, *[Admitted] * 8, asyncio.CancelledError]


async def test_a_commit_that_hangs_does_not_hold_up_the_next() -> None:
    store = Store()
    store.go.clear()
    one = group(store)
    stuck = asyncio.create_task(one.admit(job(1)))
    await asyncio.sleep(0)
    free = Store()
    one._store = lambda: free  # type: ignore[assignment, return-value]
    assert await one.admit(replace(job(2), key=None)) == Admitted("job-2", replayed=False)
    store.go.set()
    await stuck
