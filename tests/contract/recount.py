"""Recomputes every counter, state and edge from the rows; what differs from what is stored is a defect."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from contract.backends import Backend, Row
from outlast.domain.states import FINAL_JOBS, Counters, count, outcome_of, stored_job_state

_OF_A_JOB = ("job_input", "task", "queue_entry", "edge", "output", "attempt", "step", "attention", "submission", "effect")
Key = tuple[str, str]


def differences(backend: Backend) -> list[str]:
    """What does not add up, as sentences."""
    tables = {name: backend.query(f"select * from {{outlast.{name}}}") for name in (*_OF_A_JOB, "job")}
    by_job: dict[str, dict[Key, list[Row]]] = {name: defaultdict(list) for name in _OF_A_JOB}
    jobs = {(job["tenant"], job["id"]): job for job in tables["job"]}
    found: list[str] = []
    for name in _OF_A_JOB:
        for row in tables[name]:
            key = (row["tenant"], row["job_id"])
            by_job[name][key].append(row)
            if key not in jobs and not _outlives(name, row, tables["job"]):
                found.append(f"{name} of a job that is not there: {row}")
    found += _slots(backend.query("select * from {outlast.slot}"), tables["queue_entry"])
    found += _quotas(backend, jobs)
    for key, job in jobs.items():
        of_job = {name: by_job[name][key] for name in _OF_A_JOB}
        label = f"job {job['id'][-4:]}"
        found += [f"{label}: {text}" for text in (*_job(job, of_job), *_tasks(job, of_job), *_graph(of_job), *_usable(job, of_job["task"]))]
    return found


def _quotas(backend: Backend, jobs: Mapping[Key, Row]) -> list[str]:
    held = {(q["tenant"], q["owner"], q["kind"]): q["counted"] for q in backend.query("select * from {outlast.quota}")}
    found = [f"a quota whose open jobs were not counted: {place}" for place, counted in held.items() if not counted]
    for row in backend.query("select * from {outlast.quota_job}"):
        job = jobs.get((row["tenant"], row["job_id"]))
        if job is None:
            found.append(f"a job counted that is not there: {row}")
        elif (job["owner"], job["kind"]) != (row["owner"], row["kind"]):
            found.append(f"a job counted for another owner or kind: {row}")
        if (row["tenant"], row["owner"], row["kind"]) not in held:
            found.append(f"a job counted for no quota: {row}")
    return found


def _outlives(name: str, row: Row, jobs: list[Row]) -> bool:
    """What may stand without its job: a tombstone, and an effect as long as some job has its root."""
    if name == "submission":
        return row["purged_at"] is not None and row["expires_at"] is not None and row["final_state"] in FINAL_JOBS
    return name == "effect" and any((j["tenant"], j["effect_root"]) == (row["tenant"], row["effect_root"]) for j in jobs)


def _job(job: Row, of_job: dict[str, list[Row]]) -> list[str]:
    tasks = of_job["task"]
    stored = Counters(*(job[name] for name in Counters._fields))
    counted = count((t["state"], bool(t["required"])) for t in tasks)
    state = stored_job_state(cancelled=job["cancelled_at"] is not None, open=counted.open, attention=counted.attention)
    final = state in FINAL_JOBS
    found = []
    if stored != counted:
        found.append(f"counters {stored} but counted {counted}")
    if job["state"] != state:
        found.append(f"state {job['state']} but it follows {state}")
    ends = ("finished_at", "purge_at", "outcome")
    found += [f"{name} is {job[name]} though the job is {state}" for name in ends if (job[name] is not None) != final]
    if final and job["active_key"] is not None:
        found.append("its unique key is not free though it has ended")
    if state == "completed" and job["outcome"] != outcome_of(problems=counted.problems):
        found.append(f"outcome {job['outcome']} with {counted.problems} problems")
    if state == "cancelled" and job["outcome"] not in ("user", "abandoned", "superseded"):
        found.append(f"outcome {job['outcome']} of a cancelled job")
    if len(of_job["job_input"]) != 1:
        found.append(f"{len(of_job['job_input'])} inputs")
    if sorted(t["no"] for t in tasks) != list(range(job["total"])):
        found.append("places are missing in the plan")
    return found


def _tasks(job: Row, of_job: dict[str, list[Row]]) -> list[str]:
    entries = {e["no"]: e for e in of_job["queue_entry"]}
    outputs = Counter(o["no"] for o in of_job["output"])
    questions = Counter(q["no"] for q in of_job["attention"] if q["resolved_at"] is None)
    found = []
    for task in of_job["task"]:
        no, state = task["no"], task["state"]
        if outputs[no] != int(state == "completed"):
            found.append(f"task {no} is {state} and has {outputs[no]} outputs")
        if questions[no] != int(state == "needs_attention"):
            found.append(f"task {no} is {state} and has {questions[no]} open questions")
        found += [f"task {no} is {state} and its entry {text}" for text in _entry(state, task, entries.get(no))]
    return found


def _entry(state: str, task: Row, entry: Row | None) -> list[str]:
    if entry is None:
        return ["is missing"] if state == "open" else []
    held = entry["holder"] is not None
    found = []
    if state != "open" and not (state == "cancelled" and held and entry["revoked"]):
        found.append("stands")
    if state == "open" and entry["revoked"]:
        found.append("is revoked")
    if held != (entry["lease_until"] is not None) or held != (entry["deadline_at"] is not None):
        found.append("has half a lease")
    elif held and entry["lease_until"] > entry["deadline_at"]:
        found.append("has a lease past its deadline")
    if held and entry["ready_at"] is None:
        found.append("is held but not ready")
    if not held and entry["ready_at"] is None and entry["due_at"] is None:
        found.append("waits for nothing")
    if entry["fence"] < task["fence"]:
        found.append(f"has fence {entry['fence']} after {task['fence']}")
    return found


def _slots(slots: list[Row], entries: list[Row]) -> list[str]:
    """C8: who holds a task that has a key has one of its slots, and nobody else has one."""
    taken = Counter((s["tenant"], s["key"], s["job_id"], s["no"], s["fence"]) for s in slots if s["job_id"] is not None)
    held = [e for e in entries if e["holder"] is not None and e["slot_key"] is not None]
    wanted = Counter((e["tenant"], e["slot_key"], e["job_id"], e["no"], e["fence"]) for e in held)
    limits = {(e["tenant"], e["job_id"], e["no"]): e["slot_limit"] for e in held}
    found = [f"the slot of {claim} is of no claim" for claim in taken - wanted]
    found += [f"the claim {claim} has no slot" for claim in wanted - taken]
    for slot in slots:
        if (slot["job_id"] is None) != (slot["no"] is None) or (slot["job_id"] is None) != (slot["fence"] is None):
            found.append(f"half a slot: {slot}")
        if slot["job_id"] is not None and slot["n"] > limits.get((slot["tenant"], slot["job_id"], slot["no"]), slot["n"]):
            found.append(f"a slot above its task's limit: {slot}")
    return found


def _graph(of_job: dict[str, list[Row]]) -> list[str]:
    tasks = {t["no"]: t for t in of_job["task"]}
    found = []
    waits: Counter[int] = Counter()
    for edge in of_job["edge"]:
        parent, child = tasks[edge["parent"]], tasks[edge["child"]]
        soft = bool(child["required"]) and not parent["required"]
        if bool(edge["soft"]) != soft:
            found.append(f"edge {edge['parent']}-{edge['child']} is soft: {edge['soft']}")
        failed = parent["state"] in ("failed", "skipped")
        if parent["state"] != "completed" and not (soft and failed):
            waits[edge["child"]] += 1
        if failed and not soft and child["state"] == "blocked":
            found.append(f"task {edge['child']} waits for {edge['parent']}, which will never complete")
    for no, task in tasks.items():
        if task["state"] in ("blocked", "open", "needs_attention", "completed", "failed") and task["deps_left"] != waits[no]:
            found.append(f"task {no} waits for {task['deps_left']} but counted {waits[no]}")
        if (task["state"] == "blocked") != (waits[no] > 0) and task["state"] not in ("skipped", "cancelled"):
            found.append(f"task {no} is {task['state']} and waits for {waits[no]}")
    return found


def _usable(job: Row, tasks: list[Row]) -> list[str]:
    marked = [t for t in tasks if t["usable"]]
    if bool(job["usable_marked"]) != bool(marked):
        return ["usable_marked is wrong"]
    completed = [t["state"] == "completed" for t in marked or tasks if marked or t["required"]]
    reached = any(completed) if marked else all(completed)
    if reached != (job["usable_at"] is not None):
        return [f"usable_at is {job['usable_at']}, by its tasks it is {reached}"]
    return []
