"""What Django's Tasks framework is told about a job: its four states, its times, and what went wrong, as far as that may be shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, cast

from outlast.domain.access import Scope
from outlast.domain.failures import Failure, Stopped
from outlast.domain.ids import moment_of
from outlast.domain.model import State
from outlast.domain.values import decode_stored
from outlast.domain.work import AttemptRow, JobRow, OutputRow, RecoveryRows, RerunSource
from outlast.integrations.django import framework
from outlast.integrations.django.running import NAMES, TaskCall, as_enqueued, result_of
from outlast.store.program import Access, Program, operation
from outlast.store.programs import status

_STATES: Final[dict[State, str]] = {
    "queued": "READY",
    "retrying": "READY",
    "running": "RUNNING",
    "needs_attention": "FAILED",
    "cancelled": "FAILED",
    "completed": "SUCCESSFUL",
}
_PLACE: Final = re.compile(r'^  File "[^"\n]*", line \d+, in [\w.<>]+$', re.MULTILINE)
_CLASS: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_WRAPPED: Final = ("outlast.integrations.django.running.Raised", "outlast.integrations.django.running.Unstorable")


@operation(Access.READ)
def found(job_id: str) -> Program[tuple[JobRow, RecoveryRows, RerunSource, OutputRow | None] | None]:
    """All that a result tells, of a job of the framework's; None for any other. The host's own code asks, so no principal is compared."""
    rows = yield from status.job_owner(job_id).start()
    if rows is None:
        return None
    scope = Scope(*rows)
    story = yield from status.recovery(scope, job_id).start()
    source = yield from status.rerun_source(scope, job_id).start()
    _, outputs = yield from status.outputs(scope, job_id, task=None, no=0).start()
    if story is None or source is None or story[0].kind not in NAMES:
        return None
    return story[0], story[1], source, outputs[0] if outputs else None


def shown(job: JobRow, past: RecoveryRows, source: RerunSource, output: OutputRow | None) -> framework.ResultLike:
    """The framework's result; its TaskResultDoesNotExist where the task is not there any more."""
    call = cast("TaskCall", decode_stored(source.input, TaskCall, what="input"))
    try:
        task = as_enqueued(call)
    except (ImportError, AttributeError) as error:
        raise framework.missing("The task of that result is not there any more.") from error
    state = _STATES[job.state]
    attempts = past.attempts
    row = past.tasks[0]
    workers = [attempt.worker or "" for attempt in attempts]
    starts = [attempt.started_at_ms for attempt in attempts if attempt.started_at_ms is not None]
    if state == "RUNNING" and row.worker:
        workers.append(row.worker)
    finished = job.finished_at_ms if job.finished_at_ms is not None else _last(attempts) if state == "FAILED" else None
    errors = [_error(attempt) for attempt in attempts if attempt.code is not None]
    if job.state == "cancelled":
        errors.append(_error_of(Stopped, "cancelled"))
    result = result_of(
        task,
        call,
        job.id,
        status=state,
        enqueued_at=moment_of(job.id),  # as `enqueue` said it
        started_at=_moment(min(starts, default=None)),
        last_attempted_at=_moment(max(starts, default=None)),
        finished_at=_moment(finished),
        errors=errors,
        worker_ids=workers,
    )
    if state == "SUCCESSFUL" and output is not None and output.body is not None:
        object.__setattr__(result, "_return_value", decode_stored(output.body, object, what="result"))
    return result


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _last(attempts: tuple[AttemptRow, ...]) -> int | None:
    return max((attempt.ended_at_ms for attempt in attempts if attempt.ended_at_ms is not None), default=None)


def _error(attempt: AttemptRow) -> Any:
    """The class and places of an exception, and the code; never its text, nor a line of source: both may hold what is secret."""
    detail = attempt.detail or ""
    last = detail.rstrip().rpartition("\n")[2]
    path, _, rest = last.partition(": ")
    if path in _WRAPPED:
        path = rest
    elif not path.startswith("outlast."):  # a failure of the task's own class may say of itself what it likes; or nothing was raised
        path = ""
    if not _CLASS.fullmatch(path):  # of a class inside a function, say, which cannot be imported
        path = framework.path_of(Failure)
    path = path if "." in path else f"builtins.{path}"
    places = "".join(f"{line}\n" for line in _PLACE.findall(detail))
    text = f"{places}{path} ({attempt.code})\n"
    return framework.part("base").TaskError(exception_class_path=path, traceback=text)


def _error_of(kind: type[BaseException], code: str) -> Any:
    return framework.part("base").TaskError(exception_class_path=framework.path_of(kind), traceback=f"{code}\n")
