"""`outlast jobs show`: all about one job, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import click

from outlast.cli.decide import acting_on, job_argument
from outlast.cli.options import as_option, at_store, json_option, opened, store_option
from outlast.cli.output import age, ago, local, moment_of, safe, safe_lines, say, say_json, table
from outlast.cli.views import job_json, state_of, view_of
from outlast.client._sync import SyncClient
from outlast.domain.access import Scope, scope_of
from outlast.domain.effects import EFFECT_UNKNOWN
from outlast.domain.errors import NotFound
from outlast.domain.model import JobView, Principal
from outlast.domain.registry import Registry
from outlast.domain.work import AttemptRow, AttentionRow, JobRow, RecoveryRows, TaskRow
from outlast.store.programs import status

_ASKED: Final[Mapping[str, str]] = {
    "retry": "",
    "answer": " --attention {question} --input ...",
    "skip": " --attention {question}",
    "dismiss": " --attention {question}",
}
"""What the command of an action is told beside the job."""
_ATTACH: Final[Mapping[str, str]] = {
    "none": "nothing attached yet",
    "attached": "attached",
    "parked": "parked, for its owner to attach",
}


@dataclass(frozen=True, slots=True)
class Story:
    """A job with its tasks and, for who may see it, its past. Private: with workers, and what failed in the words of the code."""

    view: JobView
    row: JobRow | None
    tasks: Sequence[TaskRow]
    past: RecoveryRows | None
    private: bool


@click.command("show")
@job_argument
@as_option
@store_option
@json_option
def command(job_id: str, *, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """Show a job: its tasks, attempts, stored steps, and what it waits for.

    Workers, fences and the errors of failed attempts are shown to the operator at the store only, so without --as.
    """
    app = at_store(store)
    with opened(app) as client:
        story = _read(client, app.registry, job_id, acting)
    if as_json:
        say_json(_json(story))
    else:
        _print(story, datetime.now(UTC), acting)


def _read(client: SyncClient, registry: Registry, job_id: str, acting: Principal | None) -> Story:
    principal = acting_on(client, job_id, acting)
    if acting is None:
        found = client.store.run_sync(status.recovery(Scope(principal.tenant, None), job_id))
        if found is None:
            raise NotFound("The job was purged just now.")
        row, past = found
        return Story(view_of(row, registry), row, past.tasks, past, private=True)
    view = client.get(job_id, principal=principal)
    tasks = client.store.run_sync(status.tasks(scope_of(principal, "read"), job_id)) or []
    mine = client.store.run_sync(status.recovery(scope_of(principal, "recovery"), job_id))
    return Story(view, None, tasks, mine[1] if mine else None, private=False)


# -- JSON -------------------------------------------------------------------------------------------------------


def _json(story: Story) -> dict[str, Any]:
    past = story.past
    return {
        "job": job_json(story.view, story.row),
        "tasks": [_task_json(task, private=story.private) for task in story.tasks],
        "attempts": None if past is None else [_attempt_json(attempt, private=story.private) for attempt in past.attempts],
        "steps": None if past is None else [{"label": label, "stored": stored} for label, stored in past.steps],
        "effects": None
        if past is None
        else [{"label": e.label, "name": e.name, "state": e.state, "begun_at": moment_of(e.begun_at_ms)} for e in past.effects],
        "attention": None
        if past is None
        else [
            {
                "id": q.id,
                "label": q.label,
                "code": q.code,
                "message": q.message,
                "actions": q.actions,
                "until": moment_of(q.until_ms),
            }
            for q in past.questions
        ],
    }


def _task_json(task: TaskRow, *, private: bool) -> dict[str, Any]:
    members: dict[str, Any] = {
        "no": task.no,
        "label": task.label,
        "state": task.state,
        "required": task.required,
        "usable": task.usable,
        "attempt": task.attempt,
        "max_attempts": task.max_attempts,
        "progress": task.progress,
        "code": task.code,
        "ref": task.ref,
        "next_attempt_at": moment_of(task.next_attempt_at_ms),
        "parked": task.parked,
    }
    return {**members, "fence": task.fence, "worker": task.worker} if private else members


def _attempt_json(attempt: AttemptRow, *, private: bool) -> dict[str, Any]:
    members: dict[str, Any] = {
        "no": attempt.no,
        "label": attempt.label,
        "attempt": attempt.number,
        "fence": attempt.fence,
        "started_at": moment_of(attempt.started_at_ms),
        "ended_at": moment_of(attempt.ended_at_ms),
        "code": attempt.code,
    }
    return {**members, "worker": attempt.worker, "detail": attempt.detail} if private else members


# -- for people -------------------------------------------------------------------------------------------------


def _print(story: Story, now: datetime, acting: Principal | None) -> None:
    view, past = story.view, story.past
    say(f"{view.id}  {state_of(view)}")
    facts = [
        ("kind", view.kind if story.row is None else f"{view.kind} (version {story.row.schema_version})"),
        ("label", view.label),
        ("owner", "" if story.row is None else f"{story.row.tenant} / {story.row.owner}"),
        (
            "progress",
            f"{view.progress.done} of {view.progress.total} tasks" + (f", now: {view.progress.label}" if view.progress.label else ""),
        ),
        ("accepted", _when(view.accepted_at, now)),
        ("usable", _when(view.usable_at, now) + (f", open: {view.usable_ref}" if view.usable_ref else "")),
        ("finished", _when(view.finished_at, now)),
        ("target", "" if view.target is None else f"{view.target.ref}, last seen at version {view.target.version}: {_ATTACH[view.attach]}"),
        ("taken over", _when(view.taken_over_at, now)),
        ("rerun of", view.rerun_of or ""),
        ("correlation", view.correlation_id),
    ]
    for name, value in facts:
        if value:
            say(f"  {name:<12}{safe(value)}")
    _section("Tasks", _tasks(story.tasks, now, private=story.private))
    if past is None:
        say("\nThe attempts and questions are shown to the owner, and to an operator at the store (without --as).")
        return
    _parked(story, acting)
    if past.attempts:
        say("\nAttempts")
        _attempts(past.attempts, private=story.private)
    if past.steps:
        _section("Steps stored", table(("TASK", "STEPS"), [(label, str(stored)) for label, stored in past.steps], numbers=("STEPS",)))
    if past.effects:
        lines = [(e.label, e.name, e.state, _when(moment_of(e.begun_at_ms), now)) for e in past.effects]
        _section("Outside calls that may have happened", table(("TASK", "EFFECT", "STATE", "BEGUN"), lines))
    if past.questions:
        say("\nNeeds attention")
    for question in past.questions:
        _question(view.id, question, now, acting)


def _parked(story: Story, acting: Principal | None) -> None:
    """For the owner: the commands that apply the results that wait."""
    for task in story.tasks:
        if task.parked and acting is not None:
            say(f"  outlast jobs attach {story.view.id} --task {task.no} --target-version ...{_as(acting)}")


def _question(job_id: str, question: AttentionRow, now: datetime, acting: Principal | None) -> None:
    say(f"  {safe(question.label)}: {safe(question.message)} ({safe(question.code)})")
    say(f"    {', '.join(question.actions)}; until {_when(moment_of(question.until_ms), now)}; id {safe(question.id)}")
    for action in question.actions:
        if acting is not None or (action == "retry" and question.code != EFFECT_UNKNOWN):
            say(f"    outlast jobs {action} {job_id}{_ASKED[action].format(question=safe(question.id))}{_as(acting)}")


def _as(acting: Principal | None) -> str:
    return "" if acting is None else f" --as {safe(':'.join((acting.tenant, acting.subject, *sorted(acting.roles))))}"


def _when(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{local(moment)} ({ago(moment, now)})"


def _section(title: str, text: str) -> None:
    say(f"\n{title}")
    for line in text.split("\n"):
        say(f"  {line}")


def _tasks(tasks: Sequence[TaskRow], now: datetime, *, private: bool) -> str:
    headers = ("NO", "TASK", "STATE", "", "ATTEMPT", "CODE", "FENCE", "WORKER", "NEXT", "PROGRESS", "OPEN")
    lines = [
        (
            str(task.no),
            task.label,
            task.state,
            _marks(task),
            f"{task.attempt}/{task.max_attempts}" if task.attempt else "",
            task.code or "",
            str(task.fence) if private else "",
            (task.worker or "") if private else "",
            ago(moment_of(task.next_attempt_at_ms), now),
            task.progress or "",
            task.ref or "",
        )
        for task in tasks
    ]
    return table(headers, lines, numbers=("NO", "ATTEMPT", "FENCE"))


def _marks(task: TaskRow) -> str:
    marks = ("usable" if task.usable else "" if task.required else "optional", "parked" if task.parked else "")
    return ", ".join(mark for mark in marks if mark)


def _attempts(attempts: Sequence[AttemptRow], *, private: bool) -> None:
    headers = ("ENDED", "TASK", "ATTEMPT", "FENCE", "RESULT", "TOOK", "WORKER")
    lines = [
        (
            local(moment_of(a.ended_at_ms)),
            a.label,
            str(a.number),
            str(a.fence),
            a.code or "completed",
            age(None if a.started_at_ms is None or a.ended_at_ms is None else (a.ended_at_ms - a.started_at_ms) / 1000),
            (a.worker or "") if private else "",
        )
        for a in attempts
    ]
    header, *rows = table(headers, lines, numbers=("ATTEMPT", "FENCE", "TOOK")).split("\n")
    say(f"  {header}")
    for attempt, line in zip(attempts, rows, strict=True):
        say(f"  {line}")
        if private and attempt.detail:
            for detail in safe_lines(attempt.detail.rstrip()):
                say(f"      {detail}")
