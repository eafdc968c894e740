"""Commits what ended: one guarded batch for results, the rest one by one; capacity is free again after the store has answered."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from outlast.domain.errors import OutlastError
from outlast.domain.retry import GiveUp, RetryIn
from outlast.domain.work import Asked, Failed, Finished, Settled, Verdict
from outlast.observe.events import AttemptEnded, StaleWriteRefused, StoreTrouble
from outlast.observe.hub import emit
from outlast.store.drive import BadData
from outlast.store.programs import claims, completion, control
from outlast.store.protocol import Store
from outlast.worker.attempt import Committed, Ended, Outcome, Snoozed
from outlast.worker.hold import Hold

BATCH = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Windows:
    """What the store's programs need of the settings, in milliseconds."""

    attention_ms: int
    retention_ms: int


@dataclass(frozen=True, slots=True)
class Ending:
    """An attempt that ended and waits to be committed."""

    hold: Hold
    outcome: Outcome


class Committer:
    """Gathers endings and settles them. `settled(hold, opened, due_in)` is called after the store's answer, for each."""

    def __init__(self, store: Store, windows: Windows, *, worker: str, settled: Callable[[Hold, int, float | None], None]) -> None:
        self._store = store
        self._windows = windows
        self._settled = settled
        self._worker = worker
        self._endings: list[Ending] = []
        self._wake = asyncio.Event()
        self._busy = False

    def put(self, hold: Hold, outcome: Outcome) -> None:
        """Takes an ending; it is committed with whatever else gathered meanwhile."""
        if not isinstance(outcome, Ended):
            hold.settling = True
        self._endings.append(Ending(hold, outcome))
        self._wake.set()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be committed."""
        return not self._endings and not self._busy

    async def loop(self) -> None:
        """Commits as long as it is not cancelled."""
        while True:
            await self._wake.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Settles what has gathered."""
        batch, self._endings = self._endings[:BATCH], self._endings[BATCH:]
        if not self._endings:
            self._wake.clear()
        if not batch:
            return
        self._busy = True
        try:
            finished = [(e, e.outcome) for e in batch if isinstance(e.outcome, Finished)]
            if finished:
                await self._finish([e for e, _ in finished], [r for _, r in finished])
            for ending in batch:
                if not isinstance(ending.outcome, Finished):
                    await self._one(ending)
        finally:
            self._busy = False

    async def _finish(self, endings: list[Ending], results: list[Finished]) -> None:
        finish = completion.finish(results, self._windows.retention_ms)
        try:
            verdicts = await self._patiently(endings, lambda: self._store.run(finish))
        except BadData:
            await self._apart(endings, results)
            return
        for ending, settled in zip(endings, verdicts or [Settled(Verdict.STALE)] * len(endings), strict=True):
            self._report(ending, settled, "completed")

    async def _apart(self, endings: list[Ending], results: list[Finished]) -> None:
        """One bad result fails alone."""
        if len(endings) > 1:
            for ending, result in zip(endings, results, strict=True):
                await self._finish([ending], [result])
            return
        (bad,) = results
        failure = Failed(bad.ref, bad.worker, "result_invalid", "The task's result cannot be stored.", permanent=True)
        await self._one(Ending(endings[0].hold, failure))

    async def _one(self, ending: Ending) -> None:
        settled: Settled | None
        name: str
        try:
            settled, name = await self._settle(ending)
        except BadData:
            # No value of a handler may stop the worker: what cannot be stored fails for good, without it.
            plain = Failed(
                ending.hold.claimed.ref, self._worker, "result_invalid", "What the task asked for cannot be stored.", permanent=True
            )
            settled, name = await self._settle(Ending(ending.hold, plain))
        self._report(ending, settled or Settled(Verdict.STALE), name)

    async def _settle(self, ending: Ending) -> tuple[Settled | None, str]:
        ref = ending.hold.claimed.ref
        match ending.outcome:
            case Snoozed(delay_ms):
                return await self._patiently([ending], lambda: self._store.run(claims.snooze(ref, delay_ms))), "snoozed"
            case Asked() as question:
                window = self._windows
                asked = completion.ask(question, window_ms=window.attention_ms, retention_ms=window.retention_ms)
                return await self._patiently([ending], lambda: self._store.run(asked)), "asked"
            case Failed() as failure:
                settled = await self._patiently([ending], lambda: self._fail(failure))
                return settled, "gave_up" if settled and settled.gave_up else "retrying"
            case Ended(reason):
                if reason == "cancelled":
                    return await self._patiently([ending], lambda: self._store.run(control.stop(ref))), "stopped"
                return Settled(Verdict.STALE), reason
            case Committed(settled):
                return settled, "completed"
            case Finished():
                raise AssertionError("results are committed in batches")

    async def _fail(self, failure: Failed) -> Settled:
        decided = await self._store.run(completion.budget(failure, random.random()))
        if isinstance(decided, RetryIn):
            return await self._store.run(completion.retry(failure, decided.delay_ms))
        if isinstance(decided, GiveUp):
            window = self._windows
            return await self._store.run(completion.give_up(failure, window_ms=window.attention_ms, retention_ms=window.retention_ms))
        return Settled(decided)

    async def _patiently(self, endings: list[Ending], run: Callable[[], Awaitable[T]]) -> T | None:
        """The store's answer, however long it is away; None when meanwhile all these claims lost their authority."""
        pause = 0.1
        while True:
            try:
                return await run()
            except BadData:
                raise
            except OutlastError as error:
                if all(e.hold.lost() in ("replaced", "deadline") for e in endings):
                    return None
                emit(StoreTrouble("committer", error.code, pause, error.message))
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, 2.0)

    def _report(self, ending: Ending, settled: Settled, name: str) -> None:
        hold = ending.hold
        claimed, task = hold.claimed, hold.claimed.handler
        code = ending.outcome.code if isinstance(ending.outcome, Failed | Asked) else None
        if settled.verdict is Verdict.ACCEPTED:
            seconds = time.monotonic() - hold.started
            emit(
                AttemptEnded(
                    claimed.ref.job_id,
                    claimed.ref.no,
                    task,
                    claimed.ref.fence,
                    hold.attempt,
                    name,
                    code,
                    seconds,
                    claimed.correlation_id,
                )
            )
        elif not isinstance(ending.outcome, Ended):
            emit(
                StaleWriteRefused(
                    claimed.ref.job_id, claimed.ref.no, task, claimed.ref.fence, settled.verdict.value, claimed.correlation_id
                )
            )
            if settled.verdict is Verdict.CANCELLED:
                hold.lose("cancelled")
                self.put(hold, Ended("cancelled"))
                return
        due_in = None if settled.retry_in_ms is None else settled.retry_in_ms / 1000
        self._settled(hold, settled.opened, due_in)
