"""What passes between worker or client and the store's programs: frozen values in and out, times and durations in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from outlast.domain.access import Scope
from outlast.domain.errors import OutlastError
from outlast.domain.kinds import TaskSpec
from outlast.domain.limits import Place
from outlast.domain.model import Action, Attach, Outcome, State, TargetRef, TaskState, UniquePolicy
from outlast.domain.states import StoredJob


@dataclass(frozen=True, slots=True)
class ActiveKey:
    """A unique key as it is stored: one active job of the tenant has this key in this scope. `policy`: what if there is one."""

    scope: str
    key: str
    policy: UniquePolicy
    retention_ms: int  # how long a job that is replaced stays


@dataclass(frozen=True, slots=True)
class Admission:
    """A job to admit. `key` None: the job's id, made before the insert, is what a repeat is recognised by."""

    tenant: str
    owner: str
    key: str | None
    fingerprint: str
    job_id: str
    kind: str
    schema_version: int
    label: str
    input: str
    caller: str
    tasks: tuple[TaskSpec, ...]
    not_before_ms: int | None
    rerun_of: str | None
    effect_root: str
    correlation_id: str
    traceparent: str | None
    unique: ActiveKey | None = None
    target: TargetRef | None = None
    quota: int | None = None  # how many open jobs of the kind its owner may have, this one included

    @property
    def alone(self) -> bool:
        """Whether it goes by itself, in a transaction of its own: it may have to wait for what others do with the same key or quota."""
        return self.unique is not None or self.quota is not None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of a job that was purged."""

    job_id: str
    state: Literal["completed", "cancelled"]
    outcome: Outcome
    finished_at_ms: int
    purged_at_ms: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """The job that a submission stands for.

    `replayed`: an earlier submission made it. `replaced`: the active job that it cancelled. `tombstone`: all that is left of it.
    """

    job_id: str
    replayed: bool
    replaced: str | None = None
    tombstone: Tombstone | None = None


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The key belongs to another request; nothing was written."""


@dataclass(frozen=True, slots=True)
class ActiveTaken:
    """This active job has the unique key, and the policy or its owner forbids what would follow; nothing was written."""

    job_id: str


class KeyHeld(OutlastError):
    """One of several jobs is refused, as by ActiveTaken, and with it all: rolls the transaction back. `place`: which one."""

    code = "unique_active"

    def __init__(self, place: int, job_id: str) -> None:
        super().__init__(f"Submission {place} has a unique key that another active job has; nothing was written.")
        self.place = place
        self.job_id = job_id


@dataclass(frozen=True, slots=True)
class TaskRef:
    """A claim of a task: which one, and the fence and holder that own its result."""

    tenant: str
    job_id: str
    no: int
    fence: int
    holder: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed task with all that an attempt needs."""

    ref: TaskRef
    spent: int
    handler: str
    queue: str
    deadline_ms: int
    deadline_at_ms: int
    label: str
    item: str | None
    input: str
    caller: str
    owner: str
    correlation_id: str
    slot_key: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn over the concurrency keys claimed, where the next one begins, and whether this one came to the end of the keys.

    `resume_ms`: when the first of the keys that rest has rested.
    """

    claimed: tuple[Claimed, ...]
    last: Place
    ended: bool
    resume_ms: int | None


@dataclass(frozen=True, slots=True)
class Finished:
    """A task's result, to be stored by its holder."""

    ref: TaskRef
    worker: str
    body: str
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that failed. Permanent: no retry can help. `detail` is for operators only."""

    ref: TaskRef
    worker: str
    code: str
    message: str
    detail: str | None = None
    permanent: bool = False
    retry_after_ms: int | None = None
    pause_ms: int | None = None  # how long its concurrency key rests


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to the owner, which ends the attempt without using it. `input_schema`: what an answer must look like, as JSON text."""

    ref: TaskRef
    worker: str
    code: str
    message: str
    actions: tuple[Action, ...]
    detail: str | None = None
    input_schema: str | None = None
    effect: tuple[str, str] | None = None  # name and input hash of the one that it is about


class Verdict(Enum):
    """What became of a holder's write."""

    ACCEPTED = "accepted"
    CANCELLED = "cancelled"  # the job was cancelled: stop, then tell the store
    STALE = "stale"  # another claim, the sweep or the end of the lease came first: drop the result
    BUSY = "busy"  # renewals only: another holds the row for a moment


@dataclass(frozen=True, slots=True)
class Settled:
    """A holder's verdict, and whether runnable tasks came of it."""

    verdict: Verdict
    opened: int = 0
    retry_in_ms: int | None = None
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class Renewal:
    """A lease to be prolonged, with the progress that rides along."""

    ref: TaskRef
    progress: str | None = None


@dataclass(frozen=True, slots=True)
class Woken:
    """What became runnable, in which queues, and in how many milliseconds the next one falls due."""

    count: int
    queues: tuple[str, ...]
    next_in_ms: int | None


@dataclass(frozen=True, slots=True)
class LostLease:
    """A candidate of the sweep: an entry whose lease has ended."""

    tenant: str
    job_id: str
    no: int
    fence: int
    revoked: bool
    correlation_id: str = ""


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A candidate of the sweep: a question whose window is over."""

    tenant: str
    job_id: str
    id: str
    correlation_id: str = ""


class Swept(Enum):
    """What the sweep did with one candidate."""

    RETRIED = "retried"
    GAVE_UP = "gave_up"
    STOPPED = "stopped"
    SKIPPED = "skipped"  # optional work whose question nobody answered
    ABANDONED = "abandoned"
    PASSED = "passed"  # somebody else moved it, or has it just now


class Control(Enum):
    """What became of a cancel or a decision."""

    DONE = "done"
    REPEATED = "repeated"  # it stood so already, by this same request
    NOT_FOUND = "not_found"
    STALE_VERSION = "stale_version"
    ALREADY_COMPLETED = "already_completed"
    SUPERSEDED = "superseded"
    NOT_OFFERED = "not_offered"
    OWNERS_ALONE = "owners_alone"  # a call of unknown outcome is repeated by the word of the owner, nobody else's
    NO_TARGET = "no_target"
    MISANSWERED = "misanswered"  # not what a question about an effect is answered with


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored, with what its shown state is derived from."""

    tenant: str
    id: str
    owner: str
    kind: str
    schema_version: int
    label: str
    stored: StoredJob
    state: State
    outcome: str | None
    version: int
    stopping: bool
    usable_at_ms: int | None
    usable_ref: str | None
    total: int
    open: int
    current_label: str | None
    attention_count: int
    attention: AttentionRow | None
    accepted_at_ms: int
    finished_at_ms: int | None
    cancelled_by: str | None
    rerun_of: str | None
    correlation_id: str
    target: TargetRef | None = None
    taken_over_at_ms: int | None = None
    attach: Attach = "none"


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """An open question. `input_schema`: what an answer must look like, as JSON text."""

    id: str
    label: str
    code: str
    message: str
    actions: tuple[Action, ...]
    until_ms: int
    input_schema: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs a list wants. `state`: a shown state, or active (not final)."""

    state: str | None = None
    kind: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """What a watcher reads at once: jobs by id, and ids with versions of each owner's newest jobs."""

    jobs: dict[str, JobRow]
    newest: dict[Scope, list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class OutputRow:
    """A task's stored output; `body` None while there is none."""

    no: int
    label: str
    handler: str
    body: str | None


@dataclass(frozen=True, slots=True)
class ParentRow:
    """A parent of a task, with its output where there is one."""

    no: int
    label: str
    handler: str
    state: str
    body: str | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt that ended, by failure, loss, question, or completion (`code` None)."""

    no: int
    label: str
    number: int
    fence: int
    worker: str | None
    started_at_ms: int | None
    ended_at_ms: int | None
    code: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A call to the outside that may have happened."""

    label: str
    name: str
    state: Literal["intended", "confirmed", "refused", "unknown"]
    begun_at_ms: int


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as it stands for one handler: `ready` and `held` entries, those `waiting` for a time, the age of the oldest ready one."""

    queue: str
    handler: str
    ready: int
    held: int
    waiting: int
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue that is paused: since when, by whom, and why."""

    queue: str
    at_ms: int
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Asking:
    """Which open questions an operator goes through: of a tenant, a kind, with a code (None: of any), raised until then."""

    tenant: str | None
    kind: str | None
    code: str | None
    until_ms: int


@dataclass(frozen=True, slots=True)
class UnfinishedRow:
    """How many tasks of a handler have not ended, and the age of the oldest job that has one."""

    handler: str
    count: int
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class RerunSource:
    """A finished job, as a rerun copies it."""

    state: StoredJob
    outcome: str | None
    kind: str
    schema_version: int
    owner: str
    effect_root: str
    input: str
    caller: str
    target_ref: str | None = None
    target_version: str | None = None


def ordered(refs: Sequence[TaskRef]) -> list[TaskRef]:
    """In key order, so that batches that meet lock rows in the same order."""
    return sorted(refs, key=lambda r: (r.tenant, r.job_id, r.no))


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as it is shown, with its fence and worker."""

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
    next_attempt_at_ms: int | None
    fence: int
    worker: str | None
    parked: bool = False


@dataclass(frozen=True, slots=True)
class RecoveryRows:
    """A job's attempts in time order, open questions, stored steps by label, tasks, and effects that may have happened."""

    attempts: tuple[AttemptRow, ...]
    questions: tuple[AttentionRow, ...]
    steps: tuple[tuple[str, int], ...]
    tasks: tuple[TaskRow, ...]
    effects: tuple[EffectRow, ...] = ()


@dataclass(frozen=True, slots=True)
class DueJob:
    """A candidate of the purge. `tasks`: how many it has, which says how much goes with it."""

    tenant: str
    id: str
    tasks: int
    finished_at_ms: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a walk over the jobs found, and the id after which it goes on; None at the end."""

    due: tuple[DueJob, ...]
    last: str | None


@dataclass(frozen=True, slots=True)
class Erased:
    """What a step of a person's deletion did: jobs deleted, jobs that were open, and jobs that stand until their holder has stopped."""

    jobs: int
    cancelled: int
    stopping: int
