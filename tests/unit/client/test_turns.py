"""Who waits for the same quota waits outside the store; who does not, does not wait for them."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from outlast.client.calls import Application
from outlast.client.desk import Desk
from outlast.client.turns import Turns
from outlast.domain.defaults import Settings
from outlast.domain.errors import QuotaExceeded
from outlast.domain.registry import Registry
from outlast.domain.work import Admission, Admitted
from outlast.store.program import Operation

APP = Application(Registry(), Settings(), "")


def job(owner: str, *, kind: str = "note", quota: int | None = 2) -> Admission:
    return Admission(
        tenant="acme", owner=owner, key=None, fingerprint="f", job_id=f"of {owner}", kind=kind, schema_version=1, label="a note", input="1",
        caller="{}", tasks=(), not_before_ms=None, rerun_of=None, effect_root="r", correlation_id="c", traceparent=None, quota=quota,
    )  # fmt: skip


class Store:
    """Runs what it is given when it is let, and counts what runs at once."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.running: list[str] = []

    async def run(self, operation: Operation[Any]) -> Any:
        params = next(operation.start()).params
        owner: str = params["owner"] if "owner" in params else params["owners"][0]
        self.running.append(owner)
        await self.go.wait()
        self.running.remove(owner)
        if owner == "full":
            raise QuotaExceeded("There is no room.", kind="note")
        one = Admitted(f"of {owner}", replayed=False)
        return one if operation.name == "admit_alone" else [one]

    def announce(self, queues: tuple[str, ...]) -> None:
        pass


async def test_one_owners_submits_of_a_kind_take_turns_and_hold_up_nobody_else() -> None:
    store = Store()
    given: Any = store
    desk = Desk(APP, lambda: given)
    wanted = [*[job("ann")] * 5, job("bob"), job("ann", kind="other"), job("cat", quota=None)]
    asked = [asyncio.create_task(desk.submit(one)) for one in wanted]
    await asyncio.sleep(0.01)
    assert sorted(store.running) == ["ann", "ann", "bob", "cat"]
    store.go.set()
    assert [handle.id for handle in await asyncio.gather(*asked)] == [one.job_id for one in wanted]


async def test_a_refusal_and_a_caller_that_goes_away_let_the_next_one_in() -> None:
    store = Store()
    given: Any = store
    desk = Desk(APP, lambda: given)
    asked = [asyncio.create_task(desk.submit(job("full"))) for _ in range(3)]
    await asyncio.sleep(0.01)
    asked[0].cancel()
    asked[1].cancel()
    await asyncio.sleep(0.01)
    store.go.set()
    ends = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError, asyncio.CancelledError, QuotaExceeded]


async def test_what_nobody_waits_for_is_forgotten() -> None:
    turns = Turns()
    lock = turns.of("a")
    assert turns.of("a") is lock
    assert turns.of("b") is not lock
    del lock
    gc.collect()
    (locks,) = turns._loops.values()
    assert list(locks) == []


def test_each_loop_has_turns_of_its_own() -> None:
    turns = Turns()

    async def take() -> asyncio.Lock:
        lock = turns.of("a")
        async with lock:
            return lock

    assert asyncio.run(take()) is not asyncio.run(take())
