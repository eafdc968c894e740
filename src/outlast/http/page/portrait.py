"""A job's page: what is stored, what can be opened, what goes on, what needs somebody, and what can be done."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from outlast.client import reading
from outlast.domain.effects import EFFECT_UNKNOWN
from outlast.domain.errors import Forbidden
from outlast.domain.model import Action, Attention, JobView, Recovery, TaskView
from outlast.http.call import Call, query
from outlast.http.page import messages
from outlast.http.page.frame import frame_of
from outlast.http.page.rendering import render
from outlast.http.page.work import pace
from outlast.http.problems import Problem
from outlast.observe.correlation import correlation_id

MOST_QUESTIONS: Final = 20


@dataclass(frozen=True, slots=True)
class Question:
    """An open question with those of its actions that the one who looks may take."""

    asked: Attention
    actions: tuple[Action, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer that was not taken: what was typed, for which question, and what is wrong with it."""

    attention_id: str
    text: str
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Why what was asked for was not done."""

    title: str
    text: str
    correlation: str


async def job(call: Call) -> Response:
    """The job as it stands."""
    query(call.request)
    return await portrait(call, await call.job())


async def not_done(call: Call, problem: Problem, *, draft: Draft | None = None) -> Response:
    """The job as it stands, with words about why what was asked for was not done, and what was typed."""
    notice = Notice(
        messages.NOT_DONE.get(problem.code, problem.entry.title),
        messages.WHY_NOT.get(problem.code, problem.detail),
        correlation_id.get() or "",
    )
    view = problem.job or await call.job()
    return await portrait(call, view, status=problem.entry.status, headers=problem.headers, notice=notice, draft=draft)


async def portrait(
    call: Call,
    view: JobView,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    notice: Notice | None = None,
    draft: Draft | None = None,
) -> Response:
    """The page of a job, for its owner or for an operator."""
    tasks = await call.desk.drive(reading.tasks(view.id, call.principal))
    past = await _past(call, view)
    questions = _questions(view, tasks, past)
    kind = call.desk.app.registry.kinds.get(view.kind)
    return render(
        frame_of(call),
        "job.html",
        status,
        headers,
        job=view,
        tasks=tasks,
        owner=past is not None,
        past=past,
        questions=questions[:MOST_QUESTIONS],
        success="" if kind is None else kind.success,
        pace=pace(call, [view]),
        refreshes=notice is None and not any(question.actions for question in questions),
        rerun_key=f"page-{secrets.token_urlsafe(18)}" if view.final and kind is not None else None,
        notice=notice,
        draft=draft,
    )


async def _past(call: Call, view: JobView) -> Recovery | None:
    """What its owner may see of it; None for an operator."""
    try:
        return await call.desk.drive(reading.recovery(view.id, call.principal))
    except Forbidden:
        return None


def _questions(view: JobView, tasks: tuple[TaskView, ...], past: Recovery | None) -> list[Question]:
    optional = {task.label for task in tasks if not task.required}
    asked = past.attention if past is not None else () if view.attention is None else (view.attention,)
    questions = [Question(one, _answer_first(one.actions) if past is not None else _operators(one), one.label in optional) for one in asked]
    return [] if view.final else questions


def _answer_first(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The answer is what a question asks for, so that it leads."""
    return tuple(sorted(actions, key=lambda action: action != "answer"))


def _operators(asked: Attention) -> tuple[Action, ...]:
    """Those that are not the owner's alone."""
    return tuple(action for action in asked.actions if action == "retry" and asked.code != EFFECT_UNKNOWN)
