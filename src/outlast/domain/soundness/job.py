"""A job: that all of it is there, that its counters and states follow from its tasks, and what goes with its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from outlast.domain.soundness.rows import JobRows
from outlast.domain.soundness.rule import Fault, given, rule, word
from outlast.domain.states import FINAL_JOBS, FINAL_TASKS, Counters, StoredTask, outcome_of, stored_job_state
from outlast.domain.states import count as counted

_CANCELLED = ("user", "abandoned", "superseded")


@rule("A5", "plan", "The tasks of a job are numbered from 0 up to its total, without a gap.")
def plan(rows: JobRows) -> Iterator[Fault]:
    """The places in the plan."""
    total = rows.job.total
    missing = [no for no in range(min(total, len(rows.tasks) + 1)) if no not in rows.tasks]
    if len(rows.tasks) != total or missing:
        yield Fault(f"total is {total}, with {len(rows.tasks)} tasks", "a task for each number below the total")


@rule("A5", "labels", "No two tasks of a job have one label.")
def labels(rows: JobRows) -> Iterator[Fault]:
    """The labels of the plan."""
    seen: set[str] = set()
    for no, task in sorted(rows.tasks.items()):
        if task.label in seen:
            yield Fault("its label is that of an earlier task", "a label of its own", no)
        seen.add(task.label)


@rule("A5", "input", "A job has its input.")
def job_input(rows: JobRows) -> Iterator[Fault]:
    """The input row."""
    if rows.inputs != 1:
        yield Fault(f"{rows.inputs} input rows", "one")


@rule("A5", "required", "A job has a required task, and what makes it usable is required.")
def required(rows: JobRows) -> Iterator[Fault]:
    """What a plan needs."""
    if rows.tasks and not any(task.required for task in rows.tasks.values()):
        yield Fault("every task is optional", "a required one")
    for no, task in rows.tasks.items():
        if task.usable and not task.required:
            yield Fault("it makes the job usable, and is optional", "required", no)


@rule("A5", "marked", "A job says whether one of its tasks makes it usable.")
def marked(rows: JobRows) -> Iterator[Fault]:
    """The mark of the plan."""
    expected = any(task.usable for task in rows.tasks.values())
    if bool(rows.job.usable_marked) != expected:
        yield Fault(f"usable_marked is {bool(rows.job.usable_marked)}".lower(), f"{expected} by its tasks".lower())


def _count(rows: JobRows) -> Counters:
    return counted((cast("StoredTask", task.state), bool(task.required)) for task in rows.tasks.values())


@rule("D6", "counters", "A job's counters are those of its tasks.")
def counters(rows: JobRows) -> Iterator[Fault]:
    """All but the total, which is the plan's."""
    expected = _count(rows)
    for name in ("open", "required_open", "attention", "problems"):
        stored, recounted = getattr(rows.job, name), getattr(expected, name)
        if stored != recounted:
            yield Fault(f"{name} is {stored}", f"{recounted} by its tasks")


@rule("D6", "state", "A job's state follows from its cancel and its tasks.")
def state(rows: JobRows) -> Iterator[Fault]:
    """The one function of the counters, on those that the tasks give."""
    found = _count(rows)
    expected = stored_job_state(cancelled=rows.job.cancelled_at is not None, open=found.open, attention=found.attention)
    if rows.job.state != expected:
        yield Fault(f"state is {word(rows.job.state)}", f"{expected} by its rows")


@rule("D7", "end", "What is final says when it ended and when it is purged, and nothing else does.")
def end(rows: JobRows) -> Iterator[Fault]:
    """The times of the end."""
    final = rows.job.state in FINAL_JOBS
    for name in ("finished_at", "purge_at"):
        value = getattr(rows.job, name)
        if (value is not None) != final:
            yield Fault(f"{name} is {given(value)}, the job is {word(rows.job.state)}", "set" if final else "not set")


@rule("D7", "outcome", "A final job has the outcome that its state and its problems give; one that is not final has none.")
def outcome(rows: JobRows) -> Iterator[Fault]:
    """How it ended."""
    allowed: tuple[str | None, ...] = (None,)
    if rows.job.state == "completed":
        allowed = (outcome_of(problems=_count(rows).problems),)
    elif rows.job.state == "cancelled":
        allowed = _CANCELLED
    if rows.job.outcome not in allowed:
        yield Fault(f"outcome is {word(rows.job.outcome)}", " or ".join(word(one) for one in allowed))


@rule("D7", "cancel", "A cancelled job says who cancelled it, and no other job does.")
def cancelled_by(rows: JobRows) -> Iterator[Fault]:
    """When and by whom go together."""
    if (rows.job.cancelled_at is None) != (rows.job.cancelled_by is None):
        yield Fault(f"cancelled_by is {given(rows.job.cancelled_by)}", given(rows.job.cancelled_at))


@rule("E1", "tasks", "With a cancel all tasks of a job are final, and a task is cancelled with its job only.")
def cancelled(rows: JobRows) -> Iterator[Fault]:
    """What a cancel reaches."""
    gone = rows.job.cancelled_at is not None
    for no, task in sorted(rows.tasks.items()):
        if gone and task.state not in FINAL_TASKS:
            yield Fault(f"it is {word(task.state)}, and its job is cancelled", "final", no)
        if not gone and task.state == "cancelled":
            yield Fault("it is cancelled, and its job is not", "any other state", no)


@rule("D11", "required", "Required work ends completed, or cancelled with its job.")
def required_ends(rows: JobRows) -> Iterator[Fault]:
    """What only optional work may do."""
    for no, task in sorted(rows.tasks.items()):
        if task.required and task.state in ("failed", "skipped"):
            yield Fault(f"it is required, and {task.state}", "completed, cancelled or not final", no)


@rule("D8", "usable", "A job is usable from the completion of a task that is marked so (with none, of all required ones) on, for ever.")
def usable(rows: JobRows) -> Iterator[Fault]:
    """When."""
    decisive = [t for t in rows.tasks.values() if (t.usable if rows.job.usable_marked else t.required)]
    reached = (any if rows.job.usable_marked else all)(task.state == "completed" for task in decisive)
    if decisive and (rows.job.usable_at is not None) != reached:
        yield Fault(f"usable_at is {given(rows.job.usable_at)}", "set" if reached else "not set")


@rule("D8", "ref", "What can be opened is the result of a task that makes the job usable; with none marked nothing is named.")
def usable_ref(rows: JobRows) -> Iterator[Fault]:
    """Which."""
    allowed: set[str | None] = {None}
    if rows.job.usable_at is not None and rows.job.usable_marked:
        allowed = {rows.outputs[no].ref for no, task in rows.tasks.items() if task.usable and no in rows.outputs}
    if allowed and rows.job.usable_ref not in allowed:
        yield Fault(f"usable_ref is {given(rows.job.usable_ref)}", "the reference of a result that makes the job usable, or none")


@rule("D10", "version", "A job's version counts what changed its row: at least once if anything did, at most once for each change.")
def version(rows: JobRows) -> Iterator[Fault]:
    """As far as rows tell: one program may bring several changes, and takeovers and attachments leave no row each."""
    changes = sum(task.state in ("completed", "failed", "skipped") for task in rows.tasks.values())
    changes += sum(1 + (question.resolved_at is not None) for asked in rows.questions.values() for question in asked)
    if rows.job.state == "cancelled":
        changes += 2  # the cancel itself, and the end of `stopping`
    lowest = 2 if changes else 1
    if rows.job.version < lowest:
        yield Fault(f"version is {rows.job.version}", f"{lowest} or more, for it was changed" if changes else "1 or more")
    elif rows.job.version > changes + 1 and rows.job.target_ref is None:
        yield Fault(f"version is {rows.job.version}", f"at most {changes + 1}, by what changed")


@rule("A3", "unique", "A job that has ended has no unique key; one that has a key says where it is unique.")
def unique(rows: JobRows) -> Iterator[Fault]:
    """That the key is free."""
    if rows.job.active_key is None:
        return
    if rows.job.state in FINAL_JOBS:
        yield Fault(f"it has its unique key still, and is {rows.job.state}", "free for the next")
    if rows.job.active_scope is None:
        yield Fault("active_scope is not set", "set, for it has a unique key")


@rule("J10", "root", "A job that repeats none is the root of its own effects.")
def root(rows: JobRows) -> Iterator[Fault]:
    """A rerun may carry on another's."""
    if rows.job.rerun_of is None and rows.job.effect_root != rows.job.id:
        yield Fault("effect_root is another job", "itself, for it repeats none")


@rule("E6", "target", "Only a job with a target has a version of it, an attachment, a takeover or parked results.")
def target(rows: JobRows) -> Iterator[Fault]:
    """What goes with a target."""
    if rows.job.target_ref is not None:
        if rows.job.target_version is None:
            yield Fault("target_version is not set", "set, for it has a target")
        return
    for name in ("target_version", "attached_at", "taken_over_at"):
        if getattr(rows.job, name) is not None:
            yield Fault(f"{name} is set", "not set, for it has no target")
    for no, output in sorted(rows.outputs.items()):
        if output.parked:
            yield Fault("its result is parked", "not parked, for its job has no target", no)


RULES = (
    plan,
    labels,
    job_input,
    required,
    marked,
    counters,
    state,
    end,
    outcome,
    cancelled_by,
    cancelled,
    required_ends,
    usable,
    usable_ref,
    version,
    unique,
    root,
    target,
)
