"""What happened, told by what was committed, and whether it may happen: invariants that rows do not show.

It believes no guard of the SQL. Of each statement that changes who holds what, it takes what the statement says it did, and judges it
by what it was told before: who holds a task, until when, whether the job was cancelled. Facts count when their transaction has committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Rows: TypeAlias = list[tuple[Any, ...]]
Place: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class Task:
    """A task as its claims tell it."""

    fence: int = 0
    holder: str | None = None
    lease_until: int = 0
    deadline: int = 0
    done: bool = False
    slot: str | None = None
    last_holder: str = ""


@dataclass(slots=True)
class Job:
    """A job as its owner would tell it."""

    id: str
    owner: str
    root: str
    admitted_ms: int
    tasks: dict[int, Task] = field(default_factory=dict)
    version: int = 1
    state: str = "open"
    final_ms: int | None = None


class History:
    """All that was committed. `violated` is called with each sentence about what may not be, `replaced` with holders that were."""

    def __init__(self, violated: Callable[[str], None], replaced: Callable[[str], None], *, retention_ms: int, horizon_ms: int) -> None:
        self._horizon_ms = horizon_ms
        self._violated = violated
        self._replaced = replaced
        self._retention_ms = retention_ms
        self._pending: list[tuple[Callable[..., None], int, Mapping[str, Any], Rows]] = []
        self._mark = 0
        self.jobs: dict[str, Job] = {}
        self.purged: set[str] = set()
        self.buried: dict[str, int] = {}  # since when a key stands for a purged job
        self.keys: dict[tuple[str, str], str] = {}  # by owner and idempotency key: the job
        self.forgotten: set[tuple[str, str]] = set()  # keys whose horizon is over
        self.intents: dict[str, tuple[str, int, int]] = {}  # by the provider's key: job, fence, when
        self.effects: dict[tuple[str, str, str], str] = {}  # by root, label and name: the provider's key
        self.confirmed: set[str] = set()
        self.paused: set[str] = set()
        self.accepted = 0
        self.refused = 0

    # -- transactions -----------------------------------------------------------------------------------------

    def see(self, name: str, params: Mapping[str, Any], rows: Rows, now: int) -> None:
        """A statement of the transaction that is open."""
        tell = _TELLING.get(name)
        if tell is not None and (rows or name in _ROWLESS):
            self._pending.append((tell, now, params, rows))

    @property
    def waits(self) -> bool:
        """Whether the transaction that is open has done something."""
        return bool(self._pending)

    def mark(self) -> None:
        """A savepoint."""
        self._mark = len(self._pending)

    def back_to_mark(self) -> None:
        """What came after the savepoint did not happen."""
        del self._pending[self._mark :]

    def roll_back(self) -> None:
        """Nothing of it happened."""
        self._pending.clear()
        self._mark = 0

    def commit(self) -> bool:
        """It happened; whether anything did."""
        told = bool(self._pending)
        for tell, now, params, rows in self._pending:
            tell(self, now, params, rows)
        self._pending.clear()
        self._mark = 0
        return told

    # -- admissions -------------------------------------------------------------------------------------------

    def _admitted(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        job_id = params["job_id"]
        if job_id in self.jobs or job_id in self.purged:
            self._violated(f"A1: the job {job_id} was admitted twice")
        self.jobs[job_id] = Job(job_id, params["owner"], params["effect_root"], now)

    def _keyed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        place = (params["owner"], params["key"])
        if place in self.keys:
            self._violated(f"A3: the key {place[1]} of {place[0]} was taken for {params['job_id']}, and is {self.keys[place]}'s")
        self.keys[place] = params["job_id"]

    def _pointed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        self.keys[params["owner"], params["key"]] = params["job_id"]

    def _unkeyed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        self.keys.pop((params["owner"], params["key"]), None)

    def _outlived(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        place = (params["owner"], params["key"])
        # The statement does nothing to a key whose horizon is not over, and does not say so.
        if place in self.keys and now >= self.buried.get(place[1], now) + self._horizon_ms:
            self._forgotten(now, place)

    def _expired(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        gone = {key for (key,) in rows}
        for place in [place for place in self.keys if place[1] in gone]:
            self._forgotten(now, place)

    def _buried(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        for (key,) in rows:
            self.buried[key] = now

    def _forgotten(self, now: int, place: tuple[str, str]) -> None:
        del self.keys[place]
        self.forgotten.add(place)
        if now < self.buried.pop(place[1], now) + self._horizon_ms:
            self._violated(f"G6: the key {place[1]} of {place[0]} was forgotten before its horizon was over")

    def _purged(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        for (job_id,) in rows:
            job = self.jobs.pop(job_id, None)
            if job is None:
                self._violated(f"I1: the job {job_id} was purged and never admitted")
                continue
            if job.final_ms is None or now < job.final_ms + self._retention_ms:
                self._violated(f"A1: the job {job_id}, {job.state}, was purged before its time")
            if any(task.holder is not None for task in job.tasks.values()):
                self._violated(f"J11: the job {job_id} was purged while a task of it was held")
            self.purged.add(job_id)

    # -- claims -----------------------------------------------------------------------------------------------

    def _taken(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task = self._task(params)
        if task is not None:
            task_holder = params["holder"]
            if task.holder is not None and now < task.lease_until:
                self._violated(f"C3: {_said(params)} was claimed by {task_holder} while {task.holder} held it")
            if task.last_holder:
                self._replaced(task.last_holder)
            task.holder = task.last_holder = task_holder
            task.lease_until = now + params["lease_ms"]

    def _claimed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task = self._task(params)
        job = self.jobs.get(params["job_id"])
        if task is None or job is None:
            return
        row = rows[0]
        fence, queue, deadline, slot = int(row[3]), row[6], int(row[8]), row[15]
        if fence != task.fence + 1:
            self._violated(f"C1: {_said(params)} was claimed with fence {fence} after {task.fence}")
        if task.done:
            self._violated(f"D5: {_said(params)} was claimed after it had completed")
        if job.final_ms is not None:
            self._violated(f"E1: {_said(params)} was claimed when its job was {job.state}")
        if queue in self.paused:
            self._violated(f"C4: {_said(params)} was claimed in a paused queue")
        task.fence, task.deadline, task.slot = fence, deadline, slot
        task.lease_until = min(task.lease_until, deadline)

    def _renewed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task = self._of_holder("C5", "renewed", now, params)
        if task is not None:
            task.lease_until = min(now + params["lease_ms"], task.deadline)

    def _let_go(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task = self._of_holder("C2", "let go", now, params)
        if task is not None:
            task.holder = None

    def _ended(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task = self._of_holder("C2", "ended", now, params)
        if task is not None:
            task.holder = None

    def _lost(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task = self._task(params)
        if task is None:
            return
        if task.holder is None or task.fence != params["fence"] or now < task.lease_until:
            self._violated(f"C3: {_said(params)}, fence {params['fence']}, was taken from its holder before the lease had ended")
        task.holder = None

    def _stopped(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task, job = self._task(params), self.jobs.get(params["job_id"])
        if task is not None and job is not None:
            if job.state != "cancelled" or task.fence != params["fence"] or task.holder is None:
                self._violated(f"T16: {_said(params)} was stopped, and its job is {job.state}")
            task.holder = None

    def _unheld(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        job = self.jobs.get(params["job_id"])
        for (no,) in rows:
            if job is not None and no in job.tasks and job.tasks[no].holder is not None:
                self._violated(f"T15: the entry of {_said({**params, 'no': no})} was deleted while it was held")

    # -- ends -------------------------------------------------------------------------------------------------

    def _completed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        task, job = self._task(params), self.jobs.get(params["job_id"])
        if task is None or job is None:
            return
        self.accepted += 1
        if task.done:
            self._violated(f"D1: {_said(params)} completed twice")
        if task.fence != params["fence"]:
            self._violated(f"D2: {_said(params)} was completed by fence {params['fence']}, and {task.fence} was the last claim")
        if job.final_ms is not None:
            self._violated(f"E1: {_said(params)} completed when its job was {job.state}")
        task.done = True

    def _stored(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        self._of_holder("C2", "given a step", now, params)

    def _moved(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        job = self.jobs.get(params["job_id"])
        if job is None:
            return
        version, state = int(rows[0][0]), str(rows[0][1])
        if job.final_ms is not None:
            self._violated(f"D7: the job {job.id} went from {job.state} to {state}")
        self._versioned(job, version)
        job.state = state
        if state == "completed":
            job.final_ms = now

    def _bumped(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        job = self.jobs.get(params["job_id"])
        if job is not None:
            self._versioned(job, int(rows[0][0]))

    def _cancelled(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        job = self.jobs.get(params["job_id"])
        if job is None:
            return
        if job.final_ms is not None:
            self._violated(f"D7: the job {job.id} was cancelled when it was {job.state}")
        self._versioned(job, int(rows[0][0]))
        job.state, job.final_ms = "cancelled", now

    def _versioned(self, job: Job, version: int) -> None:
        if version != job.version + 1:
            self._violated(f"D10: the version of the job {job.id} went from {job.version} to {version}")
        job.version = version

    # -- effects and queues -----------------------------------------------------------------------------------

    def _intended(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        place = (params["effect_root"], params["label"], params["name"])
        key = params.get("provider_key") or self.effects.get(place, "")
        known = self.effects.setdefault(place, key)
        if known != key:
            self._violated(f"G3: the effect {place} has two keys")
        if key in self.confirmed:
            self._violated(f"G1: the effect {place} was intended anew after it was confirmed")
        job = self.jobs.get(params["job_id"])
        task = None if job is None else job.tasks.get(params["no"])
        if job is None or task is None or job.final_ms is not None or task.holder is None or task.fence != params["fence"]:
            self._violated(f"C2: an effect of {_said(params)} was intended by fence {params['fence']}, which does not hold it")
        self.intents[key] = (params["job_id"], params["fence"], now)

    def _placed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        # The guard of the intent, which holds until the commit, for the entry is locked, however late that is.
        self._of_holder("C2", "allowed an effect", now, params)

    def _settled(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        key = self.effects.get((params["effect_root"], params["label"], params["name"]), "")
        if rows[0][0] == "confirmed":
            if key in self.confirmed:
                self._violated(f"G1: an effect of the root {params['effect_root']} was confirmed twice")
            self.confirmed.add(key)

    def _queue_paused(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        self.paused.add(params["name"])

    def _queue_resumed(self, now: int, params: Mapping[str, Any], rows: Rows) -> None:
        self.paused.discard(params["name"])

    # -- whose is it ------------------------------------------------------------------------------------------

    def _task(self, params: Mapping[str, Any]) -> Task | None:
        job = self.jobs.get(params["job_id"])
        if job is None:
            self._violated(f"I1: something was written of the job {params['job_id']}, which is not there")
            return None
        return job.tasks.setdefault(params["no"], Task())

    def _of_holder(self, rule: str, did: str, now: int, params: Mapping[str, Any]) -> Task | None:
        task = self._task(params)
        if task is None:
            return None
        if task.fence != params["fence"] or task.holder != params["holder"]:
            said = f"fence {params['fence']} ({params['holder']}), and {task.fence} ({task.holder}) holds it"
            self._violated(f"{rule}: {_said(params)} was {did} by {said}")
        elif now >= task.lease_until:
            self._violated(f"{rule}: {_said(params)} was {did} by {task.holder} {now - task.lease_until} ms after its lease had ended")
        elif self.jobs[params["job_id"]].final_ms is not None:
            self._violated(f"E1: {_said(params)} was {did} when its job was {self.jobs[params['job_id']].state}")
        return task


def _said(params: Mapping[str, Any]) -> str:
    return f"task {params['no']} of the job {params['job_id']}"


_TELLING: dict[str, Callable[..., None]] = {
    "admit_job": History._admitted,
    "admit_submission": History._keyed,
    "point_submission": History._pointed,
    "bury_submissions": History._buried,
    "drop_submission": History._unkeyed,
    "drop_outlived": History._outlived,
    "drop_expired": History._expired,
    "delete_job_rows": History._purged,
    "claim_one": History._taken,
    "claimed_one": History._claimed,
    "renew_one": History._renewed,
    "release_entry": History._let_go,
    "end_entry": History._ended,
    "release_lost": History._lost,
    "end_lost_entry": History._lost,
    "stop_entry": History._stopped,
    "stop_lost_entry": History._stopped,
    "delete_unheld": History._unheld,
    "insert_output": History._completed,
    "store_step": History._stored,
    "update_job": History._moved,
    "bump_version": History._bumped,
    "cancel_job": History._cancelled,
    "effect_place": History._placed,
    "insert_effect": History._intended,
    "intend_effect": History._intended,
    "settle_effect": History._settled,
    "judge_effect": History._settled,
    "pause_queue": History._queue_paused,
    "resume_queue": History._queue_resumed,
}
_ROWLESS = frozenset({"claim_one", "insert_output", "drop_outlived"})
"""Statements that return nothing, and do what they say."""
