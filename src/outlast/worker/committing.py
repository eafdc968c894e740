"""What `ctx.commit`, `ctx.commit_step` and `ctx.transaction` do: business rows and our own record in one transaction of the host's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from typing import Any, NoReturn, Self, TypeVar

from outlast.domain.errors import CompletionMissing, Invalid, OutcomeUnknown, TransactionMisused
from outlast.domain.failures import Permanent, Stopped, StopReason
from outlast.domain.kinds import Storable, Target
from outlast.domain.model import MAX_NAME
from outlast.domain.payload import check_text
from outlast.domain.values import MISSING, decode, decode_stored, encode, hints
from outlast.domain.work import Finished, Settled, Verdict
from outlast.observe.events import TargetMissing
from outlast.observe.hub import emit
from outlast.store.drive import Fault, adrive, drive, with_subprograms
from outlast.store.program import Rows, Statement
from outlast.store.programs import completion, steps, targets
from outlast.store.programs.targets import TargetMoved, TargetRow
from outlast.store.sessions.inside import Inside, enter
from outlast.store.sessions.opening import is_async
from outlast.store.sessions.sides import AsyncSide, SyncSide, elsewhere, ended, fault_of, misused
from outlast.store.sessions.transaction import Guarded, Judged, Landed, Work, held_back, transact, transact_sync
from outlast.store.sessions.transaction import opened as opened_session
from outlast.store.sessions.transaction import opened_sync as opened_session_sync
from outlast.worker.attempt_state import AttemptState
from outlast.worker.completion import Completion
from outlast.worker.recall import REASONS

T = TypeVar("T", bound=Storable)
Save = Callable[[Any], Any]


def bound(save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Save:
    """The function with its arguments behind the session."""
    if not callable(save):
        raise Invalid("commit takes a function (db, ...) and its arguments.")
    return lambda db: save(db, *args, **kwargs)


def result_of(state: AttemptState, value: object) -> Finished:
    """The value as the task's result; Invalid, with the code result_invalid, if it cannot be stored or read back."""
    task = state.task
    body = encode(value, limit=state.max_output, what="result", plain=task.returns is MISSING, hint=task.returns, code="result_invalid")
    try:
        decode(body, task.returns, what="result")
    except Invalid as error:
        raise Invalid(error.message, code="result_invalid", pointers=error.pointers) from error
    return Finished(state.hold.claimed.ref, state.worker, body, state.resource)


def authorised(state: AttemptState, save: Save) -> Save:
    """The same, but not begun for a claim that ended while the transaction waited for its turn."""

    def checked(db: Any) -> Any:  # noqa: ANN401 - a session of the host's, of whatever type
        state.hold.check()
        return save(db)

    return checked


def finishing(state: AttemptState, save: Save) -> Work[int]:
    """`save`, then the guarded finish with what it returned."""

    def last(made: object) -> Guarded[int]:
        state.hold.check()
        state.hold.settling = True
        return Guarded(partial(completion.finish_last, result_of(state, made), state.retention_ms))

    return Work(authorised(state, save), last, completion.verdict(state.hold.claimed.ref))


def settled(state: AttemptState, end: Landed[int] | Judged) -> Settled:
    """What the committer reports; Stopped when the claim is over."""
    if isinstance(end, Landed):
        return Settled(Verdict.ACCEPTED, opened=end.value)
    if end.verdict is Verdict.ACCEPTED:
        return Settled(Verdict.ACCEPTED)
    raise stopped(state, end.verdict)


def stopped(state: AttemptState, verdict: Verdict | None) -> Stopped:
    """The end of a claim that the store does not take anything from any more."""
    reason: StopReason = REASONS.get(verdict, "replaced") if verdict is not None else "replaced"
    state.hold.lose(reason)
    return Stopped(reason)


async def commit(state: AttemptState, save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Settled:
    """Commits what a handler of either colour handed back by `ctx.commit`."""
    work = finishing(state, bound(save, args, kwargs))
    state.hold.check()
    if is_async(save):
        return settled(state, await transact(work, state.store, state.sessions.session))
    run = partial(transact_sync, work, state.store, state.sessions.sync_session)
    return settled(state, await state.threads.run(run, state.hold.threads))


async def attach(state: AttemptState, target: Target[Any] | None, value: object) -> Settled | Finished:
    """Brings a value to the job's target, or parks it: the target was changed or taken over meanwhile.

    In a job without a target it is still to be finished, as a result that is returned: work that is done is never lost.
    """
    result = result_of(state, value)
    state.hold.check()
    ref = result.ref
    row: TargetRow = await state.store.run(targets.target_of(ref))
    if target is None or row.ref is None or row.version is None:
        emit(TargetMissing(state.task.name, ref.job_id, state.hold.claimed.correlation_id))
        return result
    if not row.taken_over:
        try:
            return settled(state, await _attached(state, target, row.ref, row.version, value=value, result=result))
        except TargetMoved:
            pass
    state.hold.settling = True
    parked = await state.store.run(targets.park(result, state.retention_ms))
    if parked.verdict is not Verdict.ACCEPTED:
        raise stopped(state, parked.verdict)
    return parked


async def _attached(
    state: AttemptState, target: Target[Any], ref: str, expected: str, *, value: object, result: Finished
) -> Landed[int] | Judged:
    def last(version: object) -> Guarded[int]:
        if version is None:
            raise TargetMoved
        if not isinstance(version, str):
            raise Permanent("target_invalid", "The target's function returned no version.")
        checked = check_text(version, what="version of the target", limit=MAX_NAME)
        state.hold.check()
        state.hold.settling = True
        return Guarded(partial(targets.attach_last, result, expected=expected, version=checked, retention_ms=state.retention_ms))

    work = Work(authorised(state, lambda db: target.fn(db, ref, expected, value)), last, completion.verdict(result.ref))
    if is_async(target.fn):
        return await transact(work, state.store, state.sessions.session)
    run = partial(transact_sync, work, state.store, state.sessions.sync_session)
    return await state.threads.run(run, state.hold.threads)


def stepping(state: AttemptState, name: str, save: Callable[..., Any], call: Save) -> tuple[Work[Any], list[object]]:
    """`save`, then the guarded insert of the step's record; and where the value is found as a replacement would read it."""
    made_as = hints(save).returns
    ref = state.hold.claimed.ref
    value: list[object] = []

    def last(made: object) -> Guarded[Any]:
        body = encode(made, limit=state.max_output, what="step's output", plain=made_as is MISSING, hint=made_as, code="result_invalid")
        value[:] = [decode(body, made_as, what="step's output")]
        state.hold.check()
        return Guarded(partial(steps.store_step_last, ref, name, body))

    return Work(authorised(state, call), last, steps.step_verdict(ref, name)), value


def step_value(state: AttemptState, end: Landed[Any] | Judged, value: list[object], save: Callable[..., Any]) -> object:
    """What the step made: now, or, where another transaction had stored it, before."""
    if isinstance(end, Landed):
        return value[0]
    if isinstance(end.verdict, str):
        return decode_stored(end.verdict, hints(save).returns, what="step's output")
    raise stopped(state, end.verdict)


async def commit_step(state: AttemptState, name: str, save: Callable[..., Any], call: Save) -> object:
    """A step whose business rows and record commit together."""
    work, value = stepping(state, name, save, call)
    if is_async(save):
        return step_value(state, await transact(work, state.store, state.sessions.session), value, save)
    run = partial(transact_sync, work, state.store, state.sessions.sync_session)
    return step_value(state, await state.threads.run(run, state.hold.threads), value, save)


def commit_step_sync(state: AttemptState, name: str, save: Callable[..., Any], call: Save) -> object:
    """The same in this thread."""
    work, value = stepping(state, name, save, call)
    return step_value(state, transact_sync(work, state.store, state.sessions.sync_session), value, save)


class Transaction:
    """What `async with ctx.transaction() as tx` gives: `tx.db`, the session, and `tx.complete`, without which nothing is committed."""

    def __init__(self, state: AttemptState, complete: Callable[[object], Any]) -> None:
        self._state = state
        self._complete = complete
        self._stack = AsyncExitStack()
        self._side: AsyncSide | None = None
        self._inside: Inside | None = None
        self._opened: int | None = None
        self.db: Any = None

    async def complete(self, value: T) -> Completion[T]:
        """The completion to return; its commit comes at the end of the block. Raises Stopped when the claim is over.

        Where the block is rolled back, or its commit fails, the completion is void: returned all the same, `completion_dropped`.
        """
        side, state = self._side, self._state
        if side is None or self._opened is not None:
            raise Invalid("tx.complete is called once, inside the block of ctx.transaction().")
        state.hold.check()
        await side.flush()
        if not await side.intact():
            raise ended()

        async def execute(statement: Statement) -> Rows:
            return await side.execute(state.store.texts[statement.name], statement.params)

        program = completion.finish_last(result_of(state, value), state.retention_ms)
        judge = completion.verdict(state.hold.claimed.ref)
        seen: Verdict | None = None
        try:
            opened = await adrive(with_subprograms(program, state.store.subprograms), execute)
            if opened is None:
                seen = await adrive(with_subprograms(judge.start(), state.store.subprograms), execute)
        except Exception as error:
            _explain(state, error)
        if opened is None:
            await side.rollback()
            raise _not_ours(state, await state.store.run(judge), seen)
        self._opened = opened
        completed: Completion[T] = self._complete(value)
        return completed

    async def __aenter__(self) -> Self:
        state = self._state
        state.hold.check()
        self._inside = enter(state.store, "ctx.transaction()")
        side: AsyncSide | None = None
        try:
            self.db, side = await opened_session(self._stack, state.store, state.sessions.session or state.store.lend)
            await _begun(state, side)
            state.hold.check()  # it may have waited for its turn
        except BaseException:
            self._inside.open = False
            if side is not None:
                await side.rollback()
            await self._stack.aclose()
            raise
        self._side, state.open = side, self
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        side = self._leave()
        try:
            if side is None:
                return
            if error is not None or self._opened is None:
                if await side.rollback(_cause(error)):
                    raise ended() from error
            else:
                await self._commit(side, self._opened)
        finally:
            _void(self._state)
            await self._stack.aclose()
        if error is None and self._opened is None:
            raise _missing()
        wrong = misused(error) if error is not None else None
        if wrong is not None:
            raise wrong from error

    async def abandon(self) -> None:
        """Ends a block that the handler has not left itself."""
        side = self._leave()
        with suppress(Exception):
            if side is not None:
                await side.rollback()
            await self._stack.aclose()

    def _leave(self) -> AsyncSide | None:
        side, self._side, self._state.open = self._side, None, None
        if self._inside is not None:
            self._inside.open = False
        return side

    async def _commit(self, side: AsyncSide, opened: int) -> None:
        state = self._state
        state.hold.settling = True
        failed: Exception = ended()
        try:
            if await side.intact():
                await side.commit()
                state.settled = Settled(Verdict.ACCEPTED, opened=opened)
                return
        except Exception as error:
            failed = error
        await side.rollback()
        if not isinstance(failed, TransactionMisused) and fault_of(failed, state.store.fault_of) is not Fault.LOST:
            state.hold.settling = False
            raise failed
        _after_lost_commit(state, await state.store.run(completion.verdict(state.hold.claimed.ref)), failed)
        state.settled = Settled(Verdict.ACCEPTED, opened=opened)


class SyncTransaction:
    """What `with ctx.transaction() as tx` gives, in blocking code."""

    def __init__(self, state: AttemptState, complete: Callable[[object], Any]) -> None:
        self._state = state
        self._complete = complete
        self._stack = ExitStack()
        self._side: SyncSide | None = None
        self._inside: Inside | None = None
        self._opened: int | None = None
        self.db: Any = None

    def complete(self, value: T) -> Completion[T]:
        """The completion to return; its commit comes at the end of the block. Raises Stopped when the claim is over.

        Where the block is rolled back, or its commit fails, the completion is void: returned all the same, `completion_dropped`.
        """
        side, state = self._side, self._state
        if side is None or self._opened is not None:
            raise Invalid("tx.complete is called once, inside the block of ctx.transaction().")
        state.hold.check()
        side.flush()
        if not side.intact():
            raise ended()

        def execute(statement: Statement) -> Rows:
            return side.execute(state.store.texts[statement.name], statement.params)

        program = completion.finish_last(result_of(state, value), state.retention_ms)
        judge = completion.verdict(state.hold.claimed.ref)
        seen: Verdict | None = None
        try:
            opened = drive(with_subprograms(program, state.store.subprograms), execute)
            if opened is None:
                seen = drive(with_subprograms(judge.start(), state.store.subprograms), execute)
        except Exception as error:
            _explain(state, error)
        if opened is None:
            side.rollback()
            raise _not_ours(state, state.store.run_sync(judge), seen)
        self._opened = opened
        completed: Completion[T] = self._complete(value)
        return completed

    def __enter__(self) -> Self:
        state = self._state
        state.hold.check()
        self._inside = enter(state.store, "ctx.transaction()")
        side: SyncSide | None = None
        try:
            self.db, side = opened_session_sync(self._stack, state.store, state.sessions.sync_session or state.store.lend_sync)
            _begun_sync(state, side)
            state.hold.check()  # it may have waited for its turn
        except BaseException:
            self._inside.open = False
            if side is not None:
                side.rollback()
            self._stack.close()
            raise
        self._side, state.open = side, self
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        side = self._leave()
        try:
            if side is None:
                return
            if error is not None or self._opened is None:
                if side.rollback(_cause(error)):
                    raise ended() from error
            else:
                self._commit(side, self._opened)
        finally:
            _void(self._state)
            self._stack.close()
        if error is None and self._opened is None:
            raise _missing()
        wrong = misused(error) if error is not None else None
        if wrong is not None:
            raise wrong from error

    def abandon(self) -> None:
        """Ends a block that the handler has not left itself."""
        side = self._leave()
        with suppress(Exception):
            if side is not None:
                side.rollback()
            self._stack.close()

    def _leave(self) -> SyncSide | None:
        side, self._side, self._state.open = self._side, None, None
        if self._inside is not None:
            self._inside.open = False
        return side

    def _commit(self, side: SyncSide, opened: int) -> None:
        state = self._state
        state.hold.settling = True
        failed: Exception = ended()
        try:
            if side.intact():
                side.commit()
                state.settled = Settled(Verdict.ACCEPTED, opened=opened)
                return
        except Exception as error:
            failed = error
        side.rollback()
        if not isinstance(failed, TransactionMisused) and fault_of(failed, state.store.fault_of) is not Fault.LOST:
            state.hold.settling = False
            raise failed
        _after_lost_commit(state, state.store.run_sync(completion.verdict(state.hold.claimed.ref)), failed)
        state.settled = Settled(Verdict.ACCEPTED, opened=opened)


def _missing() -> CompletionMissing:
    return CompletionMissing("The block of ctx.transaction() ended without tx.complete(value); it was rolled back.")


def _cause(error: BaseException | None) -> BaseException | None:
    """Why a block is rolled back; None for an end from outside, which is in a hurry."""
    if error is None:
        return _missing()
    return error if isinstance(error, Exception) else None


def _void(state: AttemptState) -> None:
    """A completion whose block was not committed counts as never made; returned all the same, it is refused."""
    if state.settled is None:
        state.made = None


def _explain(state: AttemptState, error: Exception) -> NoReturn:
    """Raises what an error of our own statements on the host's session means."""
    if fault_of(error, state.store.fault_of) is Fault.SCHEMA:
        raise elsewhere() from error
    raise error


async def _begun(state: AttemptState, side: AsyncSide) -> None:
    try:
        await side.begin()
    except Exception as error:
        _explain(state, error)


def _begun_sync(state: AttemptState, side: SyncSide) -> None:
    try:
        side.begin()
    except Exception as error:
        _explain(state, error)


def _not_ours(state: AttemptState, verdict: Verdict | None, seen: Verdict | None) -> BaseException:
    """Why the guard did not hold: the store's word, and where that says that the claim holds, what the session saw."""
    if verdict is not None:
        return stopped(state, verdict)
    return held_back() if seen is None else elsewhere()


def _after_lost_commit(state: AttemptState, verdict: Verdict | None, cause: Exception) -> None:
    """Passes when the commit is there; a transaction that the handler drives cannot be repeated for it."""
    if verdict is Verdict.ACCEPTED:
        return
    if verdict is not None:
        raise stopped(state, verdict) from cause
    if isinstance(cause, TransactionMisused):
        raise cause
    raise OutcomeUnknown("The connection was lost at the commit, and it is not there.") from cause
