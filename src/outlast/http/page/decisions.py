"""What the forms of a job's page do. Each is answered by a redirect to the page; or by the page and why it was not done."""

from __future__ import annotations

import re
from typing import Final, cast

from starlette.responses import Response

from outlast.client import deciding, reading, submitting
from outlast.domain import json_schema
from outlast.domain.conflicts import Conflict
from outlast.domain.errors import Invalid, QuotaExceeded
from outlast.domain.model import Action
from outlast.domain.payload import JSON, check_key, parse
from outlast.http import actions
from outlast.http.call import Call, query
from outlast.http.page import messages
from outlast.http.page.forms import read_form
from outlast.http.page.frame import frame_of
from outlast.http.page.portrait import Draft, not_done
from outlast.http.page.rendering import see_other
from outlast.http.problems import Problem, problem_of
from outlast.observe.correlation import correlation_id
from outlast.observe.events import JobAdmitted, JobControlled
from outlast.observe.hub import emit

_VERSION: Final = re.compile(r"[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[0-9]{1,6}")


async def cancel(call: Call) -> Response:
    """Cancels the version that the form was shown with; a repeat succeeds."""
    query(call.request)
    await call.job()  # who may not see it learns nothing from what the form is refused for
    sent = await read_form(call, "version")
    if _VERSION.fullmatch(sent["version"]) is None:
        raise Problem("invalid", messages.FORM_BROKEN)
    try:
        view = await actions.cancelled(call, f'"{sent["version"]}"')
    except Conflict as error:
        return await not_done(call, problem_of(error))
    return see_other(frame_of(call), f"/jobs/{view.id}")


async def act(call: Call) -> Response:
    """Decides an open question; a repeat of the same succeeds."""
    query(call.request)
    await call.job()
    sent = await read_form(call, "attention_id", "action", optional=("input",), text=call.desk.app.settings.max_input)
    # A form sends line ends as CR LF, whatever was typed.
    typed = sent.get("input", "").replace("\r\n", "\n")
    answers = sent["action"] == "answer"
    if answers != ("input" in sent):
        raise Problem("invalid", messages.FORM_BROKEN)
    try:
        given = await _answer(call, sent["attention_id"], typed) if answers else None
        decision = deciding.decide(
            call.desk.app,
            call.job_id,
            sent["attention_id"],
            action=cast("Action", sent["action"]),
            principal=call.principal,
            given=given,
        )
        view, _ = await call.desk.drive(decision)
    except Conflict as error:
        return await not_done(call, problem_of(error), draft=Draft(sent["attention_id"], typed))
    except Invalid as error:
        wrong = error.message if answers and error.code == "invalid" else ""
        return await not_done(call, problem_of(error), draft=Draft(sent["attention_id"], typed, wrong))
    emit(JobControlled(view.id, sent["action"], view.correlation_id))
    return see_other(frame_of(call), f"/jobs/{view.id}")


async def _answer(call: Call, attention_id: str, typed: str) -> JSON:
    """What was typed, as the question wants it: as it is where that fits as text, else as JSON. Invalid for what is neither."""
    if not typed.strip():
        raise Invalid(messages.ANSWER_EMPTY)
    shape = await call.desk.drive(deciding.answer_shape(call.job_id, attention_id, call.principal))
    if shape is not None and json_schema.takes_text(shape) and (json_schema.takes_text(shape, alone=True) or _fits(typed, shape)):
        return typed
    try:
        return parse(typed, limit=call.desk.app.settings.max_input, what="answer")
    except Invalid as error:
        if typed.lstrip()[0] in "{[":
            raise Invalid(error.message if shape is not None else f"{error.message} {messages.ANSWER_NOT_JSON}") from error
    return typed  # where text does not fit either, the refusal says what is wanted


def _fits(typed: str, shape: json_schema.Schema) -> bool:
    try:
        json_schema.check(typed, shape, what="answer")
    except Invalid:
        return False
    return True


async def rerun(call: Call) -> Response:
    """A new job of the same request; the same form again leads to the same one."""
    query(call.request)
    await call.job()
    sent = await read_form(call, "key")
    try:
        key = check_key(sent["key"])
    except Invalid:
        raise Problem("invalid", messages.FORM_BROKEN) from None
    try:
        handle = await call.desk.drive(submitting.rerun_job(call.desk.app, call.job_id, call.principal, key))
    except Conflict as error:
        return await not_done(call, problem_of(error))
    except QuotaExceeded as error:
        return await not_done(call, problem_of(error, retry_after=call.service.pacing.room_after(error.kind)))
    call.desk.store.announce(("*",))
    job = await call.desk.drive(reading.get(call.desk.app, handle.id, call.principal))
    emit(JobAdmitted(job.id, job.kind, handle.replayed, correlation_id.get() or job.correlation_id))
    return see_other(frame_of(call), f"/jobs/{handle.id}")


async def takeover(call: Call) -> Response:
    """From here on nothing reaches the job's target by itself; a repeat succeeds."""
    query(call.request)
    await call.job()
    sent = await read_form(call, "version")
    if _VERSION.fullmatch(sent["version"]) is None:
        raise Problem("invalid", messages.FORM_BROKEN)
    try:
        view = await call.desk.drive(deciding.takeover(call.desk.app, call.job_id, call.principal, int(sent["version"])))
    except Conflict as error:
        return await not_done(call, problem_of(error))
    emit(JobControlled(view.id, "takeover", view.correlation_id))
    return see_other(frame_of(call), f"/jobs/{view.id}")


async def attach(call: Call) -> Response:
    """Applies a parked result to the version of the target that the form names."""
    query(call.request)
    await call.job()
    sent = await read_form(call, "no", "target_version")
    if _NUMBER.fullmatch(sent["no"]) is None:
        raise Problem("invalid", messages.FORM_BROKEN)
    try:
        view = await call.desk.attach(call.job_id, int(sent["no"]), call.principal, sent["target_version"])
    except (Conflict, Invalid) as error:
        return await not_done(call, problem_of(error))
    emit(JobControlled(view.id, "attach", view.correlation_id))
    return see_other(frame_of(call), f"/jobs/{view.id}")
