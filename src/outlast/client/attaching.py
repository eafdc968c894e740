"""The owner applies a parked result: the host's own change of the target and ours in one transaction, in both colours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from outlast.client import reading
from outlast.client.calls import Application, Call
from outlast.client.driving import adrive_call, drive_call
from outlast.domain.conflicts import Conflict
from outlast.domain.errors import Invalid, NotRegistered, OutlastError
from outlast.domain.failures import Failure
from outlast.domain.kinds import Target
from outlast.domain.model import MAX_NAME, JobView, Principal
from outlast.domain.payload import check_text
from outlast.domain.refusal import article
from outlast.domain.values import decode_stored
from outlast.observe.events import TargetFailed, place_of
from outlast.observe.hub import emit
from outlast.store.drive import refusal_of
from outlast.store.programs import targets
from outlast.store.protocol import Store
from outlast.store.sessions.opening import is_async
from outlast.store.sessions.sides import fault_of
from outlast.store.sessions.transaction import Guarded, Judged, Landed, Sessions, Work, transact, transact_sync


class _Moved(Exception):
    """The target does not stand at the version that the owner named."""


class _NoVersion(Exception):
    """What the target's function gave is no version."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be applied to what."""

    job: JobView
    ref: str
    target: Target[Any]
    value: object


def _find(app: Application, job_id: str, no: int, principal: Principal, target_version: str) -> Call[_Found]:
    check_text(target_version, what="version of the target", limit=MAX_NAME)
    if isinstance(no, bool) or not isinstance(no, int) or no < 0:
        raise Invalid("no is the number of a task, from 0.")
    job = yield from reading.owned(app, job_id, principal)
    found: tuple[str, str] | None = yield targets.parked(principal.tenant, principal.subject, job_id, no)
    if found is None or job.target is None:
        raise Conflict("No result of this task waits to be applied.", job=job, code="nothing_parked")
    body, handler = found
    kind, task = app.registry.maker(handler)
    if kind.target is None:
        raise NotRegistered(f"The kind {kind.name!r} has no target= in this process.")
    return _Found(job, job.target.ref, kind.target, decode_stored(body, task.returns, what="result"))


def _work(found: _Found, principal: Principal, no: int, save: Callable[[Any], Any]) -> Work[int]:
    """The host's change, then ours. `save` gives the new version of the target, or None."""
    place = (principal.tenant, principal.subject, found.job.id, no)

    def last(version: object) -> Guarded[int]:
        return Guarded(partial(targets.apply_last, *place, version=new_version(version)))

    return Work(save, last, targets.nothing_parked(*place))


def new_version(version: object) -> str:
    """The version that a target's function gave; _Moved for None, _NoVersion for what is none."""
    if version is None:
        raise _Moved
    if not isinstance(version, str):
        raise _NoVersion(f"{article(version)}, not the new version as text")
    try:
        return check_text(version, what="version of the target", limit=MAX_NAME)
    except Invalid as error:
        raise _NoVersion("a text that is no version") from error


def _ended(end: Landed[int] | Judged, job: JobView) -> None:
    if isinstance(end, Judged):
        raise Conflict("No result of this task waits to be applied any more.", job=job, code="nothing_parked")


def _refused(error: Exception, job: JobView, store: Store) -> OutlastError:
    """What the owner is told of an error that came out of the host's function or its database: never its text, which goes to nobody.

    A word of the handlers (Permanent, Refused, Retry) has one for people.
    """
    if isinstance(error, _Moved):
        return _changed(job)
    if isinstance(error, OutlastError):
        return error
    known = refusal_of(fault_of(error, store.fault_of))
    if known is not None:
        return known
    where = f"it returned {error}" if isinstance(error, _NoVersion) else place_of(error)
    emit(TargetFailed(job.id, where, job.correlation_id))
    said = error.message if isinstance(error, Failure) else ""
    return Conflict(said or _FAILED, job=job, code="target_failed")


_FAILED = (
    "The application could not put the result there; nothing was changed, and the result is still kept. "
    "Name the version that the target has now, in the form that the application uses."
)


def _changed(job: JobView) -> Conflict:
    return Conflict("The target is not at the version you named. Look at it and decide again.", job=job, code="target_changed")


async def attach(
    app: Application, store: Store, sessions: Sessions, job_id: str, *, no: int, principal: Principal, target_version: str
) -> JobView:
    """Applies a parked result."""
    found = await adrive_call(_find(app, job_id, no, principal, target_version), store)
    fn = found.target.fn
    if not is_async(fn):
        from asyncio import to_thread  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        return await to_thread(partial(_attach_now, found, app, store, sessions, no=no, principal=principal, target_version=target_version))

    async def save(db: Any) -> object:  # noqa: ANN401 - a session of the host's, of whatever type
        return await fn(db, found.ref, target_version, found.value)

    try:
        end = await transact(_work(found, principal, no, save), store, sessions.session)
    except Exception as error:  # noqa: BLE001 - of the host's function
        raise _refused(error, found.job, store) from None
    _ended(end, found.job)
    return await adrive_call(reading.get(app, job_id, principal), store)


def attach_sync(
    app: Application, store: Store, sessions: Sessions, job_id: str, *, no: int, principal: Principal, target_version: str
) -> JobView:
    """Applies a parked result, in this thread; the target's function must be a plain one."""
    found = drive_call(_find(app, job_id, no, principal, target_version), store)
    if is_async(found.target.fn):
        raise Invalid(f"The function of the target {found.target.name!r} is async: use the async client.")
    return _attach_now(found, app, store, sessions, no=no, principal=principal, target_version=target_version)


def _attach_now(
    found: _Found, app: Application, store: Store, sessions: Sessions, *, no: int, principal: Principal, target_version: str
) -> JobView:
    def save(db: Any) -> object:  # noqa: ANN401 - a session of the host's, of whatever type
        return found.target.fn(db, found.ref, target_version, found.value)

    try:
        end = transact_sync(_work(found, principal, no, save), store, sessions.sync_session)
    except Exception as error:  # noqa: BLE001 - of the host's function
        raise _refused(error, found.job, store) from None
    _ended(end, found.job)
    return drive_call(reading.get(app, found.job.id, principal), store)
