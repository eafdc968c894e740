"""The client for blocking code: each method one line over shared calls, with the names, parameters and docstrings of the async one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from outlast.client import attaching, deciding, joining, operating, reading, scheduling, submitting
from outlast.client.calls import Application, Call
from outlast.client.driving import drive_admission, drive_call
from outlast.client.submitting import Submission
from outlast.domain.cron import Cron
from outlast.domain.kinds import AnyTask, In, Kind, Storable
from outlast.domain.model import (
    Action,
    Forgotten,
    Handle,
    JobView,
    Page,
    Principal,
    QueueChange,
    QueueView,
    Recovery,
    ScheduleView,
    State,
    TargetRef,
    TaskView,
    Unique,
)
from outlast.domain.schedules import Every
from outlast.store.protocol import Store
from outlast.store.sessions.callers import SyncTransaction
from outlast.store.sessions.transaction import Sessions

T = TypeVar("T")
D = TypeVar("D")


class SyncClient:
    """Submits, shows and controls jobs.

    Any call may raise StoreUnavailable or NotMigrated; one for a principal raises NotFound alike for what is unknown and what is
    not theirs, and Expired for what was their own and is no longer kept. version=None: whatever it is now.
    """

    def __init__(self, app: Application, store: Callable[[], Store], sessions: Sessions | None = None) -> None:
        self._app = app
        self._sessions = sessions or Sessions()
        self._store = store

    @property
    def store(self) -> Store:
        """The store that the calls run on."""
        return self._store()

    def submit(
        self,
        kind: Kind[In],
        input: In,
        *,
        owner: Principal,
        key: str | None = None,
        unique: Unique | None = None,
        target: TargetRef | None = None,
        not_before: datetime | None = None,
        transaction: SyncTransaction | str | None = None,
    ) -> Handle:
        """The job, committed when this returns. A repeat with the same key and request gives the same job (`replayed`).

        Once that is no longer kept, the repeat names it and how it ended (`expired`), until its horizon is over.
        Raises, nothing written: Invalid, KeyReused, UniqueActive, QuotaExceeded, NotRegistered, StoreUnavailable; OutcomeUnknown
        (repeat with the same key). What the kind's own function raises comes as it is.
        A naive `not_before` is Invalid.

        With `transaction`: the caller's own session or connection, in whose transaction the job is written and nothing else is sent; it is
        there if, and only if, the caller commits. A text is
        the alias of a Django database. Raises also Contended (roll back, begin anew), TransactionMisused. If each statement
        commits by itself there (autocommit), the job is committed when this returns, as without.
        """
        prepared = submitting.prepare(self._app, kind, input, owner=owner, key=key, not_before=not_before, unique=unique, target=target)
        if transaction is not None:
            handles = joining.submit_joined_sync(self._app, [prepared], transaction, self.store)
            if handles is not None:
                return handles[0]
        return drive_admission(submitting.submit(self._app, prepared), [prepared], self.store)

    def submit_many(
        self, submissions: Iterable[Submission], *, owner: Principal, transaction: SyncTransaction | str | None = None
    ) -> tuple[Handle, ...]:
        """All or none, in one transaction, or in that of the caller's; handles in order."""
        prepared = submitting.prepare_many(self._app, submissions, owner=owner)
        if transaction is not None:
            handles = joining.submit_joined_sync(self._app, prepared, transaction, self.store)
            if handles is not None:
                return handles
        return drive_admission(submitting.submit_many(self._app, prepared), prepared, self.store)

    def get(self, job_id: str, *, principal: Principal) -> JobView:
        """The job as it stands."""
        return self._drive(reading.get(self._app, job_id, principal))

    def list(
        self,
        *,
        principal: Principal,
        state: State | Literal["active"] | None = None,
        kind: str | None = None,
        target: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[JobView]:
        """The principal's own jobs, newest first."""
        return self._drive(reading.list_jobs(self._app, principal, state=state, kind=kind, limit=limit, cursor=cursor, target=target))

    def tasks(self, job_id: str, *, principal: Principal) -> tuple[TaskView, ...]:
        """The job's tasks in plan order."""
        return self._drive(reading.tasks(job_id, principal))

    @overload
    def result(self, job_id: str, *, principal: Principal) -> object: ...
    @overload
    def result(self, job_id: str, task: AnyTask[D], *, principal: Principal, label: str | None = None) -> D: ...
    def result(self, job_id: str, task: AnyTask[Any] | None = None, *, principal: Principal, label: str | None = None) -> Any:
        """A task's output; without `task`, as JSON, that of the task which made the job usable. Raises NotReady before there is one."""
        return self._drive(reading.result(self._app, job_id, task, principal, label))

    def recovery(self, job_id: str, *, principal: Principal) -> Recovery:
        """What happened to the job so far and what is next; for its owner only."""
        return self._drive(reading.recovery(job_id, principal))

    def wait(self, job_id: str, *, principal: Principal, timeout: float, until: Literal["usable", "final"] = "final") -> JobView:
        """The job when it is so, or as it stands after `timeout` seconds."""
        return self._drive(reading.wait(self._app, job_id, principal, timeout, until))

    def cancel(self, job_id: str, *, principal: Principal, version: int | None = None) -> JobView:
        """Nothing of the job is written after it. A repeat succeeds. Raises AlreadyCompleted, StaleVersion."""
        return self._drive(deciding.cancel(self._app, job_id, principal, version))

    def act(self, job_id: str, attention_id: str, *, action: Action, principal: Principal, input: Storable = None) -> JobView:
        """Decides an open question. A repeat of the same succeeds. Raises Conflict; Invalid: not offered, or the wrong input.

        An operator may take `retry`, but not of a question about a call of unknown outcome: Forbidden.
        """
        return self._drive(deciding.act(self._app, job_id, attention_id, action=action, principal=principal, given=input))

    def takeover(self, job_id: str, *, principal: Principal, version: int | None = None) -> JobView:
        """From here on no result reaches the job's target by itself; later ones are parked. A repeat succeeds. Raises StaleVersion."""
        return self._drive(deciding.takeover(self._app, job_id, principal, version))

    def attach(self, job_id: str, no: int, *, principal: Principal, target_version: str) -> JobView:
        """Applies task `no`'s parked result to the target, if it stands at the version that is named.

        Raises Conflict: target_changed; nothing_parked; target_failed, where the target's function raised (what it raised is in the log).
        """
        return attaching.attach_sync(
            self._app, self.store, self._sessions, job_id, no=no, principal=principal, target_version=target_version
        )

    def rerun(self, job_id: str, *, principal: Principal, key: str | None = None) -> Handle:
        """A new job of the same request that names the old one; the same key gives the same new job. Conflict: not final."""
        handle = self._drive(submitting.rerun_job(self._app, job_id, principal, key))
        self.store.announce(("*",))
        return handle

    def replay(self, job_id: str, *, principal: Principal, reason: str) -> JobView:
        """By an operator: `retry` of all that needs attention and offers it; the job keeps its id, outputs, steps and effect keys.

        A question about a call of unknown outcome (`effect_unknown`) stays open: only the owner chooses what may happen twice. The
        reason, in one line of up to 500 characters, and who acts are kept. A repeat succeeds. Raises Forbidden, Invalid, Conflict.
        """
        return self._drive(operating.replay_job(self._app, job_id, principal, reason))

    def queues(self, *, principal: Principal) -> tuple[QueueView, ...]:
        """For operators: every queue in which something stands or that is paused, by name, all tenants together. Raises Forbidden."""
        return self._drive(operating.list_queues(principal))

    def pause_queue(self, name: str, *, principal: Principal, reason: str) -> QueueChange:
        """By an operator, for all tenants: nothing of the queue is claimed any more, until it is resumed. What runs goes on and ends.

        A queue may be paused before anything is in it. The reason, in one line of up to 500 characters, and who acts are kept. A queue
        that is paused already stays as it is (`changed` is False). Raises Forbidden, Invalid.
        """
        return self._drive(operating.pause_queue(name, principal, reason))

    def resume_queue(self, name: str, *, principal: Principal, reason: str) -> QueueChange:
        """By an operator, for all tenants: what waits in the queue is claimed again. As for a pause, reason and actor are kept.

        A queue that is not paused stays as it is (`changed` is False). Raises Forbidden, Invalid.
        """
        change = self._drive(operating.resume_queue(name, principal, reason))
        self.store.announce((name,))
        return change

    def forget(self, subject: str, *, principal: Principal, reason: str) -> Forgotten:
        """By an operator: deletes everything of a person of the tenant: schedules, jobs, results, effects, keys. Open jobs are cancelled.

        The reason, in one line of up to 500 characters, and who acts are kept, and how many jobs; of the person only a digest. A job of
        which a worker still has a task is cancelled and counted as stopping; call again. Raises Forbidden, Invalid.
        """
        return self._drive(operating.forget_person(subject, principal, reason))

    def schedule(
        self,
        kind: Kind[In],
        input: In,
        *,
        name: str,
        when: Cron | Every,
        owner: Principal,
        catch_up: Literal["skip", "one"] | int = "one",
    ) -> ScheduleView:
        """Submits a job of the kind at each due time: one, whatever the number of workers. A known name is changed.

        when: Cron(...) or Every(seconds). catch_up, of the due times that were missed: "skip" none, "one" the latest, a number the
        latest so many (1 to 100). The owner's rights and claims are kept as they are now. The same again changes nothing; another
        `when` counts from now. Raises, nothing written: Invalid, NotRegistered, Forbidden, StoreUnavailable.
        """
        return self._drive(scheduling.make(self._app, kind, input, name=name, when=when, owner=owner, catch_up=catch_up))

    def schedules(self, *, principal: Principal) -> tuple[ScheduleView, ...]:
        """The principal's own schedules by name; for an operator those of the tenant, by owner and name."""
        return self._drive(scheduling.listed(principal))

    def unschedule(self, name: str, *, principal: Principal) -> None:
        """Removes a schedule of the principal's own; the jobs that it made stay. NotFound, Forbidden."""
        self._drive(scheduling.remove(name, principal))

    def pause_schedule(self, name: str, *, principal: Principal) -> ScheduleView:
        """From here on nothing of it falls due, until it is resumed. Again is no error. NotFound, Forbidden."""
        return self._drive(scheduling.pause(name, principal))

    def resume_schedule(self, name: str, *, principal: Principal) -> ScheduleView:
        """It goes on with its next due time; those in the pause are not made up for. Again is no error. NotFound, Forbidden."""
        return self._drive(scheduling.resume(name, principal))

    def close(self) -> None:
        """Gives the connections back. The next call opens new ones."""
        self.store.close_sync()

    def _drive(self, call: Call[T]) -> T:
        return drive_call(call, self.store)
