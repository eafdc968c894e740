"""What the client does with schedules, once for both colours: generators, as all calls are."""

from __future__ import annotations

from typing import Any

from outlast.client.calls import Application, Call
from outlast.client.views import schedule as view_of
from outlast.domain.access import reading_scope, scope_of
from outlast.domain.cron import Cron
from outlast.domain.errors import Forbidden, Invalid, NotFound, NotRegistered, OutlastError
from outlast.domain.kinds import Kind
from outlast.domain.model import Principal, ScheduleView
from outlast.domain.payload import check_text
from outlast.domain.requests import caller_of, check_may_submit, read_request
from outlast.domain.schedules import MAX_NAME, CatchUp, Definition, Every, Rule, ScheduleKey, ScheduleRow, check_catch_up, stored
from outlast.domain.values import encode
from outlast.store.programs import schedules


def make(
    app: Application, kind: Kind[Any], value: Any, *, name: str, when: Rule, owner: Principal, catch_up: CatchUp
) -> Call[ScheduleView]:
    """Makes or changes a schedule; all of it is checked, the plan included, before the store is asked."""
    if not isinstance(owner, Principal):
        raise Invalid("owner= takes a Principal: whose schedule, and whose jobs, they are.")
    if not isinstance(kind, Kind):
        raise Invalid("schedule takes what @jobs.kind or @jobs.task made.")
    if not app.registry.knows(kind):
        raise NotRegistered(f"The kind {kind.name!r} is not registered with this Outlast.")
    if not isinstance(when, Cron | Every):
        raise Invalid('when= takes Cron("0 2 * * *", zone="Europe/Berlin") or Every(3600).')
    check_may_submit(owner, kind)
    body = encode(value, limit=app.settings.max_input, what="input", hint=kind.input_type)
    kind.plan(read_request(kind, body, None, limit=app.settings.max_input).value)
    wanted = Definition(kind.name, kind.version, body, caller_of(owner, kind), stored(when), check_catch_up(catch_up))
    key = ScheduleKey(owner.tenant, owner.subject, check_text(name, what="name of the schedule", limit=MAX_NAME))
    row: ScheduleRow = yield schedules.make(key, wanted)
    return view_of(row)


def listed(principal: Principal) -> Call[tuple[ScheduleView, ...]]:
    """The principal's own schedules by name; an operator's: those of the tenant, by owner and name."""
    scope = reading_scope(principal)
    rows: list[ScheduleRow] = yield schedules.listed(scope.tenant, scope.owner)
    return tuple(view_of(row) for row in rows)


def remove(name: str, principal: Principal) -> Call[None]:
    """Removes a schedule of the principal's own. It is looked for first: what the removal finds after a lost answer says nothing."""
    key = _own(name, principal)
    if not (yield schedules.listed(key.tenant, key.owner, key.name)):
        raise (yield from _refusal(name, principal))
    yield schedules.remove(key)


def pause(name: str, principal: Principal) -> Call[ScheduleView]:
    """Pauses a schedule of the principal's own; again is no error."""
    row: ScheduleRow | None = yield schedules.pause(_own(name, principal), principal.subject)
    if row is None:
        raise (yield from _refusal(name, principal))
    return view_of(row)


def resume(name: str, principal: Principal) -> Call[ScheduleView]:
    """Resumes a schedule of the principal's own; again is no error."""
    row: ScheduleRow | None = yield schedules.resume(_own(name, principal))
    if row is None:
        raise (yield from _refusal(name, principal))
    return view_of(row)


def _own(name: str, principal: Principal) -> ScheduleKey:
    scope = scope_of(principal, "decide")
    return ScheduleKey(scope.tenant, scope.owner or principal.subject, check_text(name, what="name of the schedule", limit=MAX_NAME))


def _refusal(name: str, principal: Principal) -> Call[OutlastError]:
    """Forbidden for an operator who may see one of that name, NotFound for all others."""
    scope = reading_scope(principal)
    if scope.owner is None and (yield schedules.listed(scope.tenant, None, name)):
        return Forbidden("You may see this schedule, but only its owner pauses, resumes or removes it.")
    return NotFound("There is no such schedule.")
