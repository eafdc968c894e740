"""The state machines of task and job, as tables, and the few functions that every part uses.

`Counters` are what a job row keeps of its tasks: each is the number of tasks for which its indicator holds, so that a
transition changes it by indicator(new) - indicator(old). The job's stored state is one function of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from outlast.domain.model import Outcome, State, TaskState

StoredTask = Literal["blocked", "open", "needs_attention", "completed", "skipped", "failed", "cancelled"]
StoredJob = Literal["open", "needs_attention", "completed", "cancelled"]

FINAL_TASKS: frozenset[StoredTask] = frozenset({"completed", "skipped", "failed", "cancelled"})
FINAL_JOBS: frozenset[StoredJob] = frozenset({"completed", "cancelled"})

# The shown states between which an entry moves, and what admits, ends or revives a task.
Phase = Literal[
    "none",
    "blocked",
    "queued",
    "retrying",
    "running",
    "needs_attention",
    "completed",
    "skipped",
    "failed",
    "cancelled",
    "cancelled_held",
]
Event = Literal[
    "admit", "unblock", "parent_failed", "wake", "claim", "renew", "finish", "fail", "give_up", "ask", "snooze",
    "hand_back", "lease_ended", "cancel", "stopped", "retry", "answer", "skip", "window_over", "dismiss",
]  # fmt: skip
Spent = Literal["zero", "same", "plus_one", "reset"]
Fence = Literal["zero", "same", "plus_one"]


class TaskTransition(NamedTuple):
    """One row of the task table. `job_locked`: it takes the job row first and may write task and job."""

    no: str
    sources: frozenset[Phase]
    event: Event
    target: Phase
    job_locked: bool = False
    required: bool | None = None  # None: either
    spent: Spent = "same"
    fence: Fence = "same"
    raises_attention: bool = False
    attempt_row: bool = False


def _phases(*names: Phase) -> frozenset[Phase]:
    return frozenset(names)


_WAITING = _phases("queued", "retrying")
_RUNNING = _phases("running")
_UNFINISHED = _phases("blocked", "queued", "retrying", "running", "needs_attention")
_ASKING = _phases("needs_attention")

TASK_TRANSITIONS: tuple[TaskTransition, ...] = (
    TaskTransition("T1", _phases("none"), "admit", "queued", job_locked=True, spent="zero", fence="zero"),
    TaskTransition("T1b", _phases("none"), "admit", "blocked", job_locked=True, spent="zero", fence="zero"),
    TaskTransition("T2", _phases("blocked"), "unblock", "queued", job_locked=True),
    TaskTransition("T3", _phases("blocked"), "parent_failed", "skipped", job_locked=True, required=False),
    TaskTransition("T4", _phases("queued"), "wake", "queued"),
    TaskTransition("T4b", _phases("retrying"), "wake", "retrying"),
    TaskTransition("T5", _WAITING, "claim", "running", fence="plus_one"),
    TaskTransition("T6", _RUNNING, "renew", "running"),
    TaskTransition("T7", _RUNNING, "finish", "completed", job_locked=True),
    TaskTransition("T8", _RUNNING, "fail", "retrying", spent="plus_one", attempt_row=True),
    TaskTransition(
        "T9",
        _RUNNING,
        "give_up",
        "needs_attention",
        job_locked=True,
        required=True,
        spent="plus_one",
        raises_attention=True,
        attempt_row=True,
    ),
    TaskTransition("T10", _RUNNING, "give_up", "failed", job_locked=True, required=False, spent="plus_one", attempt_row=True),
    TaskTransition("T11", _RUNNING, "ask", "needs_attention", job_locked=True, raises_attention=True, attempt_row=True),
    TaskTransition("T12", _RUNNING, "snooze", "queued"),
    TaskTransition("T12b", _RUNNING, "snooze", "retrying"),
    TaskTransition("T13", _RUNNING, "hand_back", "queued"),
    TaskTransition("T13b", _RUNNING, "hand_back", "retrying"),
    TaskTransition("T14", _RUNNING, "lease_ended", "retrying", spent="plus_one", attempt_row=True),
    TaskTransition(
        "T14b",
        _RUNNING,
        "lease_ended",
        "needs_attention",
        job_locked=True,
        required=True,
        spent="plus_one",
        raises_attention=True,
        attempt_row=True,
    ),
    TaskTransition("T14c", _RUNNING, "lease_ended", "failed", job_locked=True, required=False, spent="plus_one", attempt_row=True),
    TaskTransition("T15", _UNFINISHED - _RUNNING, "cancel", "cancelled", job_locked=True),
    TaskTransition("T15b", _RUNNING, "cancel", "cancelled_held", job_locked=True),
    TaskTransition("T16", _phases("cancelled_held"), "stopped", "cancelled", job_locked=True),
    TaskTransition("T17", _ASKING, "retry", "queued", job_locked=True, spent="reset"),
    TaskTransition("T18", _ASKING, "answer", "queued", job_locked=True, spent="reset"),
    TaskTransition("T19", _ASKING, "skip", "skipped", job_locked=True, required=False),
    TaskTransition("T19b", _ASKING, "window_over", "skipped", job_locked=True, required=False),
    TaskTransition("T20", _ASKING, "dismiss", "cancelled", job_locked=True),
    TaskTransition("T20b", _ASKING, "window_over", "cancelled", job_locked=True, required=True),
)
"""Every transition of a task; what is not here is refused. Rows with a letter are the further targets of one event."""


def transitions(source: Phase, event: Event, *, required: bool) -> tuple[TaskTransition, ...]:
    """The rows that this event may take from this phase; empty: it is refused."""
    return tuple(t for t in TASK_TRANSITIONS if source in t.sources and t.event == event and t.required in (None, required))


class JobTransition(NamedTuple):
    """One row of the job table: stored state, event, whether the job row is written."""

    no: str
    sources: frozenset[StoredJob]
    event: str
    target: StoredJob | Literal["by_counters", "unchanged", "deleted"]
    writes: bool


_LIVE: frozenset[StoredJob] = frozenset({"open", "needs_attention"})

JOB_TRANSITIONS: tuple[JobTransition, ...] = (
    JobTransition("J1", frozenset(), "admit", "open", writes=True),
    JobTransition("-", _LIVE, "entry_moves", "unchanged", writes=False),
    JobTransition("J2", _LIVE, "finish", "by_counters", writes=True),
    JobTransition("J3", _LIVE, "give_up", "by_counters", writes=True),
    JobTransition("J4", _LIVE, "decide", "by_counters", writes=True),
    JobTransition("J5", _LIVE, "cancel", "cancelled", writes=True),
    JobTransition("J7", frozenset({"needs_attention"}), "abandon", "cancelled", writes=True),
    JobTransition("J8", frozenset({"cancelled"}), "stopped", "unchanged", writes=True),
    JobTransition("J9", FINAL_JOBS, "act", "unchanged", writes=False),
    JobTransition("J10", FINAL_JOBS, "rerun", "unchanged", writes=False),
    JobTransition("J11", FINAL_JOBS, "purge", "deleted", writes=True),
)


class Counters(NamedTuple):
    """Sums of the indicators over a job's tasks."""

    total: int = 0
    open: int = 0
    required_open: int = 0
    attention: int = 0
    problems: int = 0

    def __add__(self, other: tuple[object, ...]) -> Counters:
        if not isinstance(other, Counters):
            return NotImplemented
        return Counters(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Counters) -> Counters:
        return Counters(*(a - b for a, b in zip(self, other, strict=True)))


def indicators(state: StoredTask, *, required: bool) -> Counters:
    """What one task in this state contributes to its job's counters."""
    unfinished = state not in FINAL_TASKS
    return Counters(
        total=1,
        open=int(unfinished),
        required_open=int(required and unfinished),
        attention=int(state == "needs_attention"),
        problems=int(not required and state in ("failed", "skipped")),
    )


def change(old: StoredTask, new: StoredTask, *, required: bool) -> Counters:
    """By how much a task's transition changes its job's counters."""
    return indicators(new, required=required) - indicators(old, required=required)


def count(tasks: Iterable[tuple[StoredTask, bool]]) -> Counters:
    """The counters of a whole job, from (state, required) of its tasks."""
    total = Counters()
    for state, required in tasks:
        total += indicators(state, required=required)
    return total


def stored_job_state(*, cancelled: bool, open: int, attention: int) -> StoredJob:
    """The job's stored state, on the new counters; the SQL fragment `{job_state}` is the same function."""
    if cancelled:
        return "cancelled"
    if open == 0:
        return "completed"
    if attention > 0:
        return "needs_attention"
    return "open"


def outcome_of(*, problems: int) -> Outcome:
    """How a job that completed ended; a cancelled one has the cause of its cancel instead."""
    return "succeeded" if problems == 0 else "succeeded_with_problems"


def shown_job_state(stored: StoredJob, *, held: bool, retry_waiting: bool, started: bool) -> State:
    """The state a person sees, from the stored one and what stands in the queue.

    held: some entry is held; retry_waiting: some entry waits with attempts consumed; started: some task ended or was ever claimed.
    """
    if stored != "open":
        return stored
    if held:
        return "running"
    if retry_waiting:
        return "retrying"
    return "running" if started else "queued"


def shown_task_state(stored: StoredTask, *, held: bool, spent: int) -> TaskState:
    """The state of a task as a person sees it; a cancelled task whose holder has not stopped yet is cancelled."""
    if stored != "open":
        return stored
    if held:
        return "running"
    return "retrying" if spent > 0 else "queued"


def shown_attempt(stored: StoredTask, *, held: bool, spent: int) -> int:
    """The number of the attempt that runs or completed the task, else of the last one that was consumed."""
    return spent + 1 if held or stored == "completed" else spent
