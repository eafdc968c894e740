"""Refusals that show the job as it stands; part of the tree that `errors` draws."""

from __future__ import annotations

from outlast.domain.errors import OutlastError
from outlast.domain.model import JobView


class Conflict(OutlastError):
    """The job does not stand as the call needs it; `job` is how it stands."""

    code = "conflict"

    def __init__(self, message: str, *, job: JobView, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.job = job


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
