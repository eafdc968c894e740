"""Admission: a job, its input, tasks, entries and idempotency record in one transaction, or nothing of it (T1, J1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlast.domain.errors import KeyReused
from outlast.domain.work import Admission, Admitted, KeyTaken
from outlast.store.program import Access, Program, Repeat, Statement, operation


@operation(Access.STATEMENT, patient=False)
def admit(jobs: Sequence[Admission]) -> Program[list[Admitted | KeyTaken]]:
    """Admits each job whose key is new; the others get the job that has the key, or KeyTaken for another request.

    Repeating it is how an unknown commit is resolved: the insert waits on the unique index, where a read could miss a commit
    in flight, and a job's own id tells its first admission from an earlier one.
    """
    rows = yield Statement("admit", columns(jobs))
    new = {str(row[0]) for row in rows}
    results: list[Admitted | KeyTaken] = []
    for job in jobs:
        if job.job_id in new:
            results.append(Admitted(job.job_id, replayed=False))
        else:
            results.append((yield from _winner(job)))
    return results


@operation(Access.TRANSACTION, patient=False)
def admit_all(jobs: Sequence[Admission]) -> Program[list[Admitted]]:
    """As `admit`, all or none: KeyReused, which rolls the transaction back, when one key belongs to another request."""
    results = yield from admit(jobs).start()
    admitted: list[Admitted] = []
    for place, result in enumerate(results):
        if isinstance(result, KeyTaken):
            raise KeyReused(f"The key of submission {place} belongs to another request; nothing was written.")
        admitted.append(result)
    return admitted


def _winner(job: Admission) -> Program[Admitted | KeyTaken]:
    if job.key is None:
        return Admitted(job.job_id, replayed=False)
    rows = yield Statement("submission_of", {"tenant": job.tenant, "owner": job.owner, "key": job.key})
    if not rows:  # gone between the two statements
        raise Repeat
    _, fingerprint, job_id = rows[0]
    if fingerprint != job.fingerprint:
        return KeyTaken()
    return Admitted(job_id, replayed=job_id != job.job_id)


def columns(jobs: Sequence[Admission]) -> dict[str, Any]:
    """The batch as flat arrays, as the one statement of PostgreSQL takes them."""
    tasks = [(job, task) for job in jobs for task in job.tasks]
    edges = [(job, task.no, parent, soft) for job, task in tasks for parent, soft in task.parents]
    return {
        "tenants": [j.tenant for j in jobs],
        "owners": [j.owner for j in jobs],
        "keys": [j.key for j in jobs],
        "fingerprints": [j.fingerprint for j in jobs],
        "ids": [j.job_id for j in jobs],
        "kinds": [j.kind for j in jobs],
        "versions": [j.schema_version for j in jobs],
        "labels": [j.label for j in jobs],
        "totals": [len(j.tasks) for j in jobs],
        "requireds": [sum(t.required for t in j.tasks) for j in jobs],
        "usables": [any(t.usable for t in j.tasks) for j in jobs],
        "reruns": [j.rerun_of for j in jobs],
        "roots": [j.effect_root for j in jobs],
        "correlations": [j.correlation_id for j in jobs],
        "traces": [j.traceparent for j in jobs],
        "inputs": [j.input for j in jobs],
        "callers": [j.caller for j in jobs],
        "t_ids": [j.job_id for j, _ in tasks],
        "t_nos": [t.no for _, t in tasks],
        "t_labels": [t.label for _, t in tasks],
        "t_handlers": [t.handler for _, t in tasks],
        "t_queues": [t.queue for _, t in tasks],
        "t_priorities": [t.priority for _, t in tasks],
        "t_requireds": [t.required for _, t in tasks],
        "t_usables": [t.usable for _, t in tasks],
        "t_deps": [len(t.parents) for _, t in tasks],
        "t_max_attempts": [t.max_attempts for _, t in tasks],
        "t_bases": [t.base_ms for _, t in tasks],
        "t_caps": [t.cap_ms for _, t in tasks],
        "t_windows": [t.window_ms for _, t in tasks],
        "t_deadlines": [t.deadline_ms for _, t in tasks],
        "t_items": [t.item for _, t in tasks],
        "t_not_befores": [j.not_before_ms for j, _ in tasks],
        "e_ids": [j.job_id for j, _, _, _ in edges],
        "e_parents": [parent for _, _, parent, _ in edges],
        "e_children": [child for _, child, _, _ in edges],
        "e_softs": [soft for _, _, _, soft in edges],
    }
