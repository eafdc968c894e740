"""The rows that rules look at, of one job together, or of one effect. No payload is among them.

The fields are columns of the table, in the order in which the statements of `store/sql/verify.sql` select them. Times are milliseconds
of the store's clock, flags 0 or 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

Flag: TypeAlias = int | None
Time: TypeAlias = int | None


class JobRow(NamedTuple):
    """A job."""

    tenant: str
    id: str
    state: str
    outcome: str | None
    version: int
    total: int
    open: int
    required_open: int
    attention: int
    problems: int
    usable_marked: Flag
    usable_at: Time
    usable_ref: str | None
    finished_at: Time
    purge_at: Time
    cancelled_at: Time
    cancelled_by: str | None
    rerun_of: str | None
    effect_root: str
    active_scope: str | None
    active_key: str | None
    target_ref: str | None
    target_version: str | None
    attached_at: Time
    taken_over_at: Time


class TaskRow(NamedTuple):
    """A task of the plan."""

    no: int
    label: str
    handler: str
    queue: str
    priority: int
    required: Flag
    usable: Flag
    state: str
    deps_left: int
    fence: int
    spent: int
    max_attempts: int
    deadline_ms: int
    started_at: Time
    finished_at: Time
    worker: str | None
    slot_key: str | None
    slot_limit: int | None


class EntryRow(NamedTuple):
    """What stands in the queue for a task."""

    no: int
    queue: str
    priority: int
    handler: str
    deadline_ms: int
    ready_at: Time
    due_at: Time
    fence: int
    spent: int
    first_failed_at: Time
    holder: str | None
    claimed_at: Time
    lease_until: Time
    deadline_at: Time
    revoked: Flag
    slot_key: str | None
    slot_limit: int | None


class SlotRow(NamedTuple):
    """A slot of a concurrency key that names a claim of a task; `no` and `fence` are there, unless somebody changed it by hand."""

    no: int | None
    fence: int | None
    key: str
    n: int


class EdgeRow(NamedTuple):
    """That a task waits for another."""

    parent: int
    child: int
    soft: Flag


class OutputRow(NamedTuple):
    """That a task has a result, without the result."""

    no: int
    ref: str | None
    parked: Flag


class AttemptRow(NamedTuple):
    """A claim that failed, was lost, or asked."""

    no: int
    fence: int
    number: int
    worker: str
    code: str


class StepsRow(NamedTuple):
    """The steps of a task: how many, and the lowest and highest fence that stored one."""

    no: int
    stored: int
    lowest: int
    highest: int


class QuestionRow(NamedTuple):
    """A question to the owner."""

    id: str
    no: int
    code: str
    actions: str
    resolved_at: Time
    action: str | None
    actor: str | None


class EffectRow(NamedTuple):
    """An effect, with what its job and task say about its place; `job_root` is None where the job is gone."""

    tenant: str
    effect_root: str
    label: str
    name: str
    input_hash: str
    job_id: str
    no: int
    fence: int
    provider_key: str
    state: str
    has_outcome: Flag
    settled_at: Time
    job_root: str | None
    task_label: str | None
    last_fence: int | None


@dataclass(slots=True)
class JobRows:
    """All that a store holds of one job."""

    job: JobRow
    inputs: int = 0
    tasks: dict[int, TaskRow] = field(default_factory=dict[int, TaskRow])
    entries: dict[int, EntryRow] = field(default_factory=dict[int, EntryRow])
    slots: list[SlotRow] = field(default_factory=list[SlotRow])
    edges: list[EdgeRow] = field(default_factory=list[EdgeRow])
    outputs: dict[int, OutputRow] = field(default_factory=dict[int, OutputRow])
    attempts: defaultdict[int, list[AttemptRow]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[int, StepsRow] = field(default_factory=dict[int, StepsRow])
    questions: defaultdict[int, list[QuestionRow]] = field(default_factory=lambda: defaultdict(list))

    def last_fence(self, task: TaskRow) -> int:
        """The fence of a task's last claim."""
        entry = self.entries.get(task.no)
        return task.fence if entry is None else entry.fence

    def spent(self, task: TaskRow) -> int:
        """The attempts that a task has consumed since it was last taken up."""
        entry = self.entries.get(task.no)
        return task.spent if entry is None else entry.spent

    def edges_of_plan(self) -> Iterator[tuple[EdgeRow, TaskRow, TaskRow]]:
        """The edges whose parent and child are there."""
        for edge in self.edges:
            parent, child = self.tasks.get(edge.parent), self.tasks.get(edge.child)
            if parent is not None and child is not None:
                yield edge, parent, child
