"""What holds in every state that a race may leave, read from the rows alone."""

from __future__ import annotations

from typing import Any

from interleave.scenes import State
from outlast.domain.states import FINAL_JOBS, FINAL_TASKS, count, outcome_of, stored_job_state

Row = dict[str, Any]


def violations(state: State, before: State) -> list[str]:
    """Every invariant that does not hold; `before` is where the run started."""
    found: list[str] = []
    tasks: dict[str, list[Row]] = {}
    for task in state["task"]:
        tasks.setdefault(task["job_id"], []).append(task)
    jobs = {job["id"]: job for job in state["job"]}
    for job in state["job"]:
        found += _job(job, tasks.get(job["id"], []))
    found += _entries(state)
    found += _slots(state)
    found += _outputs(state)
    found += _attention(state, jobs)
    found += _graph(state)
    found += _effects(state, before)
    found += _monotone(state, before)
    found += [f"{table}: rows of no job" for table in ("task", "queue_entry", "job_input", "output", "step", "attempt", "attention", "edge")
              if {row["job_id"] for row in state[table]} - set(jobs)]  # fmt: skip
    found += [f"job {job} without input" for job in set(jobs) - {row["job_id"] for row in state["job_input"]}]
    for row in state["submission"]:
        buried = [row[name] is not None for name in ("purged_at", "expires_at", "final_state", "outcome", "finished_at")]
        if (all(buried), any(buried)) != ((False, False) if row["job_id"] in jobs else (True, True)):
            found.append(f"the key {row['key']} names no job that it says is there, or a job that it says was purged")
    return found


def _job(job: Row, tasks: list[Row]) -> list[str]:
    counted = count((task["state"], task["required"]) for task in tasks)
    found = [f"job.{name} is {job[name]}, its tasks give {value}" for name, value in counted._asdict().items() if job[name] != value]
    wanted = stored_job_state(cancelled=job["cancelled_at"] is not None, open=counted.open, attention=counted.attention)
    if job["state"] != wanted:
        found.append(f"job.state is {job['state']}, its rows give {wanted}")
    final = job["state"] in FINAL_JOBS
    found += [f"{name} does not go with the state" for name in ("finished_at", "outcome", "purge_at") if final != (job[name] is not None)]
    if final and job["active_key"] is not None:
        found.append("a final job that has its unique key still")
    if final and any(task["state"] not in FINAL_TASKS for task in tasks):
        found.append("a final job with a task that is not final")
    if job["state"] == "completed":
        if job["outcome"] != outcome_of(problems=counted.problems):
            found.append(f"outcome {job['outcome']} with {counted.problems} problems")
        if any(task["required"] and task["state"] != "completed" for task in tasks):
            found.append("completed without all that is required")
    return found + _usable(job, tasks, required_open=counted.required_open)


def _usable(job: Row, tasks: list[Row], *, required_open: int) -> list[str]:
    usable = job["usable_at"] is not None
    marked = [task for task in tasks if task["usable"]]
    if marked:
        wrong = usable != any(task["state"] == "completed" for task in marked)
    else:
        wrong = job["cancelled_at"] is None and usable != (required_open == 0)
    return ["usable_at does not go with what makes the job usable"] if wrong else []


def _entries(state: State) -> list[str]:
    entries = {(row["job_id"], row["no"]): row for row in state["queue_entry"]}
    found = [said for task in state["task"] for said in _entry_of(task, entries.get((task["job_id"], task["no"])))]
    for (_, no), entry in entries.items():
        held = entry["holder"] is not None
        if held != (entry["lease_until"] is not None) or held != (entry["deadline_at"] is not None):
            found.append(f"entry {no}: holder, lease and deadline do not go together")
        if entry["ready_at"] is None and (held or entry["due_at"] is None):
            found.append(f"entry {no}: not ready, and held or not due either")
        if held and entry["fence"] < 1:
            found.append(f"entry {no}: held without a fence")
    return found


def _entry_of(task: Row, entry: Row | None) -> list[str]:
    where = f"task {task['no']} ({task['state']})"
    if task["state"] == "open":
        if entry is None:
            return [f"{where} has no entry: nobody will ever run it"]
        return [f"{where} has a revoked entry"] if entry["revoked"] else []
    if entry is None:
        return []
    found = []
    if not (task["state"] == "cancelled" and entry["revoked"] and entry["holder"] is not None):
        found.append(f"{where} has an entry that is not revoked and held")
    if (task["fence"], task["spent"]) != (entry["fence"], entry["spent"]):
        found.append(f"{where} does not keep fence and attempts of its entry")
    return found


def _slots(state: State) -> list[str]:
    """Who holds a task that has a key has one slot of it, and nobody else has one; so no limit is passed."""
    taken = sorted((row["key"], row["job_id"], row["no"], row["fence"]) for row in state["slot"] if row["job_id"] is not None)
    held = [row for row in state["queue_entry"] if row["holder"] is not None and row["slot_key"] is not None]
    wanted = sorted((row["slot_key"], row["job_id"], row["no"], row["fence"]) for row in held)
    found = [] if taken == wanted else [f"slots of {taken}, claims {wanted}"]
    limits = {(row["job_id"], row["no"]): row["slot_limit"] for row in held}
    found += [f"slot {row['n']} above a limit" for row in state["slot"] if row["n"] > limits.get((row["job_id"], row["no"]), row["n"])]
    return found


def _outputs(state: State) -> list[str]:
    done = {(task["job_id"], task["no"]) for task in state["task"] if task["state"] == "completed"}
    stored = [(row["job_id"], row["no"]) for row in state["output"]]
    return [] if sorted(stored) == sorted(done) else [f"outputs {stored}, completed tasks {sorted(done)}"]


def _attention(state: State, jobs: dict[str, Row]) -> list[str]:
    found: list[str] = []
    asking = {(task["job_id"], task["no"]) for task in state["task"] if task["state"] == "needs_attention"}
    open_ = [(row["job_id"], row["no"]) for row in state["attention"] if row["resolved_at"] is None]
    if sorted(open_) != sorted(asking):
        found.append(f"open questions {sorted(open_)}, tasks that ask {sorted(asking)}")
    if any(jobs[job]["state"] in FINAL_JOBS for job, _ in open_ if job in jobs):
        found.append("an open question of a final job")
    return found


def _graph(state: State) -> list[str]:
    """Each blocked task waits for exactly the parents that have not satisfied it; each other one for none."""
    found: list[str] = []
    tasks = {(task["job_id"], task["no"]): task for task in state["task"]}
    waits: dict[tuple[str, int], int] = {}
    for edge in state["edge"]:
        parent = tasks[edge["job_id"], edge["parent"]]["state"]
        met = parent == "completed" or (edge["soft"] and parent in ("failed", "skipped"))
        child = (edge["job_id"], edge["child"])
        waits[child] = waits.get(child, 0) + (not met)
    for place, task in tasks.items():
        left = waits.get(place, 0)
        if task["state"] in ("open", "needs_attention", "completed", "failed") and left:
            found.append(f"task {place[1]} is {task['state']} before {left} of its parents ended")
        if task["state"] == "blocked" and (not left or task["deps_left"] != left):
            found.append(f"task {place[1]} is blocked with deps_left {task['deps_left']}, {left} parents are missing")
    return found


def _effects(state: State, before: State) -> list[str]:
    """Each effect is of a claim that was made, and its end stays; one that begins after a cancel would be of nobody's claim."""
    found: list[str] = []
    fences = _fences(state)
    jobs = {job["id"]: job for job in state["job"]}
    roots = {job["effect_root"] for job in state["job"]}
    old = {_key(row): row for row in before["effect"]}
    for row in state["effect"]:
        where = f"effect {row['name']} ({row['state']})"
        if row["effect_root"] not in roots:
            found.append(f"{where}: of a root of which no job is left")
        if row["job_id"] in jobs and row["fence"] > fences.get((row["job_id"], row["no"]), 0):
            found.append(f"{where}: the intent of a fence that nobody had")
        if row["job_id"] in jobs and row["effect_root"] != jobs[row["job_id"]]["effect_root"]:
            found.append(f"{where}: not of its job's root")
        if (row["settled_at"] is not None) != (row["state"] in ("confirmed", "refused")):
            found.append(f"{where}: settled_at does not go with the state")
        if row["outcome"] is not None and row["state"] != "confirmed":
            found.append(f"{where}: an outcome")
        was = old.get(_key(row))
        if was is not None and was["state"] == "confirmed" and _timeless(row) != _timeless(was):
            found.append(f"{where}: it was confirmed, and changed")
        if was is not None and was["provider_key"] != row["provider_key"]:
            found.append(f"{where}: another key")
    if {_key(row) for row in before["effect"] if row["effect_root"] in roots} - {_key(row) for row in state["effect"]}:
        found.append("an effect is gone")
    return found


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
