"""What holds in every state that a race may leave: the product's rules on its rows, and what may not have changed on the way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from interleave.scenes import State
from outlast.domain.soundness import rows
from outlast.domain.soundness.rules import of_effect, of_job
from outlast.domain.states import FINAL_JOBS

Row = dict[str, Any]
R = TypeVar("R")
_OF_JOBS = ("task", "queue_entry", "job_input", "output", "step", "attempt", "attention", "edge", "quota_job")
_ASIDE = {"A5 plan"}  # the plans of the scenes have gaps, so that a number means the same task in each of them
_BURIED = ("purged_at", "expires_at", "final_state", "outcome", "finished_at")


def violations(state: State, before: State) -> list[str]:
    """Every invariant that does not hold; `before` is where the run started."""
    jobs = _jobs(state)
    found = [f"rows of {table} of no job" for table in _OF_JOBS if {row["job_id"] for row in state[table]} - set(jobs)]
    findings = [
        *(f for job in jobs.values() for f in of_job(job) if f.rule.full not in _ASIDE),
        *(f for row in _effects(state, jobs) for f in of_effect(row)),
    ]
    found += [
        f"the job {job_id} has {len(job.tasks)} of {job.job.total} tasks" for job_id, job in jobs.items() if len(job.tasks) != job.job.total
    ]
    found += [f"{f.rule.full}: task {f.no} of {f.job_id}: {f.found}; should be: {f.expected}" for f in findings]
    return found + _beside(state, jobs) + _outlived(state, before) + _monotone(state, before)


def _made(make: Callable[..., R], row: Row, **more: Any) -> R:
    fields: tuple[str, ...] = make._fields  # type: ignore[attr-defined]
    return make(*(more[name] if name in more else row[name] for name in fields))


def _jobs(state: State) -> dict[str, rows.JobRows]:
    jobs = {row["id"]: rows.JobRows(_made(rows.JobRow, row)) for row in state["job"]}
    none = rows.JobRows(None)  # type: ignore[arg-type] # takes in what belongs to no job
    for row in state["job_input"]:
        jobs.get(row["job_id"], none).inputs += 1
    for row in state["task"]:
        jobs.get(row["job_id"], none).tasks[row["no"]] = _made(rows.TaskRow, row)
    for row in state["queue_entry"]:
        # Times are told modulo the tick, so that which of two comes first is lost: they are only there or not.
        times = {name: None if row[name] is None else 0 for name in ("lease_until", "deadline_at")}
        jobs.get(row["job_id"], none).entries[row["no"]] = _made(rows.EntryRow, row, **times)
    for row in state["edge"]:
        jobs.get(row["job_id"], none).edges.append(_made(rows.EdgeRow, row))
    for row in state["output"]:
        jobs.get(row["job_id"], none).outputs[row["no"]] = _made(rows.OutputRow, row)
    for row in state["attempt"]:
        jobs.get(row["job_id"], none).attempts[row["no"]].append(_made(rows.AttemptRow, row))
    for row in state["attention"]:
        jobs.get(row["job_id"], none).questions[row["no"]].append(_made(rows.QuestionRow, row))
    _steps_and_slots(state, jobs, none)
    return jobs


def _steps_and_slots(state: State, jobs: dict[str, rows.JobRows], none: rows.JobRows) -> None:
    steps: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for row in state["step"]:
        steps[row["job_id"], row["no"]].append(row["fence"])
    for (job_id, no), fences in steps.items():
        jobs.get(job_id, none).steps[no] = rows.StepsRow(no, len(fences), min(fences), max(fences))
    for row in state["slot"]:
        if row["job_id"] is not None:
            jobs.get(row["job_id"], none).slots.append(_made(rows.SlotRow, row))


def _effects(state: State, jobs: dict[str, rows.JobRows]) -> list[rows.EffectRow]:
    found = []
    for row in state["effect"]:
        job = jobs.get(row["job_id"])
        task = None if job is None else job.tasks.get(row["no"])
        place = {
            "has_outcome": row["outcome"] is not None,
            "job_root": None if job is None else job.job.effect_root,
            "task_label": None if task is None else task.label,
            "last_fence": None if job is None or task is None else job.last_fence(task),
        }
        found.append(_made(rows.EffectRow, row, **place))
    return found


def _beside(state: State, jobs: dict[str, rows.JobRows]) -> list[str]:
    """What is of no job that is there: keys of purged jobs, effects of a root that another job has, slots, what quotas count."""
    found: list[str] = []
    for row in state["submission"]:
        buried = [row[name] is not None for name in _BURIED]
        if (all(buried), any(buried)) != ((False, False) if row["job_id"] in jobs else (True, True)):
            found.append(f"the key {row['key']} names no job that it says is there, or a job that it says was purged")
    roots = {job["effect_root"] for job in state["job"]}
    found += [
        f"the effect {row['name']} is of a root of which no job is left" for row in state["effect"] if row["effect_root"] not in roots
    ]
    found += [f"a slot of {row['key']} is taken by no job" for row in state["slot"] if row["job_id"] not in jobs and any(_holder(row))]
    quotas = {(row["tenant"], row["owner"], row["kind"]): row["counted"] for row in state["quota"]}
    owners = {job["id"]: (job["tenant"], job["owner"], job["kind"]) for job in state["job"]}
    for row in state["quota_job"]:
        place = (row["tenant"], row["owner"], row["kind"])
        if place not in quotas or owners.get(row["job_id"], place) != place:
            found.append(f"the job {row['job_id']} is counted by no quota, or by another's")
    return found + [f"the quota of {place} has not counted what was open" for place, counted in quotas.items() if not counted]


def _holder(row: Row) -> list[bool]:
    return [row[name] is not None for name in ("job_id", "no", "fence")]


def _outlived(state: State, before: State) -> list[str]:
    """What is known of an effect stays as long as a job has its root, and no two jobs have one unique key."""
    found: list[str] = []
    now = {_key(row): row for row in state["effect"]}
    roots = {job["effect_root"] for job in state["job"]}
    for was in before["effect"]:
        row = now.get(_key(was))
        if row is None:
            if was["effect_root"] in roots:
                found.append("an effect is gone")
            continue
        if was["state"] == "confirmed" and _timeless(row) != _timeless(was):
            found.append(f"the effect {row['name']} was confirmed, and changed")
        if was["provider_key"] != row["provider_key"]:
            found.append(f"the effect {row['name']} has another key")
    keys = Counter((row["tenant"], row["active_scope"], row["active_key"]) for row in state["job"] if row["active_key"] is not None)
    return found + [f"{number} jobs with one unique key" for number in keys.values() if number > 1]


def _timeless(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.endswith("_at")}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("tenant", "effect_root", "label", "name", "input_hash"))


def _monotone(state: State, before: State) -> list[str]:
    found: list[str] = []
    there = {job["id"] for job in state["job"]}  # of a job that was deleted nothing is left, which `violations` sees to
    now, was = _fences(state), {place: fence for place, fence in _fences(before).items() if place[0] in there}
    found += [f"fence of task {place[1]} went from {was[place]} to {now.get(place)}" for place in was if now.get(place, -1) < was[place]]
    for table, key in (("output", "no"), ("step", "name"), ("attempt", "fence"), ("attention", "id")):
        kept = {(row["job_id"], row["no"], row[key]) for row in state[table]}
        gone = {(row["job_id"], row["no"], row[key]) for row in before[table] if row["job_id"] in there} - kept
        found += [f"{table} {row} is gone" for row in sorted(gone)]
    old = {job["id"]: job for job in before["job"]}
    for job in state["job"]:
        past = old.get(job["id"])
        if past is None:
            continue
        if job["version"] < past["version"]:
            found.append("the version went back")
        if past["state"] in FINAL_JOBS and job["state"] != past["state"]:
            found.append(f"a final job went from {past['state']} to {job['state']}")
    return found


def _fences(state: State) -> dict[tuple[str, int], int]:
    fences = {(task["job_id"], task["no"]): int(task["fence"]) for task in state["task"]}
    for entry in state["queue_entry"]:
        fences[entry["job_id"], entry["no"]] = int(entry["fence"])
    return fences
