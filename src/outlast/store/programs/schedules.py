"""Schedules: made, shown and paused by their owners; each due time made into one job by whoever fires it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlast.domain.schedules import Definition, DueSchedule, Firing, ScheduleKey, ScheduleRow, next_due, read
from outlast.domain.work import Admission, Admitted
from outlast.store.program import Access, Program, Repeat, Statement, operation
from outlast.store.programs import quotas
from outlast.store.programs.admission import admit_all


def _key(key: ScheduleKey) -> dict[str, Any]:
    return {"tenant": key.tenant, "owner": key.owner, "name": key.name}


def _row(*row: Any) -> ScheduleRow:
    tenant, owner, name, *rest = row
    return ScheduleRow(ScheduleKey(tenant, owner, name), *rest)


def _due(*row: Any) -> DueSchedule:
    tenant, owner, name, version, kind, schema_version, body, caller, rule, catch_up, made_at, next_at, now = row
    definition = Definition(kind, schema_version, body, caller, rule, catch_up)
    return DueSchedule(ScheduleKey(tenant, owner, name), version, definition, made_at, next_at, now)


@operation(Access.TRANSACTION)
def make(key: ScheduleKey, wanted: Definition) -> Program[ScheduleRow]:
    """Makes a schedule, or changes the one of that name; the same definition again changes nothing.

    Another rule starts anew: it comes due from now on. Another kind, input or policy leaves the due times as they are.
    """
    rows = yield Statement("schedule_to_change", _key(key))
    params = {
        **_key(key),
        "kind": wanted.kind,
        "schema_version": wanted.schema_version,
        "input": wanted.input,
        "caller": wanted.caller,
        "rule": wanted.rule,
        "catch_up": wanted.catch_up,
    }
    if not rows:
        now = int((yield Statement("clock", {}))[0][0])
        starts = {"made_at": now, "next_at": next_due(read(wanted.rule), now, anchor_ms=now)}
        if not (yield Statement("make_schedule", {**params, **starts})):
            raise Repeat
        return (yield from _shown(key))
    *defined, made_at, next_at, _paused, now = rows[0]
    found = Definition(*defined)
    if found != wanted:
        if found.rule != wanted.rule:
            made_at, next_at = now, next_due(read(wanted.rule), now, anchor_ms=now)
        yield Statement("change_schedule", {**params, "made_at": made_at, "next_at": next_at})
    return (yield from _shown(key))


def _shown(key: ScheduleKey) -> Program[ScheduleRow]:
    rows = yield Statement("schedule_list", _key(key))
    return _row(*rows[0])


@operation(Access.READ)
def listed(tenant: str | None, owner: str | None, name: str | None = None) -> Program[list[ScheduleRow]]:
    """Schedules by tenant, owner and name: None for all."""
    rows = yield Statement("schedule_list", {"tenant": tenant, "owner": owner, "name": name})
    return [_row(*row) for row in rows]


@operation(Access.STATEMENT)
def remove(key: ScheduleKey) -> Program[bool]:
    """Removes a schedule. False: there is none, or after a commit of unknown outcome, there is none any more."""
    return bool((yield Statement("remove_schedule", _key(key))))


@operation(Access.TRANSACTION)
def pause(key: ScheduleKey, actor: str) -> Program[ScheduleRow | None]:
    """From here on it does not come due; None if there is none. Again changes nothing."""
    rows = yield Statement("schedule_to_change", _key(key))
    if not rows:
        return None
    yield Statement("pause_schedule", {**_key(key), "actor": actor})
    return (yield from _shown(key))


@operation(Access.TRANSACTION)
def resume(key: ScheduleKey) -> Program[ScheduleRow | None]:
    """It comes due again, from the next time on; None if there is none. Again changes nothing."""
    rows = yield Statement("schedule_to_change", _key(key))
    if not rows:
        return None
    *defined, made_at, _next_at, paused, now = rows[0]
    if paused:
        following = next_due(read(Definition(*defined).rule), now, anchor_ms=made_at)
        yield Statement("resume_schedule", {**_key(key), "next_at": following})
    return (yield from _shown(key))


@operation(Access.READ)
def due(after: DueSchedule | None, limit: int) -> Program[tuple[list[DueSchedule], int | None]]:
    """Schedules whose time has come, after a given one, and in how many milliseconds the next one falls due; None: none waits."""
    start = {"after": -1, "tenant": "", "owner": "", "name": ""} if after is None else {"after": after.next_ms, **_key(after.key)}
    rows = yield Statement("due_schedules", {**start, "limit": limit})
    found = [_due(*row) for row in rows]
    following = yield Statement("next_schedule", {})
    return found, int(following[0][0]) if following else None


@operation(Access.TRANSACTION, patient=False)
def fire(schedule: DueSchedule, decided: Firing, jobs: Sequence[Admission]) -> Program[tuple[str, ...] | None]:
    """Admits the jobs of the due times and waits for the next one; None if another fired, changed or paused it since it was read.

    A job of a due time that was admitted before stays the only one: its key names schedule and due time. Of several under a quota the
    latest are admitted, as many as there is room for. Raises, nothing written, what an admission is refused with: QuotaExceeded where
    there is room for none.
    """
    place = {**_key(schedule.key), "version": schedule.version}
    if not (yield Statement("lock_due_schedule", {**place, "until": decided.until_ms})):
        return None
    admitted: list[Admitted] = []
    if jobs:
        admitted = yield from admit_all((yield from _with_room(jobs))).start()
    ids = tuple(job.job_id for job in admitted)
    last = {"due_at": decided.due[-1] if decided.due else None, "job_id": ids[-1] if ids else None}
    yield Statement("fire_schedule", {**place, **last, "next_at": decided.next_ms})
    return ids


def _with_room(jobs: Sequence[Admission]) -> Program[Sequence[Admission]]:
    """The latest of a schedule's jobs for which their quota has room; the last one in any case, since it may be there already."""
    if len(jobs) == 1 or jobs[0].quota is None:
        return jobs
    yield from quotas.hold(jobs)
    room = yield from quotas.room(jobs[0])
    return jobs[-max(room, 1) :]


@operation(Access.STATEMENT)
def note(schedule: DueSchedule, code: str) -> Program[bool]:
    """Says why its due time, which it goes on waiting with, has no job yet; False if another moved it on, or said the same before."""
    place = {**_key(schedule.key), "version": schedule.version}
    return bool((yield Statement("note_schedule", {**place, "code": code})))


@operation(Access.STATEMENT)
def fail(schedule: DueSchedule, code: str, next_ms: int) -> Program[bool]:
    """Its due time leads to no job, for the reason of this code, and it waits for the next one; False if another moved it on before."""
    place = {**_key(schedule.key), "version": schedule.version}
    return bool((yield Statement("fail_schedule", {**place, "code": code, "next_at": next_ms})))
