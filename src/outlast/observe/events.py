"""Event types. None holds a payload, an exception's text or a secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

_CHAIN: Final = 4
_CODE: Final = re.compile(r"[A-Za-z0-9_]{1,40}")


class Placed(Exception):
    """An error that says itself what a log may hold of it."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


def reason_of(error: BaseException) -> str:
    """The types of an error and of what it came from, with the database's own code where there is one."""
    named: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(named) < _CHAIN:
        code = getattr(seen, "sqlite_errorname", None) or getattr(seen, "sqlstate", None)
        named.append(type(seen).__name__ + (f" {code}" if isinstance(code, str) and _CODE.fullmatch(code) else ""))
        seen = seen.__cause__ or seen.__context__
    return ", from ".join(named)


def place_of(error: BaseException) -> str:
    """The type of an error and where it was raised: its text may hold what nobody should read. Placed says it itself."""
    if isinstance(error, Placed):
        return error.place
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" at {last.tb_frame.f_globals.get('__name__', '?')}:{last.tb_lineno}"
    return f"{type(error).__name__}{where}"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that an operator may want to know. `level` is a name of the logging module."""

    level: ClassVar[str] = "INFO"

    def text(self) -> str:
        """One line for a log, without values of users."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class WorkerStarted(Event):
    """A worker is ready to claim."""

    worker: str
    queues: tuple[str, ...]

    def text(self) -> str:
        return f"worker {self.worker} ready for {', '.join(self.queues)}"


@dataclass(frozen=True, slots=True)
class StoreNote(Event):
    """Something about the store that who starts a worker should know."""

    level: ClassVar[str] = "WARNING"
    note: str

    def text(self) -> str:
        return self.note


@dataclass(frozen=True, slots=True)
class WorkerStopping(Event):
    """A worker claims nothing more."""

    worker: str
    running: int

    def text(self) -> str:
        return f"worker {self.worker} stops; {self.running} attempts still run"


@dataclass(frozen=True, slots=True)
class AttemptStarted(Event):
    """A claimed task began to run."""

    level: ClassVar[str] = "DEBUG"
    job_id: str
    no: int
    task: str
    fence: int
    attempt: int
    correlation_id: str

    def text(self) -> str:
        return f"attempt {self.attempt} of {self.task} in job {self.job_id} started"


@dataclass(frozen=True, slots=True)
class AttemptEnded(Event):
    """The store took an attempt's end: completed, retrying, gave_up, asked, snoozed, handed_back or stopped; with a failure's code."""

    job_id: str
    no: int
    task: str
    fence: int
    attempt: int
    outcome: str
    code: str | None
    seconds: float
    correlation_id: str

    def text(self) -> str:
        code = f" ({self.code})" if self.code else ""
        return f"attempt {self.attempt} of {self.task} in job {self.job_id}: {self.outcome}{code} after {self.seconds:.3f} s"


@dataclass(frozen=True, slots=True)
class StaleWriteRefused(Event):
    """A result came from a holder that had been replaced or cancelled; it was dropped."""

    level: ClassVar[str] = "WARNING"
    job_id: str
    no: int
    task: str
    fence: int
    verdict: str
    correlation_id: str

    def text(self) -> str:
        return f"a result of {self.task} in job {self.job_id} (fence {self.fence}) came too late and was dropped: {self.verdict}"


@dataclass(frozen=True, slots=True)
class LeaseLost(Event):
    """A renewal was refused: the task is another's, or its job was cancelled."""

    level: ClassVar[str] = "WARNING"
    job_id: str
    no: int
    fence: int
    reason: str
    correlation_id: str

    def text(self) -> str:
        return f"the lease of task {self.no} in job {self.job_id} (fence {self.fence}) ended: {self.reason}"


@dataclass(frozen=True, slots=True)
class Swept(Event):
    """The recovery scan moved something on."""

    level: ClassVar[str] = "WARNING"
    job_id: str
    no: str
    outcome: str
    correlation_id: str

    def text(self) -> str:
        return f"the sweep found task {self.no} of job {self.job_id}: {self.outcome}"


@dataclass(frozen=True, slots=True)
class Purged(Event):
    """Jobs that are no longer kept were deleted, and keys whose horizon is over."""

    jobs: int
    keys: int

    def text(self) -> str:
        return f"{self.jobs} jobs purged, {self.keys} keys dropped"


@dataclass(frozen=True, slots=True)
class BadRow(Event):
    """One row could not be handled; the rest goes on."""

    level: ClassVar[str] = "ERROR"
    where: str
    job_id: str
    error: str
    correlation_id: str

    def text(self) -> str:
        return f"{self.where}: job {self.job_id} cannot be handled ({self.error}); the rest goes on"


@dataclass(frozen=True, slots=True)
class StoreTrouble(Event):
    """The store did not answer as it should; it is tried again."""

    level: ClassVar[str] = "WARNING"
    where: str
    code: str
    again_in: float
    message: str

    def text(self) -> str:
        return f"{self.where}: {self.message} ({self.code}; tried again in {self.again_in:.1f} s)"


@dataclass(frozen=True, slots=True)
class LoopBlocked(Event):
    """The event loop did not turn. `task`: what it runs, a handler as a rule. `stood`: nor did other threads of the process."""

    level: ClassVar[str] = "WARNING"
    task: str
    seconds: float
    stood: bool = False

    def text(self) -> str:
        if self.stood:
            return f"the process stood still for {self.seconds:.1f} s, at {self.task}: it was stopped, or a call held the interpreter"
        said = f"the event loop has been blocked for {self.seconds:.1f} s, by {self.task}"
        if "@" not in self.task:  # none of the host's handlers
            return f"{said}: the process was stopped or had no processor, or a callback of a library took so long"
        return f"{said}: use a plain def, which runs in a thread"


@dataclass(frozen=True, slots=True)
class Zombie(Event):
    """Code went on running after its lease had ended; its slot is used by others, its results are refused."""

    level: ClassVar[str] = "WARNING"
    task: str
    job_id: str
    zombies: int
    limit: int
    correlation_id: str

    def text(self) -> str:
        return f"{self.task} of job {self.job_id} still runs after its lease ended ({self.zombies} of {self.limit} before the worker ends)"


@dataclass(frozen=True, slots=True)
class TargetFailed(Event):
    """The function of a target failed when an owner applied a result. `error` is its type and place: its text may hold values."""

    level: ClassVar[str] = "ERROR"
    job_id: str
    error: str
    correlation_id: str

    def text(self) -> str:
        return f"the result of job {self.job_id} could not be put into its target ({self.error})"


@dataclass(frozen=True, slots=True)
class TargetMissing(Event):
    """A task attached its result, and its job has no target: the result is kept as the task's output."""

    level: ClassVar[str] = "WARNING"
    task: str
    job_id: str
    correlation_id: str

    def text(self) -> str:
        return f"{self.task} of job {self.job_id} attached a result, but the job was submitted without target=: it is kept as the output"


@dataclass(frozen=True, slots=True)
class LoopDied(Event):
    """A background loop ended by an error; the worker stops. `error` is the exception's type and place: its text may hold values."""

    level: ClassVar[str] = "CRITICAL"
    loop: str
    error: str

    def text(self) -> str:
        return f"the {self.loop} loop died ({self.error}); the worker stops"


@dataclass(frozen=True, slots=True)
class ListenUnavailable(Event):
    """Notifications cannot be had here; workers poll."""

    level: ClassVar[str] = "WARNING"
    reason: str

    def text(self) -> str:
        return f"no notifications ({self.reason}): new work is found by polling"


@dataclass(frozen=True, slots=True)
class RequestEnded(Event):
    """An HTTP request was answered. `route` is the route's name, never the address, which holds ids and queries of users."""

    level: ClassVar[str] = "DEBUG"
    method: str
    route: str
    status: int
    seconds: float
    correlation_id: str

    def text(self) -> str:
        return f"{self.method} {self.route or '(no route)'}: {self.status} after {self.seconds:.3f} s"


@dataclass(frozen=True, slots=True)
class RequestFailed(Event):
    """An HTTP request met an unexpected error, which the caller is not told. `error` is its type and place: its text may hold values."""

    level: ClassVar[str] = "ERROR"
    route: str
    error: str
    correlation_id: str

    def text(self) -> str:
        return f"{self.route or '(no route)'} failed ({self.error}); correlation id {self.correlation_id}"


@dataclass(frozen=True, slots=True)
class JobAdmitted(Event):
    """A request was answered with a job: a new one, or the one that its key had made before."""

    job_id: str
    kind: str
    replayed: bool
    correlation_id: str

    def text(self) -> str:
        return f"job {self.job_id} of kind {self.kind} {'found again by its key' if self.replayed else 'admitted'}"


@dataclass(frozen=True, slots=True)
class JobControlled(Event):
    """A request changed a job: cancel, rerun, or an action on its attention."""

    job_id: str
    deed: str
    correlation_id: str

    def text(self) -> str:
        return f"job {self.job_id}: {self.deed}"


@dataclass(frozen=True, slots=True)
class WatchTrouble(Event):
    """What the event streams show cannot be read just now; it is tried again."""

    level: ClassVar[str] = "WARNING"
    error: str
    again_in: float

    def text(self) -> str:
        return f"the watcher of event streams cannot read the store ({self.error}; tried again in {self.again_in:.1f} s)"


@dataclass(frozen=True, slots=True)
class ScheduleFired(Event):
    """Due times of a schedule became jobs; none where they were missed and are not made up for."""

    schedule: str
    kind: str
    jobs: tuple[str, ...]

    def text(self) -> str:
        return f"schedule {self.schedule} submitted {len(self.jobs)} of kind {self.kind}: {', '.join(self.jobs) or 'missed'}"


@dataclass(frozen=True, slots=True)
class ScheduleFailed(Event):
    """A due time of a schedule led to no job; the next one is waited for."""

    level: ClassVar[str] = "ERROR"
    schedule: str
    kind: str
    code: str

    def text(self) -> str:
        return f"schedule {self.schedule} could not submit its job of kind {self.kind} ({self.code}); it goes on with its next due time"


_NEEDED: Final = {
    "cronsim_missing": ": pip install 'outlast[schedules]'",
    "tzdata_missing": ": pip install tzdata",
    "zone_unknown": ": its time zone is not in this machine's data; bring that up to date",
}


@dataclass(frozen=True, slots=True)
class ScheduleLeft(Event):
    """A due schedule cannot be fired by this process, which does not know its kind, version, rule or zone; it waits for one that can."""

    level: ClassVar[str] = "WARNING"
    schedule: str
    kind: str
    code: str

    def text(self) -> str:
        needed = _NEEDED.get(self.code, "")
        return f"schedule {self.schedule} is due, and this process cannot submit its job of kind {self.kind} ({self.code}){needed}"


@dataclass(frozen=True, slots=True)
class OutboxRowsMoved(Event):
    """Rows of an outbox in another database are jobs, and were deleted there."""

    rows: int

    def text(self) -> str:
        return "1 row of the outbox became a job" if self.rows == 1 else f"{self.rows} rows of the outbox became jobs"


@dataclass(frozen=True, slots=True)
class OutboxRowParked(Event):
    """A row of an outbox can never be admitted as it is. It stays there with this code, and is not tried again."""

    level: ClassVar[str] = "ERROR"
    seq: int
    code: str
    detail: str = ""

    def text(self) -> str:
        return f"row {self.seq} of the outbox is parked ({self.code}{': ' if self.detail else ''}{self.detail})"


@dataclass(frozen=True, slots=True)
class OutboxRowPutOff(Event):
    """A row of an outbox cannot be admitted now, and is tried again in so many seconds."""

    level: ClassVar[str] = "WARNING"
    seq: int
    code: str
    seconds: float

    def text(self) -> str:
        return f"row {self.seq} of the outbox is tried again in {self.seconds:g} s ({self.code})"


@dataclass(frozen=True, slots=True)
class OutboxRowFailed(Event):
    """What a kind's own function, or the store, raised for a row of an outbox. `place` says where."""

    level: ClassVar[str] = "ERROR"
    seq: int
    place: str

    def text(self) -> str:
        return f"row {self.seq} of the outbox failed: {self.place}"


@dataclass(frozen=True, slots=True)
class RelayWaits(Event):
    """One of the two databases of a relay does not answer; it is asked again in so many seconds."""

    level: ClassVar[str] = "WARNING"
    code: str
    reason: str
    seconds: float

    def text(self) -> str:
        return f"the relay waits {self.seconds:.1f} s ({self.code}): {self.reason}"
