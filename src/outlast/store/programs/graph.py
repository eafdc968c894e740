"""What the end of a task does to its children and its job. The caller holds the job lock."""

from __future__ import annotations

from dataclasses import dataclass, field

from outlast.domain.states import Counters, StoredTask, change
from outlast.store.program import Program, Statement


@dataclass(slots=True)
class JobChange:
    """What one run of a program changes in one job, written once by `write`."""

    tenant: str
    job_id: str
    counters: Counters = field(default_factory=Counters)
    usable_no: int | None = None
    usable_ref: str | None = None
    opened: int = 0

    def moved(self, old: StoredTask, new: StoredTask, *, required: bool) -> None:
        """Adds a task's transition."""
        self.counters += change(old, new, required=required)

    def made_usable(self, no: int, resource: str | None) -> None:
        """A task marked usable completed; the first in plan order counts."""
        if self.usable_no is None or no < self.usable_no:
            self.usable_no, self.usable_ref = no, resource


def settle_children(job: JobChange, no: int, ended: StoredTask) -> Program[None]:
    """T2 and T3 below a task that ended: children whose last edge is satisfied are opened, optional ones behind a failure skipped."""
    place = {"tenant": job.tenant, "job_id": job.job_id}
    ends: list[tuple[int, StoredTask]] = [(no, ended)]
    opened = 0
    while ends:
        parent, state = ends.pop()
        if state != "completed":
            skipped = yield Statement("skip_children", {**place, "no": parent})
            for (child,) in skipped:
                job.moved("blocked", "skipped", required=False)
                ends.append((int(child), "skipped"))
        rows = yield Statement("satisfy_children", {**place, "no": parent, "hard_too": state == "completed"})
        opened += sum(int(row[0]) for row in rows)
    if opened:
        yield Statement("open_entries", place)
        job.opened += opened


def write(job: JobChange, *, retention_ms: int) -> Program[None]:
    """Writes the job once: counters, state, usable, finality, version + 1."""
    yield Statement(
        "update_job",
        {
            "tenant": job.tenant,
            "job_id": job.job_id,
            "d_open": job.counters.open,
            "d_required_open": job.counters.required_open,
            "d_attention": job.counters.attention,
            "d_problems": job.counters.problems,
            "usable_no": job.usable_no,
            "usable_ref": job.usable_ref,
            "retention_ms": retention_ms,
        },
    )
