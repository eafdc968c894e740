"""Admission: a job, its input, tasks, entries and idempotency record in one transaction, or nothing of it (T1, J1)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outlast.domain.errors import KeyReused
from outlast.domain.requests import same_request
from outlast.domain.states import FINAL_JOBS
from outlast.domain.work import ActiveKey, ActiveTaken, Admission, Admitted, KeyHeld, KeyTaken, Tombstone
from outlast.store.program import Access, Program, Repeat, Statement, operation
from outlast.store.programs import quotas
from outlast.store.programs.control import end_job


@operation(Access.STATEMENT, patient=False)
def admit(jobs: Sequence[Admission]) -> Program[list[Admitted | KeyTaken]]:
    """Admits each job whose key is new; the others get the job that has the key, or KeyTaken for another request.

    Repeating it is how an unknown commit is resolved: the insert waits on the unique index, where a read could miss a commit
    in flight, and a job's own id tells its first admission from an earlier one.
    """
    rows = yield Statement("admit", columns(jobs))
    new = {str(row[0]) for row in rows}
    results: dict[int, Admitted | KeyTaken] = {}
    for place, job in _in_key_order(jobs):
        results[place] = Admitted(job.job_id, replayed=False) if job.job_id in new else (yield from _winner(job))
    return [results[place] for place in range(len(jobs))]


@operation(Access.TRANSACTION, patient=False)
def admit_alone(job: Admission) -> Program[Admitted | KeyTaken | ActiveTaken]:
    """Admits a job that has a unique key or a quota (J1, J6).

    With the active job that has the key it does what the policy says. QuotaExceeded, which rolls the transaction back, if the job
    were new and there is no room for it.
    """
    yield from quotas.hold([job])
    (result,) = yield from each([job])
    return result


@operation(Access.TRANSACTION, patient=False)
def admit_all(jobs: Sequence[Admission]) -> Program[list[Admitted]]:
    """As `admit` or `admit_alone`, all or none: KeyReused, KeyHeld or QuotaExceeded, for the first refused, roll the transaction back.

    Invalid, which does so too, if there are more new ones than a quota allows.
    """
    results: Sequence[Admitted | KeyTaken | ActiveTaken]
    if any(job.alone for job in jobs):
        yield from quotas.hold(jobs)
        results = yield from each(jobs)
    else:
        results = yield from admit(jobs).start()
    return all_of(results)


@dataclass(slots=True)
class Trail:
    """What an admission has written whose transaction it cannot roll back, beside the jobs themselves."""

    pointed: list[Admission] = field(default_factory=list[Admission])
    """Those whose key, which was just taken, stands for another job."""


@operation(Access.TRANSACTION, patient=False)
def admit_joined(jobs: Sequence[Admission], trail: Trail) -> Program[list[Admitted | KeyTaken | ActiveTaken]]:
    """As `admit` and `admit_alone`, of one, or as `admit_all`, of several, in a transaction of the caller's.

    Nothing here rolls it back: `take_back` follows whatever this raises. An active job that is given is not locked: it would stay so as
    long as the caller likes, and its tasks could not end.
    """
    results: Sequence[Admitted | KeyTaken | ActiveTaken]
    if any(job.alone for job in jobs):
        yield from quotas.hold(jobs)
        results = yield from each(jobs, trail)
    else:
        results = yield from admit(jobs).start()
    if len(jobs) > 1:
        return [*all_of(results)]
    return [*results]


@operation(Access.TRANSACTION, patient=False)
def take_back(jobs: Sequence[Admission], trail: Trail) -> Program[None]:
    """Deletes what `admit_joined` has written in the transaction that it stands in: nobody else has seen it."""
    for tenant in sorted({job.tenant for job in jobs}):
        ids = json.dumps([job.job_id for job in jobs if job.tenant == tenant])
        yield Statement("drop_submissions", {"tenant": tenant, "ids": ids})
        yield Statement("drop_entries", {"tenant": tenant, "ids": ids})
        yield Statement("delete_jobs", {"tenant": tenant, "ids": ids})
    for job in trail.pointed:
        yield Statement("drop_pointed", {"tenant": job.tenant, "owner": job.owner, "key": job.key})


def all_of(results: Sequence[Admitted | KeyTaken | ActiveTaken]) -> list[Admitted]:
    """The results, if all were admitted; KeyReused or KeyHeld for the first that was not."""
    admitted: list[Admitted] = []
    for place, result in enumerate(results):
        if isinstance(result, KeyTaken):
            raise KeyReused(f"The key of submission {place} belongs to another request; nothing was written.")
        if isinstance(result, ActiveTaken):
            raise KeyHeld(place, result.job_id)
        admitted.append(result)
    return admitted


def each(jobs: Sequence[Admission], trail: Trail | None = None) -> Program[list[Admitted | KeyTaken | ActiveTaken]]:
    """Each job's outcome, unique keys included, and room taken for those that are new. Their quotas are held.

    Locks are taken in one order: quotas, submissions by key, then new jobs by unique key, then the active ones by id, then new jobs
    in the place of those that end. The last waits for nobody: whoever wants the same unique key waits for the job that had it.
    trail: the transaction is the caller's.
    """
    rows = yield Statement("admit", columns(jobs))
    new = {str(row[0]) for row in rows}
    results: dict[int, Admitted | KeyTaken | ActiveTaken] = {}
    waiting: dict[int, ActiveKey] = {}
    for place, job in _in_key_order(jobs):
        if job.job_id in new:
            results[place] = Admitted(job.job_id, replayed=False)
            continue
        found = yield from _winner(job)
        mine = isinstance(found, Admitted) and not found.replayed
        if job.unique is None or not mine or (yield Statement("job_stands", {"tenant": job.tenant, "job_id": job.job_id})):
            results[place] = found
        else:
            waiting[place] = job.unique
    beside = yield from _beside(jobs, waiting, trail)
    results.update(beside)
    replacing = {result.job_id for result in beside.values() if isinstance(result, Admitted) and result.replaced is not None}
    yield from quotas.take([job for job in jobs if job.job_id in new | replacing])
    return [results[place] for place in range(len(jobs))]


def _beside(jobs: Sequence[Admission], waiting: Mapping[int, ActiveKey], trail: Trail | None) -> Program[dict[int, Admitted | ActiveTaken]]:
    """What becomes of those whose unique key an active job has: that one is given, or ends (J6), or stands in the way.

    It is locked before it is given or ended, so that it is active when this commits, whoever would end it meanwhile; in a transaction of
    the caller's nothing is.
    """
    results: dict[int, Admitted | ActiveTaken] = {}
    actives: dict[int, str] = {}
    for place, unique in waiting.items():
        active, owner = yield from _active(jobs[place].tenant, unique)
        if unique.policy == "reject" or owner != jobs[place].owner:  # nobody is given what is another's, nor ends it
            results[place] = yield from _dropped(jobs[place], active)
        else:
            actives[place] = active
    if trail is None:
        yield from _keep({active: jobs[place] for place, active in actives.items()})
    replacing = {active: place for place, active in actives.items() if waiting[place].policy == "replace"}
    for active, place in replacing.items():
        job, keep = jobs[place], waiting[place].retention_ms
        yield from end_job(job.tenant, active, outcome="superseded", actor=job.owner, retention_ms=keep)
        results[place] = Admitted(job.job_id, replayed=False, replaced=active)
    if replacing:
        wanted = [replace(jobs[place], key=None) for place in replacing.values()]  # their keys are theirs by now
        if len((yield Statement("admit", columns(wanted)))) != len(wanted):
            raise Repeat
    for place, active in actives.items():
        if place not in results:
            given = jobs[replacing[active]].job_id if active in replacing else active
            if trail is not None and jobs[place].key is not None:
                trail.pointed.append(jobs[place])  # before it is so: whoever waits for it may be gone when it is
            results[place] = yield from _given(jobs[place], given)
    return results


def _keep(actives: Mapping[str, Admission]) -> Program[None]:
    """Locks active jobs, in key order; each with one of those that ask for it, who is its owner."""
    for active, job in sorted(actives.items()):
        locked = yield Statement("lock_job", {"tenant": job.tenant, "job_id": active, "owner": job.owner})
        if not locked or locked[0][0] in FINAL_JOBS:  # it ended by itself meanwhile
            raise Repeat


def _given(job: Admission, active: str) -> Program[Admitted]:
    """The key that was just taken stands for the active job."""
    if job.key is not None:
        yield Statement("point_submission", {"tenant": job.tenant, "owner": job.owner, "key": job.key, "job_id": active})
    return Admitted(active, replayed=True)


def _dropped(job: Admission, active: str) -> Program[ActiveTaken]:
    """The key that was just taken is free again."""
    if job.key is not None:
        yield Statement("drop_submission", {"tenant": job.tenant, "owner": job.owner, "key": job.key, "job_id": job.job_id})
    return ActiveTaken(active)


def _active(tenant: str, unique: ActiveKey) -> Program[tuple[str, str]]:
    """Id and owner of the job that has the unique key; it may have ended between the two statements."""
    rows = yield Statement("active_job", {"tenant": tenant, "scope": unique.scope, "active": unique.key})
    if not rows:
        raise Repeat
    return str(rows[0][0]), str(rows[0][1])


def _winner(job: Admission) -> Program[Admitted | KeyTaken]:
    """What the key of a job that was not admitted stands for; a key whose horizon is over is free, and the job is admitted after all."""
    if job.key is None:
        return Admitted(job.job_id, replayed=False)
    key = {"tenant": job.tenant, "owner": job.owner, "key": job.key}
    rows = yield Statement("submission_of", key)
    if rows and rows[0][7]:
        yield Statement("drop_outlived", key)  # right by itself, whatever becomes of the rest
        if (yield Statement("admit", columns([job]))):
            return Admitted(job.job_id, replayed=False)
        rows = yield Statement("submission_of", key)
    if not rows:  # gone between two statements
        raise Repeat
    _, fingerprint, job_id, state, outcome, finished_at, purged_at, _ = rows[0]
    if not same_request(fingerprint, job.fingerprint):
        return KeyTaken()
    if purged_at is not None:
        return Admitted(job_id, replayed=True, tombstone=Tombstone(job_id, state, outcome, finished_at, purged_at))
    return Admitted(job_id, replayed=job_id != job.job_id)


def _in_key_order(jobs: Sequence[Admission]) -> list[tuple[int, Admission]]:
    """Jobs with their places: who frees keys and takes them again does so in the order in which the statement takes them."""
    return sorted(enumerate(jobs), key=lambda one: (one[1].tenant, one[1].owner, one[1].key or "", one[0]))


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
        "target_refs": [None if j.target is None else j.target.ref for j in jobs],
        "target_versions": [None if j.target is None else j.target.version for j in jobs],
        "inputs": [j.input for j in jobs],
        "callers": [j.caller for j in jobs],
        "scopes": [None if j.unique is None else j.unique.scope for j in jobs],
        "actives": [None if j.unique is None else j.unique.key for j in jobs],
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
        "t_slot_keys": [t.slot_key for _, t in tasks],
        "t_slot_limits": [t.slot_limit for _, t in tasks],
        "t_not_befores": [j.not_before_ms for j, _ in tasks],
        "e_ids": [j.job_id for j, _, _, _ in edges],
        "e_parents": [parent for _, _, parent, _ in edges],
        "e_children": [child for _, child, _, _ in edges],
        "e_softs": [soft for _, _, _, soft in edges],
    }
