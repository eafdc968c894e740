"""What an owner decides of a job, once for both colours: cancelling, answering, taking the target over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from outlast.client.calls import Application, Call
from outlast.client.reading import get, refusal
from outlast.domain import json_schema
from outlast.domain.access import Scope, scope_of
from outlast.domain.conflicts import AlreadyCompleted, Conflict, StaleVersion
from outlast.domain.effects import ANSWER_SHAPE
from outlast.domain.errors import Forbidden, Invalid, NotFound, OutlastError
from outlast.domain.ids import is_job_id
from outlast.domain.model import (
    MAX_NAME,
    Action,
    JobView,
    Principal,
)
from outlast.domain.payload import JSON, canonical, check_text, parse
from outlast.domain.values import encode
from outlast.domain.work import (
    Control,
)
from outlast.store.programs import control, status, targets

_ACTIONS = ("retry", "answer", "skip", "dismiss")


def cancel(app: Application, job_id: str, principal: Principal, version: int | None) -> Call[JobView]:
    """Cancels; a repeat succeeds."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise Invalid("version is the number that the job showed.")
    scope = scope_of(principal, "cancel")
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    did: Control = yield control.cancel(scope, job_id, version=version, actor=principal.subject, retention_ms=app.retention_ms)
    if did is Control.NOT_FOUND:
        raise (yield from refusal(principal, job_id))
    view = yield from get(app, job_id, principal)
    if did is Control.ALREADY_COMPLETED:
        raise AlreadyCompleted("The job had completed before.", job=view)
    if did is Control.STALE_VERSION:
        raise StaleVersion("The job changed since the version you named. Look at it and decide again.", job=view)
    return view


def act(app: Application, job_id: str, attention_id: str, *, action: Action, principal: Principal, given: Any) -> Call[JobView]:
    """Takes the owner's decision; a repeat of the same succeeds."""
    view, _ = yield from decide(app, job_id, attention_id, action=action, principal=principal, given=given)
    return view


def decide(
    app: Application, job_id: str, attention_id: str, *, action: Action, principal: Principal, given: Any
) -> Call[tuple[JobView, bool]]:
    """As `act`; and whether this same request had been taken before."""
    if action not in _ACTIONS:
        raise Invalid(f"action is one of {', '.join(_ACTIONS)}.", code="not_offered")
    answer: str | None = None
    if action == "answer":
        answer = encode(given, limit=app.settings.max_input, what="answer")
    elif given is not None:
        raise Invalid("Only the action 'answer' takes an input.")
    check_text(attention_id, what="attention id", limit=MAX_NAME)
    if not is_job_id(job_id):
        raise NotFound("There is no such job.")
    scope = scope_of(principal, "retry" if action == "retry" else "decide")
    if answer is not None:
        yield from _fitting(app, scope, job_id, attention_id, answer)
    did: Control = yield control.act(
        scope,
        job_id,
        attention_id,
        action=action,
        answer=answer,
        request_hash=digest_of(action, None if answer is None else canonical(parse(answer, limit=app.settings.max_input))),
        actor=principal.subject,
        retention_ms=app.retention_ms,
    )
    if did is Control.NOT_FOUND:
        raise (yield from refusal(principal, job_id))
    if did in _UNDECIDED:
        refused = _UNDECIDED[did]()
        raise refused
    view = yield from get(app, job_id, principal)
    if did is Control.SUPERSEDED:
        raise Conflict("This question was settled otherwise, or is none of this job.", job=view, code="attention_superseded")
    return view, did is Control.REPEATED


_UNDECIDED: Mapping[Control, Callable[[], OutlastError]] = {
    Control.NOT_OFFERED: lambda: Invalid("This action is not offered. The job's attention names those that are.", code="not_offered"),
    Control.OWNERS_ALONE: lambda: Forbidden(
        "Whether a call of unknown outcome is made again is for the owner of the job to say: it may happen twice."
    ),
    Control.MISANSWERED: lambda: Invalid(ANSWER_SHAPE, pointers=("/input",)),
}
"""Why a decision was not taken."""


def digest_of(action: Action, answer: str | None) -> str:
    """By what a repeated decision is known: whoever repeats it, for the same question."""
    return hashlib.sha256(f"{action}\n{answer or ''}".encode()).hexdigest()


def _fitting(app: Application, scope: Scope, job_id: str, attention_id: str, answer: str) -> Call[None]:
    """Invalid, with its places, for an answer that does not look as the question says; the handler checks again when it reads it."""
    shape = yield from _shape(scope, job_id, attention_id)
    if shape is not None:
        json_schema.check(parse(answer, limit=app.settings.max_input), shape, what="answer")


def _shape(scope: Scope, job_id: str, attention_id: str) -> Call[Mapping[str, JSON] | None]:
    shape: str | None = yield status.answer_schema(scope, job_id, attention_id)
    return None if shape is None else cast("dict[str, JSON]", json.loads(shape))


def answer_shape(job_id: str, attention_id: str, principal: Principal) -> Call[Mapping[str, JSON] | None]:
    """The JSON Schema of what answers this question; None where nothing is said, or there is no such question."""
    scope = scope_of(principal, "decide")
    check_text(attention_id, what="attention id", limit=MAX_NAME)
    return (yield from _shape(scope, job_id, attention_id)) if is_job_id(job_id) else None


def takeover(app: Application, job_id: str, principal: Principal, version: int | None) -> Call[JobView]:
    """The owner takes their target over: nothing is attached by itself from here on. A repeat succeeds."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise Invalid("version is the number that the job showed.")
    scope = scope_of(principal, "decide")
    did: Control = (yield targets.takeover(scope, job_id, version=version)) if is_job_id(job_id) else Control.NOT_FOUND
    if did is Control.NOT_FOUND:
        raise (yield from refusal(principal, job_id))
    view = yield from get(app, job_id, principal)
    if did is Control.NO_TARGET:
        raise Conflict("This job has no target that could be taken over.", job=view, code="no_target")
    if did is Control.STALE_VERSION:
        raise StaleVersion("The job changed since the version you named. Look at it and decide again.", job=view)
    return view
