"""What goes over the wire, as types: the document that describes the API is built from them, and so is each answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from outlast.domain.conflicts import Expired
from outlast.domain.model import Action, JobView, Outcome, Page, Recovery, State, TaskState, TaskView, UniquePolicy
from outlast.domain.model import Attach as AttachState
from outlast.domain.model import Attention as AttentionOf

JobId = Annotated[str, Meta(description="A job's id, a UUID in lower case.", pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]

LABELS: Final[dict[Action, str]] = {
    "retry": "Try again",
    "answer": "Answer",
    "skip": "Go on without it",
    "dismiss": "Give up this job",
}
"""What the actions are called for people."""


class Offered(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action that the owner may take now. `input`: what an answer must look like, as JSON Schema; absent: anything."""

    action: Action
    label: str
    input: dict[str, Any] | None = None


class Question(msgspec.Struct, frozen=True):
    """What the owner must decide, and until when. The id is for one use."""

    id: str
    code: str
    message: str
    task: str
    until: datetime
    actions: tuple[Offered, ...]


class Progress(msgspec.Struct, frozen=True):
    """How many of the tasks have ended, of how many; `label` is the first that can go on."""

    done: int
    total: int
    label: str | None


class Target(msgspec.Struct, frozen=True):
    """What the result is for, and a version of it: in a request the one that the owner saw, in a job the one that it last saw."""

    ref: Annotated[str, Meta(min_length=1, max_length=500)]
    version: Annotated[str, Meta(min_length=1, max_length=200)]


class Job(msgspec.Struct, frozen=True):
    """A job as it stands. `usable_at` is when the first result could be opened; `attention` is the oldest open question."""

    id: JobId
    kind: str
    label: str
    state: State
    outcome: Outcome | None
    version: int
    stopping: bool
    target: Target | None
    usable_at: datetime | None
    usable_ref: str | None
    progress: Progress
    attention: Question | None
    attention_count: int
    attach: AttachState
    taken_over_at: datetime | None
    cancel_note: str
    tasks_url: str
    events_url: str
    result_url: str
    recovery_url: str
    accepted_at: datetime
    finished_at: datetime | None
    rerun_of: JobId | None
    correlation_id: str


class PurgedJob(msgspec.Struct, frozen=True):
    """What is left of a job that is no longer kept, for as long as its key answers."""

    id: JobId
    state: Literal["completed", "cancelled"]
    outcome: Outcome
    finished_at: datetime
    expired: bool


class JobList(msgspec.Struct, frozen=True):
    """One page of jobs, newest first; `next` is the cursor of the following one."""

    items: tuple[Job, ...]
    next: str | None


class Task(msgspec.Struct, frozen=True):
    """A task as it stands; `no` is its place in the plan. `parked`: its result waits to be applied to the job's target."""

    no: int
    label: str
    state: TaskState
    required: bool
    usable: bool
    attempt: int
    max_attempts: int
    progress: str | None
    code: str | None
    ref: str | None
    next_attempt_at: datetime | None
    parked: bool


class TaskList(msgspec.Struct, frozen=True):
    """A job's tasks in plan order."""

    items: tuple[Task, ...]


class Attempt(msgspec.Struct, frozen=True):
    """One attempt that ended. `code` is null for the one that completed its task."""

    task: str
    attempt: int
    fence: int
    started_at: datetime | None
    ended_at: datetime | None
    code: str | None


class Steps(msgspec.Struct, frozen=True):
    """How many steps of a task are stored."""

    task: str
    stored: int


class Effect(msgspec.Struct, frozen=True):
    """A call to the outside that may have happened."""

    task: str
    name: str
    state: Literal["intended", "confirmed", "refused", "unknown"]
    begun_at: datetime


class RecoveryView(msgspec.Struct, frozen=True):
    """What happened to a job so far, what is safe, and what is next; for its owner."""

    job: Job
    stored: tuple[str, ...]
    steps: tuple[Steps, ...]
    attempts: tuple[Attempt, ...]
    effects: tuple[Effect, ...]
    attention: tuple[Question, ...]
    next_attempt_at: datetime | None
    correlation_id: str


class UniqueKey(msgspec.Struct, kw_only=True):
    """One active job at a time under this key: `existing` gives the active one, `reject` refuses, `replace` cancels it."""

    key: Annotated[str, Meta(min_length=1, max_length=255, pattern="^[!-~]{1,255}$")]
    policy: UniquePolicy


class Submit(msgspec.Struct, kw_only=True):
    """Asks for a job. `input` is what the kind takes; `not_before` must name its zone."""

    kind: Annotated[str, Meta(min_length=1, max_length=200)]
    input: Any
    schema_version: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    unique: UniqueKey | None = None
    not_before: Annotated[datetime, Meta(tz=True)] | None = None
    target: Target | None = None


class Apply(msgspec.Struct, kw_only=True):
    """Applies a task's parked result to the target, where it stands at this version."""

    no: Annotated[int, Meta(ge=0, le=999_999)]
    target_version: Annotated[str, Meta(min_length=1, max_length=200)]


class Act(msgspec.Struct, kw_only=True):
    """Decides an open question. `input` goes with the action `answer` alone."""

    attention_id: Annotated[str, Meta(min_length=1, max_length=200)]
    action: Action
    input: Any = msgspec.UNSET


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether this process is alive, or ready to serve."""

    status: Literal["ok", "unavailable"]
    code: str | None = None


def encode(value: msgspec.Struct) -> bytes:
    """The JSON of a wire type; times are RFC 3339 in UTC."""
    return msgspec.json.encode(value)


def job(view: JobView, base: str) -> Job:
    """A job for the wire; `base` is where the API is mounted."""
    here = f"{base}/v1/jobs/{view.id}"
    return Job(
        id=view.id,
        kind=view.kind,
        label=view.label,
        state=view.state,
        outcome=view.outcome,
        version=view.version,
        stopping=view.stopping,
        target=None if view.target is None else Target(view.target.ref, view.target.version),
        usable_at=view.usable_at,
        usable_ref=view.usable_ref,
        progress=Progress(view.progress.done, view.progress.total, view.progress.label),
        attention=None if view.attention is None else question(view.attention),
        attention_count=view.attention_count,
        attach=view.attach,
        taken_over_at=view.taken_over_at,
        cancel_note=view.cancel_note,
        tasks_url=f"{here}/tasks",
        events_url=f"{here}/events",
        result_url=f"{here}/result",
        recovery_url=f"{here}/recovery",
        accepted_at=view.accepted_at,
        finished_at=view.finished_at,
        rerun_of=view.rerun_of,
        correlation_id=view.correlation_id,
    )


def purged(job_id: str, expired: Expired) -> PurgedJob:
    """What is left of a job, on the wire."""
    state: Literal["completed", "cancelled"] = "completed" if expired.state == "completed" else "cancelled"
    return PurgedJob(job_id, state, expired.outcome, expired.finished_at, expired=True)


def job_list(page: Page[JobView], base: str) -> JobList:
    """A page of jobs for the wire."""
    return JobList(tuple(job(view, base) for view in page.items), page.next)


def question(view: AttentionOf) -> Question:
    """An open question for the wire."""
    shape = None if view.input is None else dict(view.input)
    actions = tuple(Offered(action, LABELS[action], shape if action == "answer" else None) for action in view.actions)
    return Question(view.id, view.code, view.message, view.label, view.until, actions)


def task_list(views: tuple[TaskView, ...]) -> TaskList:
    """Tasks for the wire."""
    return TaskList(
        tuple(
            Task(
                no=t.no,
                label=t.label,
                state=t.state,
                required=t.required,
                usable=t.usable,
                attempt=t.attempt,
                max_attempts=t.max_attempts,
                progress=t.progress,
                code=t.code,
                ref=t.ref,
                next_attempt_at=t.next_attempt_at,
                parked=t.parked,
            )
            for t in views
        )
    )


def recovery(view: JobView, past: Recovery, base: str) -> RecoveryView:
    """A job's past and what is next, for the wire."""
    return RecoveryView(
        job=job(view, base),
        stored=past.stored,
        steps=tuple(Steps(label, stored) for label, stored in past.steps),
        attempts=tuple(Attempt(a.label, a.attempt, a.fence, a.started_at, a.ended_at, a.code) for a in past.attempts),
        effects=tuple(Effect(e.label, e.name, e.state, e.begun_at) for e in past.effects),
        attention=tuple(question(q) for q in past.attention),
        next_attempt_at=past.next_attempt_at,
        correlation_id=past.correlation_id,
    )
