"""One attempt, from claim to outcome: input decoded, handler run, what it returned or raised made into a value for the committer."""

from __future__ import annotations

import asyncio
import inspect
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from outlast.domain.defaults import MAX_DETAIL, MAX_MESSAGE, PAUSE_MAX
from outlast.domain.errors import OutlastError
from outlast.domain.failures import Ask, Failure, Permanent, Refused, Retry, Snooze, Stopped, StopReason, gravest, is_one_of
from outlast.domain.kinds import AnyTask, Kind, Permission
from outlast.domain.model import Principal
from outlast.domain.payload import clean
from outlast.domain.registry import Registry
from outlast.domain.requests import owner_of
from outlast.domain.retry import parse_retry_after
from outlast.domain.values import MISSING, decode, encode
from outlast.domain.work import Asked, Failed, Finished, Settled
from outlast.observe.correlation import correlation_id, worker_id
from outlast.store.protocol import Store
from outlast.store.sessions.transaction import Sessions
from outlast.worker import committing
from outlast.worker.attempt_state import AttemptState
from outlast.worker.completion import Attaching, Completion, Saving, Within
from outlast.worker.context import Context, SyncContext
from outlast.worker.effects import EffectUnknown
from outlast.worker.hold import Hold
from outlast.worker.permission import NOT_PERMITTED, UNKNOWN, permitted
from outlast.worker.recall import Question, actions_of
from outlast.worker.threads import Threads


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler wants to run again later."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The handler ended because it had no authority any more."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction of the host's has stored the result with its own rows; there is nothing left to commit."""

    settled: Settled


Outcome: TypeAlias = Finished | Failed | Asked | Snoozed | Ended | Committed

_SAFE_WORDS = "The task failed."
_DOUBT_WORDS = "It is not known whether a call to the outside took place. The next attempt finds out."


class Runner:
    """Runs attempts of the registered tasks for one worker."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        threads: Threads,
        *,
        worker: str,
        max_output: int,
        sessions: Sessions,
        retention_ms: int,
    ) -> None:
        self._registry = registry
        self._store = store
        self._threads = threads
        self._worker = worker
        self._max_output = max_output
        self._sessions = sessions
        self._retention_ms = retention_ms

    async def run(self, hold: Hold) -> Outcome:
        """Runs one attempt to its outcome; never raises, but for a cancellation from outside that finds the claim still ours."""
        correlation_id.set(hold.claimed.correlation_id)
        worker_id.set(self._worker)
        try:
            kind, version, task = self._registry.resolve(hold.claimed.handler)
        except BaseException as error:
            return self._unreadable(hold, error)
        try:
            arguments = await self._read(hold, kind, version, task)
        except asyncio.CancelledError as error:
            return self._judged(hold, error, ())
        if isinstance(arguments, BaseException):
            return self._unreadable(hold, arguments)
        owner = owner_of(hold.claimed.ref.tenant, hold.claimed.owner, hold.claimed.caller)
        if kind.permission is not None and (refused := await self._refused(kind.permission, hold, owner)) is not None:
            return refused
        state = AttemptState(
            hold, task, owner, self._store, self._threads, self._max_output, self._sessions, self._worker, self._retention_ms
        )
        try:
            returned = await self._call(state, task, arguments)
            saving = _saving(returned)
            if saving is not None and returned is state.made and state.settled is None:
                if isinstance(saving, Attaching):
                    ended = await committing.attach(state, kind.target, saving.value)
                    return ended if isinstance(ended, Finished) else Committed(ended)
                return Committed(await committing.commit(state, saving.save, saving.args, saving.kwargs))
        except BaseException as error:
            return self._judged(hold, error, state.doubts) if state.settled is None else Committed(state.settled)
        return self._result(state, returned) if state.settled is None else Committed(state.settled)

    def _unreadable(self, hold: Hold, error: BaseException) -> Failed:
        return self._failed(hold, "payload_incompatible", "This release cannot read what was asked for.", error, permanent=True)

    async def _read(self, hold: Hold, kind: Kind[Any], version: int, task: AnyTask[Any]) -> tuple[Any, ...] | BaseException:
        """What the handler is called with, or what kept it from being read: the host's own code, upgrades and checks of its types.

        Upgrades run in a thread, so that one that takes long holds up no other attempt.
        """

        def read() -> tuple[Any, ...] | BaseException:
            try:
                _, value = kind.read(hold.claimed.input, version)
                return (value,) if task.item_type is MISSING else (value, decode(hold.claimed.item or "null", task.item_type))
            except BaseException as error:  # as a value: a cancellation that it raises is none of the attempt
                return error

        return read() if version == kind.version else await self._threads.run(read, hold.threads)

    async def _refused(self, permission: Permission, hold: Hold, owner: Principal) -> Outcome | None:
        """How the attempt ends if the owner may not have it done any more, or if nobody can tell; None: it may run."""
        try:
            allowed = await permitted(permission, hold, owner, self._store, self._threads)
        except asyncio.CancelledError as error:
            return self._judged(hold, error, ())
        except BaseException as error:  # whatever the host's function raises, nothing runs without its word
            return self._failed(hold, "permission_unknown", UNKNOWN, error)
        return None if allowed else self._failed(hold, "not_permitted", NOT_PERMITTED, None, permanent=True)

    async def _call(self, state: AttemptState, task: AnyTask[Any], arguments: tuple[Any, ...]) -> object:
        if inspect.iscoroutinefunction(task.handler):
            try:
                return await task.handler(Context(state), *arguments)
            finally:
                if isinstance(state.open, committing.Transaction):
                    await state.open.abandon()
        context = SyncContext(state)

        def call() -> tuple[object, BaseException | None]:
            try:
                return task.handler(context, *arguments), None
            except BaseException as error:
                return None, error
            finally:
                if isinstance(state.open, committing.SyncTransaction):
                    state.open.abandon()

        value, error = await self._threads.run(call, state.hold.threads)
        if error is not None:
            raise error
        return value

    def _result(self, state: AttemptState, returned: object) -> Outcome:
        hold, task = state.hold, state.task
        if state.made is not None and returned is not state.made:
            words = "The task made a completion and did not return it."
            return self._failed(hold, "completion_dropped", words, None, permanent=True)
        if isinstance(returned, Completion) and isinstance(cast("Completion[object]", returned).save, Within):
            words = "The transaction that this completion belongs to was not committed; nothing of it remains. Let its error through."
            return self._failed(hold, "completion_dropped", words, None, permanent=True)
        value = cast("Completion[object]", returned).value if isinstance(returned, Completion) else returned
        try:
            body = encode(
                value,
                limit=self._max_output,
                what="result",
                plain=task.returns is MISSING,
                hint=task.returns,
                code="result_invalid",
            )
            decode(body, task.returns, what="result")  # what a child would fail to read is refused here
        except BaseException as error:  # reading the value runs the handler's own code too
            return self._failed(hold, "result_invalid", "The task's result cannot be stored.", error, permanent=True)
        return Finished(hold.claimed.ref, self._worker, body, state.resource)

    def _judged(self, hold: Hold, error: BaseException, doubts: Sequence[BaseException]) -> Outcome:
        try:
            return self._classified(hold, gravest(error, doubts), doubts, error)
        except BaseException:  # a failure that never called its parent's constructor, say, has no code
            return self._failed(hold, "error", _SAFE_WORDS, error, permanent=isinstance(error, Permanent | Refused))

    def _classified(self, hold: Hold, error: BaseException, doubts: Sequence[BaseException], whole: BaseException) -> Outcome:
        """whole: what was raised, for operators; a group, perhaps, of which `error` is the gravest."""
        lost = hold.lost()
        if isinstance(error, Stopped) and lost is not None:
            return Ended(error.reason)
        if isinstance(error, asyncio.CancelledError) and (hold.cut or lost is not None):
            return Ended(lost or "replaced")
        if is_one_of(error, doubts):  # whatever it is: a call that raises Permanent may have happened too
            return self._failed(hold, "outcome_unknown", _DOUBT_WORDS, whole)
        if isinstance(error, Snooze):
            return Snoozed(round(error.after * 1000))
        if isinstance(error, Ask):
            return self._asked(hold, error)
        if isinstance(error, Permanent | Refused):
            return self._failed(hold, error.code, error.message, whole, permanent=True)
        if isinstance(error, Retry):
            after = None if error.after is None else parse_retry_after(error.after, now_ms=round(time.time() * 1000))
            rest = after is not None and error.pause_key
            return self._failed(hold, error.code, error.message, whole, retry_after_ms=after, pause_key=rest)
        if isinstance(error, Failure):
            return self._failed(hold, error.code, error.message, whole)
        if isinstance(error, OutlastError):
            words = _SAFE_WORDS if error.retryable else error.message
            return self._failed(hold, error.code, words, whole, permanent=not error.retryable)
        return self._failed(hold, "error", _SAFE_WORDS, whole)

    def _asked(self, hold: Hold, error: Ask) -> Asked:
        return Asked(
            hold.claimed.ref,
            self._worker,
            error.code,
            clean(error.message, limit=MAX_MESSAGE),
            actions_of(error),
            effect=error.effect if isinstance(error, EffectUnknown) else None,
            input_schema=error.input_schema if isinstance(error, Question | EffectUnknown) else None,
        )

    def _failed(
        self,
        hold: Hold,
        code: str,
        message: str,
        error: BaseException | None,
        *,
        permanent: bool = False,
        retry_after_ms: int | None = None,
        pause_key: bool = False,
    ) -> Failed:
        return Failed(
            hold.claimed.ref,
            self._worker,
            code,
            clean(message, limit=MAX_MESSAGE),
            None if error is None else _detail(error),
            permanent,
            retry_after_ms,
            min(retry_after_ms or 0, round(PAUSE_MAX * 1000)) if pause_key else None,
        )


def _saving(returned: object) -> Saving | Attaching | None:
    """What is left to be committed with the host's own rows."""
    save = cast("Completion[object]", returned).save if isinstance(returned, Completion) else None
    return None if isinstance(save, Within) else save


def _detail(error: BaseException) -> str:
    """The exception for operators: class, text and place, whatever its own methods do."""
    try:
        text = "".join(traceback.format_exception(error, limit=20, chain=True))
    except BaseException:
        try:
            text = f"{type(error).__module__}.{type(error).__qualname__} (its text cannot be shown)"
        except BaseException:
            text = "an exception that cannot be shown"
    kept = text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL // 2] + "\n[...]\n" + text[-MAX_DETAIL // 2 :]
    return clean(kept, limit=MAX_DETAIL + 10)
