"""What callers pass and see: frozen values. Times are aware datetimes in UTC, durations seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Generic, Literal, TypeVar, get_args

from outlast.domain.errors import Invalid
from outlast.domain.payload import check_key, check_names, check_text

State = Literal["queued", "running", "retrying", "needs_attention", "completed", "cancelled"]
TaskState = Literal["blocked", "queued", "running", "retrying", "needs_attention", "completed", "skipped", "failed", "cancelled"]
Outcome = Literal["succeeded", "succeeded_with_problems", "user", "abandoned", "superseded"]
Action = Literal["retry", "answer", "skip", "dismiss"]
Attach = Literal["none", "attached", "parked"]
UniquePolicy = Literal["existing", "reject", "replace"]

Out_co = TypeVar("Out_co", covariant=True)

MAX_NAME = 200
MAX_TARGET = 500


@dataclass(frozen=True, slots=True, init=False)
class Principal:
    """Who is calling, or, as `owner`, whose job it is. The host authenticates; Outlast authorises by tenant, subject and roles."""

    tenant: str
    subject: str
    roles: frozenset[str]
    claims: Mapping[str, str] = field(hash=False)

    def __init__(
        self,
        tenant: str,
        subject: str,
        *,
        roles: Iterable[str] = (),
        claims: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        object.__setattr__(self, "tenant", check_text(tenant, what="tenant", limit=MAX_NAME))
        object.__setattr__(self, "subject", check_text(subject, what="subject", limit=MAX_NAME))
        object.__setattr__(self, "roles", frozenset(check_names(roles, what="role", limit=MAX_NAME)))
        if not isinstance(claims, Mapping):
            raise Invalid("claims takes a mapping of names to texts.")
        object.__setattr__(self, "claims", MappingProxyType(dict(claims)))


@dataclass(frozen=True, slots=True)
class Unique:
    """One active job per key within tenant, owner and kind; within tenant and kind, where the kind says unique_scope="tenant".

    existing: the active job is what the submit gives. reject: UniqueActive. replace: cancels the active job, outcome superseded.
    A job that needs attention is active. The key has 1 to 255 visible ASCII characters.
    """

    key: str
    policy: UniquePolicy

    def __post_init__(self) -> None:
        check_key(self.key, what="unique key")
        if self.policy not in get_args(UniquePolicy):
            raise Invalid("The policy of a unique key is 'existing', 'reject' or 'replace'.", pointers=("/policy",))


@dataclass(frozen=True, slots=True, init=False)
class TargetRef:
    """What the result is for, and the version of it that the owner saw. Invalid for a kind without `target=`."""

    ref: str
    version: str

    def __init__(self, ref: str, version: str) -> None:
        object.__setattr__(self, "ref", check_text(ref, what="reference of the target", limit=MAX_TARGET))
        object.__setattr__(self, "version", check_text(version, what="version of the target", limit=MAX_NAME))


@dataclass(frozen=True, slots=True)
class Handle:
    """A submitted job. `url` is base_url + /v1/jobs/{id}.

    `replayed`: this key and request came before, or it found the active job of its unique key; `state` is that job's present one.
    `expired`: that job is no longer kept, and `state` is the one in which it ended; no more can be read of it.
    """

    id: str
    url: str
    state: State
    replayed: bool = False
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Attention:
    """What the owner must decide, until when, and the actions offered. The id is single use.

    `input`: what an answer must look like, as JSON Schema, where the action `answer` is offered and its type says so.
    """

    id: str
    label: str
    code: str
    message: str
    actions: tuple[Action, ...]
    until: datetime
    input: Mapping[str, object] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of the job's tasks have ended, of how many; `label` is the first task in plan order that can go on."""

    done: int
    total: int
    label: str | None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it stands. `attention` is the oldest open one; `final` means completed or cancelled.

    target: its reference, and the version that the job last saw. attach: whether a result reached it, or waits for the owner (parked).
    """

    id: str
    url: str
    kind: str
    label: str
    state: State
    final: bool
    outcome: Outcome | None
    version: int
    stopping: bool
    usable_at: datetime | None
    usable_ref: str | None
    progress: Progress
    attention: Attention | None
    attention_count: int
    cancel_note: str
    accepted_at: datetime
    finished_at: datetime | None
    rerun_of: str | None
    correlation_id: str
    target: TargetRef | None = None
    attach: Attach = "none"
    taken_over_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as it stands. `no` is its place in the plan, `attempt` the number of the one that runs or ended last.

    parked: its result waits for the owner to apply it to the job's target.
    """

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
    parked: bool = False


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt that failed, was lost, or asked; or the one that completed its task (`code` is then None)."""

    label: str
    attempt: int
    fence: int
    started_at: datetime | None
    ended_at: datetime | None
    code: str | None


@dataclass(frozen=True, slots=True)
class EffectView:
    """A call to the outside; `label` is its task's."""

    label: str
    name: str
    state: Literal["intended", "confirmed", "refused", "unknown"]
    begun_at: datetime


@dataclass(frozen=True, slots=True)
class Recovery:
    """For the owner only. `stored`: labels of tasks whose output is safe; `steps`: how many steps a task has stored.

    `effects`: calls to the outside that may have happened, those of the job that this one repeats included.
    """

    stored: tuple[str, ...]
    steps: tuple[tuple[str, int], ...]
    attempts: tuple[AttemptView, ...]
    effects: tuple[EffectView, ...]
    attention: tuple[Attention, ...]
    next_attempt_at: datetime | None
    correlation_id: str


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue as it stands, with the tasks of all tenants: runnable, held by workers, and waiting for their time.

    oldest: seconds since the oldest of those that are ready became so. paused_at: None for a queue that is not paused; else since
    when it is, by whom (a principal's subject) and why.
    """

    name: str
    ready: int
    running: int
    waiting: int
    oldest: float | None
    paused_at: datetime | None = None
    paused_by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QueueChange:
    """What a pause or resume came to: the queue as it stands, and whether this call changed it. False: it stood so before."""

    queue: QueueView
    changed: bool


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a person's deletion took away: jobs, those of them that were open and cancelled, keys of purged jobs, and schedules.

    stopping: jobs of which a worker still had a task. They are cancelled, and go with the next call, once it has stopped.
    """

    jobs: int
    cancelled: int
    stopping: int
    keys: int
    schedules: int


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as it stands. `next_at`: the due time that is waited for, in the past while no worker has fired it; None while paused.

    `when` is its rule in words, `last_at` and `last_job_id` the latest due time that became a job and that job, `code` why the
    latest due time became none, or why that which is waited for has no job yet.
    """

    name: str
    kind: str
    next_at: datetime | None
    paused: bool
    paused_by: str | None
    owner: str
    when: str
    catch_up: Literal["skip", "one"] | int
    last_at: datetime | None
    last_job_id: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class Page(Generic[Out_co]):
    """One page of a list, newest first. `next` is a cursor, bound to principal and filter; None at the end."""

    items: tuple[Out_co, ...]
    next: str | None
