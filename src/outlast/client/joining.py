"""Submitting in a transaction of the caller's: the jobs are there if, and only if, the caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from outlast.client.calls import Application, Call
from outlast.client.driving import adrive_call, drive_call
from outlast.client.submitting import admitted, unique_active
from outlast.domain.errors import Invalid
from outlast.domain.model import Handle
from outlast.domain.work import ActiveTaken, Admission, Admitted, KeyHeld, KeyTaken
from outlast.store.programs import admission
from outlast.store.programs.admission import Trail
from outlast.store.protocol import Store
from outlast.store.sessions.callers import AsyncTransaction, SyncTransaction
from outlast.store.sessions.calling import AsyncJoined, Joined, async_caller_of, caller_of
from outlast.store.sessions.django import in_djangos_thread


async def submit_joined(
    app: Application, prepared: Sequence[Admission], transaction: AsyncTransaction | str, store: Store
) -> tuple[Handle, ...] | None:
    """Admits all or none in the caller's transaction, and sends nothing else; None if there is none: each statement commits by itself."""
    _check(prepared)
    if isinstance(transaction, str):
        return await in_djangos_thread(submit_joined_sync, app, prepared, transaction, store)
    joined = AsyncJoined(async_caller_of(transaction), store)
    if not await joined.enter():
        return None
    trail = Trail()
    try:
        return await adrive_call(_submit(app, prepared, trail), joined)
    except BaseException:
        # The caller may go on and commit: after a refusal, on SQLite after a fault, and when what waited for this was cancelled. On
        # PostgreSQL a statement that failed has ended the transaction already, and this fails as well.
        with suppress(Exception):
            await joined.run(admission.take_back(prepared, trail))
        raise


def submit_joined_sync(
    app: Application, prepared: Sequence[Admission], transaction: SyncTransaction | str, store: Store
) -> tuple[Handle, ...] | None:
    """The same in blocking code; a text is the alias of a Django database."""
    _check(prepared)
    joined = Joined(caller_of(transaction), store)
    if not joined.enter():
        return None
    trail = Trail()
    try:
        return drive_call(_submit(app, prepared, trail), joined)
    except BaseException:
        with suppress(Exception):
            joined.run_sync(admission.take_back(prepared, trail))
        raise


def _check(prepared: Sequence[Admission]) -> None:
    if any(job.unique is not None and job.unique.policy == "replace" for job in prepared):
        raise Invalid(
            'Unique(..., "replace") cancels a job, which cannot wait for the end of your transaction. Submit without transaction=, or take '
            'the policy "existing" or "reject".'
        )


def _submit(app: Application, prepared: Sequence[Admission], trail: Trail) -> Call[tuple[Handle, ...]]:
    if not prepared:
        return ()
    results: Sequence[Admitted | KeyTaken | ActiveTaken]
    try:
        results = yield admission.admit_joined(prepared, trail)
    except KeyHeld as held:
        raise (yield from unique_active(app, prepared[held.place], held.job_id, held.message)) from None
    handles: list[Handle] = []
    for job, result in zip(prepared, results, strict=True):
        handles.append((yield from admitted(app, job, result)))
    return tuple(handles)
