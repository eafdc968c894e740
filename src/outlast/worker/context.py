"""What a handler gets: `Context` for `async def`, `SyncContext` for `def`. The same methods; those of SyncContext block."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast, overload

from outlast.domain.effects import Confirmed
from outlast.domain.kinds import AnyTask, Storable
from outlast.domain.model import Principal
from outlast.store.sessions.inside import refuse
from outlast.worker import committing
from outlast.worker.attempt_state import AttemptState
from outlast.worker.committing import SyncTransaction, Transaction
from outlast.worker.completion import Attaching, Completion, Saving, Within
from outlast.worker.effects import Wanted, effect
from outlast.worker.recall import Recall, adrive_recall, ask, drive_recall, output, outputs, recall_step, store_made

P = ParamSpec("P")
T = TypeVar("T", bound=Storable)
V = TypeVar("V", bound=Storable)
D = TypeVar("D")

_MISSING: Any = object()


class _Context:
    """What both colours share; nothing of it does I/O."""

    def __init__(self, state: AttemptState) -> None:
        self._state = state
        claimed = state.hold.claimed
        self.job_id: str = claimed.ref.job_id
        self.label: str = claimed.label
        self.correlation_id: str = claimed.correlation_id
        self.attempt: int = state.hold.attempt
        self.fence: int = claimed.ref.fence
        self.owner: Principal = state.owner
        self.scheduled_for: datetime | None = state.scheduled_for
        self.deadline: datetime = state.deadline

    def check(self) -> None:
        """A safe boundary: raises Stopped when the job was cancelled, the lease or the deadline is over, or the worker drains. No I/O."""
        self._state.hold.check()

    def progress(self, text: str) -> None:
        """Shown with the task; rides on the renewal, so calls cost no write. No I/O."""
        self._state.hold.report(text)

    def complete(self, value: T) -> Completion[T]:
        """As returning `value`, for `.at(ref)`."""
        completion = Completion(value, self._state)
        self._state.made = completion
        return completion

    def attach(self, value: T) -> Completion[T]:
        """The job's target and this completion commit together, if nobody changed or took over the target.

        Else the value is parked: the task completes, and the owner may apply it. In a job without a target it is the task's result, as if
        it were returned.
        """
        completion = Completion(value, self._state, Attaching(value))
        self._state.made = completion
        return completion

    def _complete_as(self, value: Any) -> Completion[Any]:  # noqa: ANN401 - of whatever type the handler completes with
        completion: Completion[Any] = Completion(value, self._state, Within())
        self._state.made = completion
        return completion

    def _deferred(self, save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Completion[Any]:
        completion: Completion[Any] = Completion(None, self._state, Saving(save, args, kwargs))
        self._state.made = completion
        return completion


class Context(_Context):
    """Of an `async def`. Functions given to it are `async def`, or also `def`, which run in the worker's threads."""

    @overload
    async def step(self, name: str, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def step(self, name: str, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """What `fn` returned, stored once under `name` in this task and reused by a replacement.

        `fn` may run again if the attempt ended before it was stored.
        """
        refuse(self._state.store, "ctx.step")
        found, value = await self._recall(recall_step(self._state, name, fn))
        if found:
            return value
        if inspect.iscoroutinefunction(fn):
            made = await fn(*args, **kwargs)
        else:
            made = await self._state.threads.run(lambda: fn(*args, **kwargs), self._state.hold.threads)
            if inspect.isawaitable(made):
                made = await made
        return await self._recall(store_made(self._state, name, fn, made))

    @overload
    async def commit_step(
        self, name: str, save: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def commit_step(self, name: str, save: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def commit_step(self, name: str, save: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As step, but `save(db, ...)` and the step's record commit together or not at all: its business rows are written once.

        db as for `commit`. `save` may run several times, each time in a transaction of its own.
        """
        refuse(self._state.store, "ctx.commit_step")
        found, value = await self._recall(recall_step(self._state, name, save))
        if found:
            return value
        return await committing.commit_step(self._state, name, save, committing.bound(save, args, kwargs))

    @overload
    def commit(
        self, save: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Completion[T]: ...
    @overload
    def commit(self, save: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Completion[T]: ...
    def commit(self, save: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Completion[Any]:
        """`save(db, ...)` and this completion commit together or not at all, after the handler has returned it.

        db: from `session=` (async def) or `sync_session=` (def, in a thread), else a connection of the driver's. What `save` returns is
        the result. It runs in one READ COMMITTED transaction whose last statement is the guarded finish, and may run several times.
        """
        return self._deferred(save, args, kwargs)

    def transaction(self) -> AbstractAsyncContextManager[Transaction, None]:
        """For business writes inside the handler. Leaving the block without `await tx.complete(value)` rolls back: CompletionMissing."""
        return Transaction(self._state, self._complete_as)

    @overload
    async def effect(
        self,
        name: str,
        call: Callable[[str], Awaitable[T]],
        *,
        reconcile: Callable[[str], Awaitable[Confirmed[T]]] | None = None,
        input: Storable = None,
        timeout: float = 30,
    ) -> T: ...
    @overload
    async def effect(
        self, name: str, call: Callable[[str], Awaitable[T]], *, idempotent: Literal[True], input: Storable = None, timeout: float = 30
    ) -> T: ...
    async def effect(
        self,
        name: str,
        call: Callable[[str], Awaitable[Any]],
        *,
        reconcile: Callable[[str], Awaitable[Confirmed[Any]]] | None = None,
        idempotent: bool = False,
        input: Storable = None,
        timeout: float = 30,
    ) -> Any:
        """The confirmed outcome of `call(key)`; the key stays the same for this task, name and input, over attempts, replays and reruns.

        Intent is committed before the call, its outcome after. If that is unknown `reconcile(key)` decides, or the call is repeated
        (idempotent), or the owner is asked; not before `timeout` is over. Raises Refused or Retry when `call` does.
        """
        refuse(self._state.store, "ctx.effect")
        wanted = Wanted(name, call, reconcile, idempotent=idempotent, logical=input, timeout=timeout, blocking=False)
        return (await self._recall(effect(self._state, wanted))).get()

    @overload
    async def output(self, task: AnyTask[D], *, label: str | None = None) -> D: ...
    @overload
    async def output(self, task: AnyTask[D], *, label: str | None = None, default: V) -> D | V: ...
    async def output(self, task: AnyTask[Any], *, label: str | None = None, default: Any = _MISSING) -> Any:
        """A parent's output; `default` if it is optional and failed. NotAParent, permanent: no parent, or several and no label."""
        return await self._recall(output(self._state, task, label, () if default is _MISSING else (default,)))

    async def outputs(self, task: AnyTask[D]) -> dict[str, D]:
        """By label, in plan order, of the completed parents made of `task`."""
        return cast("dict[str, D]", await self._recall(outputs(self._state, task)))

    async def ask(self, code: str, message: str, *, answer: type[T], actions: Sequence[Literal["retry", "skip"]] = ()) -> T:
        """The owner's answer to this task's question `code`.

        Without one yet it ends the attempt as Ask does, with `answer` among the actions. Invalid, permanent, for a type that JSON cannot be
        read as. An answer that the type refuses though its schema does not (a check of its own) is asked for again, with the reason.
        """
        return cast("T", await self._recall(ask(self._state, code, message, answer, actions)))

    async def _recall(self, recall: Recall[D]) -> D:
        self.check()
        return await adrive_recall(recall, self._state.store)


class SyncContext(_Context):
    """Of a `def`, which runs in a thread: the same methods, blocking; functions given to it are `def`."""

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn` returned, stored once under `name` in this task and reused by a replacement.

        `fn` may run again if the attempt ended before it was stored.
        """
        refuse(self._state.store, "ctx.step")
        found, value = self._recall(recall_step(self._state, name, fn))
        if found:
            return cast("T", value)
        return cast("T", self._recall(store_made(self._state, name, fn, fn(*args, **kwargs))))

    def commit_step(self, name: str, save: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As step, but `save(db, ...)` and the step's record commit together or not at all: its business rows are written once.

        db as for `commit`. `save` may run several times, each time in a transaction of its own.
        """
        refuse(self._state.store, "ctx.commit_step")
        found, value = self._recall(recall_step(self._state, name, save))
        if found:
            return cast("T", value)
        return cast("T", committing.commit_step_sync(self._state, name, save, committing.bound(save, args, kwargs)))

    def commit(self, save: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Completion[T]:
        """`save(db, ...)` and this completion commit together or not at all, after the handler has returned it.

        db: from `sync_session=`, else a connection of the driver's. What `save` returns is the result. It runs in one READ COMMITTED
        transaction whose last statement is the guarded finish, and may run several times.
        """
        return self._deferred(save, args, kwargs)

    def transaction(self) -> AbstractContextManager[SyncTransaction, None]:
        """For business writes inside the handler. Leaving the block without `tx.complete(value)` rolls back: CompletionMissing."""
        return SyncTransaction(self._state, self._complete_as)

    @overload
    def effect(
        self,
        name: str,
        call: Callable[[str], T],
        *,
        reconcile: Callable[[str], Confirmed[T]] | None = None,
        input: Storable = None,
        timeout: float = 30,
    ) -> T: ...
    @overload
    def effect(
        self, name: str, call: Callable[[str], T], *, idempotent: Literal[True], input: Storable = None, timeout: float = 30
    ) -> T: ...
    def effect(
        self,
        name: str,
        call: Callable[[str], Any],
        *,
        reconcile: Callable[[str], Confirmed[Any]] | None = None,
        idempotent: bool = False,
        input: Storable = None,
        timeout: float = 30,
    ) -> Any:
        """The confirmed outcome of `call(key)`; the key stays the same for this task, name and input, over attempts, replays and reruns.

        Intent is committed before the call, its outcome after. If that is unknown `reconcile(key)` decides, or the call is repeated
        (idempotent), or the owner is asked; not before `timeout` is over. Raises Refused or Retry when `call` does.
        """
        refuse(self._state.store, "ctx.effect")
        wanted = Wanted(name, call, reconcile, idempotent=idempotent, logical=input, timeout=timeout, blocking=True)
        return self._recall(effect(self._state, wanted)).get()

    @overload
    def output(self, task: AnyTask[D], *, label: str | None = None) -> D: ...
    @overload
    def output(self, task: AnyTask[D], *, label: str | None = None, default: V) -> D | V: ...
    def output(self, task: AnyTask[Any], *, label: str | None = None, default: Any = _MISSING) -> Any:
        """A parent's output; `default` if it is optional and failed. NotAParent, permanent: no parent, or several and no label."""
        return self._recall(output(self._state, task, label, () if default is _MISSING else (default,)))

    def outputs(self, task: AnyTask[D]) -> dict[str, D]:
        """By label, in plan order, of the completed parents made of `task`."""
        return cast("dict[str, D]", self._recall(outputs(self._state, task)))

    def ask(self, code: str, message: str, *, answer: type[T], actions: Sequence[Literal["retry", "skip"]] = ()) -> T:
        """The owner's answer to this task's question `code`.

        Without one yet it ends the attempt as Ask does, with `answer` among the actions. Invalid, permanent, for a type that JSON cannot be
        read as. An answer that the type refuses though its schema does not (a check of its own) is asked for again, with the reason.
        """
        return cast("T", self._recall(ask(self._state, code, message, answer, actions)))

    def _recall(self, recall: Recall[D]) -> D:
        self.check()
        return drive_recall(recall, self._state.store)
