"""What the forms of a job's page do. Each is answered by a redirect to the page; or by the page and why it was not done."""

from __future__ import annotations

import re
from typing import Final, cast

from starlette.responses import Response

from outlast.client import calls
from outlast.domain.conflicts import Conflict
from outlast.domain.errors import Invalid
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
        view, _ = await call.desk.drive(
            calls.decide(
                call.desk.app,
                call.job_id,
                sent["attention_id"],
                action=cast("Action", sent["action"]),  # anything else is refused there
                principal=call.principal,
                given=_answer(typed, limit=call.desk.app.settings.max_input) if answers else None,
            )
        )
    except Conflict as error:
        return await not_done(call, problem_of(error), draft=Draft(sent["attention_id"], typed))
    except Invalid as error:
        wrong = error.message if answers and error.code == "invalid" else ""
        return await not_done(call, problem_of(error), draft=Draft(sent["attention_id"], typed, wrong))
    emit(JobControlled(view.id, sent["action"], view.correlation_id))
    return see_other(frame_of(call), f"/jobs/{view.id}")


def _answer(typed: str, *, limit: int) -> JSON:
    """What was typed: JSON where it is JSON, else the text. Invalid for neither: nothing, or what only begins like JSON."""
    if not typed.strip():
        raise Invalid(messages.ANSWER_EMPTY)
    try:
        return parse(typed, limit=limit, what="answer")
    except Invalid as error:
        if typed.lstrip()[0] in "{[":
            raise Invalid(f"{error.message} {messages.ANSWER_NOT_JSON}") from error
    return typed


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
        handle = await call.desk.drive(calls.rerun_job(call.desk.app, call.job_id, call.principal, key))
    except Conflict as error:
        return await not_done(call, problem_of(error))
    call.desk.store.announce(("*",))
    job = await call.desk.drive(calls.get(call.desk.app, handle.id, call.principal))
    emit(JobAdmitted(job.id, job.kind, handle.replayed, correlation_id.get() or job.correlation_id))
    return see_other(frame_of(call), f"/jobs/{handle.id}")
