"""Admissions that arrive together share one commit: what gathers while a commit is under way goes with the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

from outlast.client.submitting import still_admitting
from outlast.domain.errors import Invalid, Locked
from outlast.domain.work import Admission, Admitted, KeyTaken
from outlast.store.programs import admission
from outlast.store.protocol import Store

if TYPE_CHECKING:
    import asyncio  # at run time by those functions that need it: `import outlast` stays quick in processes that run no loop

MOST: Final = 200
"""Jobs in one commit."""
MOST_BYTES: Final = 4 * 2**20
AT_ONCE: Final = 2
"""Commits under way at a time: one that waits for a lock does not hold up the others."""

Outcome: TypeAlias = Admitted | KeyTaken
_Waiting: TypeAlias = "tuple[Admission, asyncio.Future[Outcome]]"


class Group:
    """The admissions of one event loop."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._waiting: deque[_Waiting] = deque()
        self._committing: set[asyncio.Task[None]] = set()

    async def admit(self, prepared: Admission) -> Outcome:
        """The outcome, after its commit. A caller that goes away meanwhile leaves its admission under way."""
        from asyncio import get_running_loop  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        loop = get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((prepared, future))
        if len(self._committing) < AT_ONCE:
            task = loop.create_task(self._commit(), name="outlast-admissions")
            self._committing.add(task)
            task.add_done_callback(self._ended)
        return await future

    def _ended(self, task: asyncio.Task[None]) -> None:
        """At a cancelled end, as of a loop that is being closed, nobody is left waiting."""
        self._committing.discard(task)
        if not self._committing and task.cancelled():
            while self._waiting:
                self._waiting.popleft()[1].cancel()

    async def _commit(self) -> None:
        from asyncio import gather  # noqa: PLC0415 - as above

        while batch := self._next():
            try:
                outcomes = await self._store().run(admission.admit([prepared for prepared, _ in batch]))
            except (Invalid, Locked) as error:
                if len(batch) == 1:
                    _fail(batch, error)
                else:
                    await gather(*(self._alone(one) for one in batch))
            except BaseException as error:
                _fail(batch, error)
                if not isinstance(error, Exception):
                    raise
            else:
                for (_, future), outcome in zip(batch, outcomes, strict=True):
                    if not future.done():
                        future.set_result(outcome)

    async def _alone(self, one: _Waiting) -> None:
        """One of a batch that was refused whole: the fault is another's, or its own."""
        prepared, future = one
        try:
            (outcome,) = await self._store().run(admission.admit([prepared]))
        except Exception as error:  # noqa: BLE001 - handed to who waits for it
            _fail([one], error)
        else:
            if not future.done():
                future.set_result(outcome)

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < MOST and size < MOST_BYTES:
            prepared, future = self._waiting.popleft()
            size += len(prepared.input)
            batch.append((prepared, future))
        return batch


def _fail(batch: list[_Waiting], error: BaseException) -> None:
    for prepared, future in batch:
        if future.done():
            continue
        if not isinstance(error, Exception):
            future.cancel()
        elif isinstance(error, Locked):
            future.set_exception(still_admitting(error, [prepared]))
        else:
            future.set_exception(error)


class Groups:
    """A group for each event loop of the process."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, Group] = WeakKeyDictionary()

    async def admit(self, prepared: Admission) -> Outcome:
        """See `Group.admit`."""
        from asyncio import get_running_loop  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        loop = get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = Group(self._store)
        return await group.admit(prepared)
