"""Refusals that show the job as it stands, or how it ended; part of the tree that `errors` draws."""

from __future__ import annotations

from datetime import datetime

from outlast.domain.errors import NotFound, OutlastError
from outlast.domain.model import JobView, Outcome, State


class Conflict(OutlastError):
    """The job does not stand as the call needs it; `job` is how it stands."""

    code = "conflict"

    def __init__(self, message: str, *, job: JobView | None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self._job: JobView | None = job

    @property
    def job(self) -> JobView:
        """The job as it stood when the call was refused."""
        if self._job is None:
            raise NotFound("There is no such job.")
        return self._job

    @property
    def shown(self) -> bool:
        """Whether `job` may be read. Only UniqueActive hides one: the active job of another owner."""
        return self._job is not None


class StaleVersion(Conflict):
    """The job changed since the version that the caller named. Look at `job` and decide again."""

    code = "stale_version"


class AlreadyCompleted(Conflict):
    """The job had completed before the call."""

    code = "already_completed"


class NotReady(Conflict):
    """There is no result yet. It comes when the job is usable, or when the task named has completed."""

    code = "not_ready"
    retryable = True


class UniqueActive(Conflict):
    """Another job with this unique key is active; nothing was written, and the idempotency key is free for another try.

    `job` is that job. Where the kind's keys are the tenant's it may be another owner's: then `shown` is False, and `job`
    raises NotFound, as every look at it does.
    """

    code = "unique_active"


class Expired(OutlastError):
    """The job was the caller's own, and is no longer kept: how and when it ended, and when it was deleted."""

    code = "expired"

    def __init__(self, message: str, *, state: State, outcome: Outcome, finished_at: datetime, purged_at: datetime) -> None:
        super().__init__(message)
        self.state: State = state
        self.outcome: Outcome = outcome
        self.finished_at = finished_at
        self.purged_at = purged_at
