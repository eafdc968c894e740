"""From stored rows to what callers see."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast, overload
from urllib.parse import urlsplit

from outlast.domain.conflicts import Expired
from outlast.domain.errors import Invalid
from outlast.domain.model import AttemptView, Attention, EffectView, JobView, Outcome, Progress, QueueView, Recovery, ScheduleView, TaskView
from outlast.domain.refusal import article
from outlast.domain.registry import Registry
from outlast.domain.schedules import ScheduleRow, shown_catch_up, words
from outlast.domain.states import FINAL_JOBS
from outlast.domain.work import AttentionRow, JobRow, Pause, QueueRow, RecoveryRows, TaskRow, Tombstone

_PLAIN: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/\[\]-]*")
_LAST = 253_402_300_799_000  # the end of the year 9999: no datetime is later


def check_base_url(base_url: str) -> None:
    """Refuses what links cannot begin with: taken is "", a path from the root, or an address with http or https and a host."""
    if not isinstance(base_url, str):
        raise Invalid(f"base_url must be text, not {article(base_url)}.")
    try:
        parts = urlsplit(base_url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        raise Invalid("base_url is no address.") from None
    here = not parts.scheme and not parts.netloc and (not base_url or base_url.startswith("/"))
    if not (named or here) or _PLAIN.fullmatch(base_url) is None or {".", ".."} & set(parts.path.split("/")):
        raise Invalid('base_url is a path from the root, for example "/jobs", or such a path behind https:// and a host.')


def url(base_url: str, job_id: str) -> str:
    """Where the HTTP API shows a job."""
    return f"{base_url}/v1/jobs/{job_id}"


@overload
def moment(ms: int) -> datetime: ...
@overload
def moment(ms: int | None) -> datetime | None: ...
def moment(ms: int | None) -> datetime | None:
    """An aware datetime in UTC."""
    return None if ms is None else datetime.fromtimestamp(min(ms, _LAST) / 1000, tz=UTC)


def job(base_url: str, registry: Registry, row: JobRow) -> JobView:
    """A job as its owner sees it."""
    kind = registry.kinds.get(row.kind)
    return JobView(
        id=row.id,
        url=url(base_url, row.id),
        kind=row.kind,
        label=row.label,
        state=row.state,
        final=row.stored in FINAL_JOBS,
        outcome=cast("Outcome | None", row.outcome),
        version=row.version,
        stopping=row.stopping,
        usable_at=moment(row.usable_at_ms),
        usable_ref=row.usable_ref,
        progress=Progress(done=row.total - row.open, total=row.total, label=row.current_label),
        attention=None if row.attention is None else attention(row.attention),
        attention_count=row.attention_count,
        cancel_note="" if kind is None else kind.cancel_note,
        accepted_at=moment(row.accepted_at_ms),
        finished_at=moment(row.finished_at_ms),
        rerun_of=row.rerun_of,
        correlation_id=row.correlation_id,
        target=row.target,
        attach=row.attach,
        taken_over_at=moment(row.taken_over_at_ms),
    )


def attention(row: AttentionRow) -> Attention:
    """A question as its owner sees it."""
    schema: dict[str, object] | None = None if row.input_schema is None else json.loads(row.input_schema)
    return Attention(row.id, row.label, row.code, row.message, row.actions, moment(row.until_ms), schema)


def task(row: TaskRow) -> TaskView:
    """A task as its owner sees it."""
    return TaskView(
        no=row.no,
        label=row.label,
        state=row.state,
        required=row.required,
        usable=row.usable,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        progress=row.progress,
        code=row.code,
        ref=row.ref,
        next_attempt_at=moment(row.next_attempt_at_ms),
        parked=row.parked,
    )


def recovery(found: JobRow, rows: RecoveryRows) -> Recovery:
    """A job's past and what is next."""
    due = [t.next_attempt_at_ms for t in rows.tasks if t.next_attempt_at_ms is not None]
    return Recovery(
        stored=tuple(t.label for t in rows.tasks if t.state == "completed"),
        steps=rows.steps,
        attempts=tuple(
            AttemptView(a.label, a.number, a.fence, moment(a.started_at_ms), moment(a.ended_at_ms), a.code) for a in rows.attempts
        ),
        effects=tuple(EffectView(e.label, e.name, e.state, moment(e.begun_at_ms)) for e in rows.effects),
        attention=tuple(attention(q) for q in rows.questions),
        next_attempt_at=moment(min(due)) if due else None,
        correlation_id=found.correlation_id,
    )


def queues(rows: Sequence[QueueRow], pauses: Sequence[Pause]) -> tuple[QueueView, ...]:
    """Every queue in which something stands or that is paused, all handlers together, by name."""
    paused = {pause.queue: pause for pause in pauses}
    names = sorted({row.queue for row in rows} | paused.keys())
    return tuple(_queue(name, [row for row in rows if row.queue == name], paused.get(name)) for name in names)


def _queue(name: str, rows: Sequence[QueueRow], pause: Pause | None) -> QueueView:
    ages = [max(row.oldest_ms, 0) for row in rows if row.oldest_ms is not None]
    return QueueView(
        name=name,
        ready=sum(row.ready for row in rows),
        running=sum(row.held for row in rows),
        waiting=sum(row.waiting for row in rows),
        oldest=max(ages) / 1000 if ages else None,
        paused_at=None if pause is None else moment(pause.at_ms),
        paused_by=None if pause is None else pause.by,
        reason=None if pause is None else pause.reason,
    )


def queue(name: str, rows: Sequence[QueueRow], pauses: Sequence[Pause]) -> QueueView:
    """One queue, whether anything stands in it or not."""
    return next((view for view in queues(rows, pauses) if view.name == name), QueueView(name, 0, 0, 0, None))


_ENDS: Final[Mapping[Outcome, str]] = {
    "succeeded": "completed",
    "succeeded_with_problems": "completed, without some of its optional work,",
    "user": "was cancelled",
    "abandoned": "was given up",
    "superseded": "was replaced by a newer request",
}


def expired(row: Tombstone) -> Expired:
    """The refusal of a job that its owner asks for and that is no longer kept, with words for people about what happened to it."""
    finished, purged = moment(row.finished_at_ms), moment(row.purged_at_ms)
    message = (
        f"This job {_ENDS[row.outcome]} on {finished:%Y-%m-%d}, was kept until {purged:%Y-%m-%d} (UTC), and then deleted with its results. "
        "To have it done once more, ask for it anew."
    )
    return Expired(message, state=row.state, outcome=row.outcome, finished_at=finished, purged_at=purged)


def schedule(row: ScheduleRow) -> ScheduleView:
    """A schedule as its owner sees it."""
    return ScheduleView(
        name=row.key.name,
        kind=row.kind,
        next_at=moment(row.next_ms) if row.paused_ms is None else None,
        paused=row.paused_ms is not None,
        paused_by=row.paused_by,
        owner=row.key.owner,
        when=words(row.rule),
        catch_up=shown_catch_up(row.catch_up),
        last_at=moment(row.last_due_ms),
        last_job_id=row.last_job_id,
        code=row.code,
    )
