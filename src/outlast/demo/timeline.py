"""What happened to a job, as the API tells its owner."""

from __future__ import annotations

from datetime import datetime

from outlast.demo.visitor import Attempt, Recovery


def timeline(recovery: Recovery) -> list[str]:
    """One line for each thing that happened, with the seconds since the job was accepted."""
    job = recovery.job
    events = [(job.accepted_at, "accepted")]
    for attempt in recovery.attempts:
        events += _of(attempt)
    if job.usable_at is not None:
        events.append((job.usable_at, "the book is usable from here on"))
    if job.finished_at is not None:
        events.append((job.finished_at, f"job {job.state}, {job.outcome}"))
    return [f"{(at - job.accepted_at).total_seconds():6.2f} s  {text}" for at, text in sorted(events, key=lambda e: e[0])]


def _of(attempt: Attempt) -> list[tuple[datetime, str]]:
    events: list[tuple[datetime, str]] = []
    if attempt.started_at is not None:
        events.append((attempt.started_at, f"{attempt.task}: attempt {attempt.attempt} (fence {attempt.fence}) started"))
    if attempt.ended_at is not None:
        what = "completed" if attempt.code is None else f"ended with {attempt.code}"
        events.append((attempt.ended_at, f"{attempt.task}: attempt {attempt.attempt} {what}"))
    return events
