"""What PostgreSQL does in one statement and SQLite in several: sub-programs that stand for a statement of that name.

There is one writer, so that nothing can come between their statements; they share their parts with the programs that take several
statements on both stores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from outlast.store.drive import SubPrograms
from outlast.store.program import Program, Rows, Statement
from outlast.store.programs.graph import JobChange, settle_children, write
from outlast.store.programs.slots import free

_JOB = {
    "tenants": "tenant", "owners": "owner", "keys": "key", "fingerprints": "fingerprint", "ids": "job_id", "kinds": "kind",
    "versions": "schema_version", "labels": "label", "totals": "total", "requireds": "required", "usables": "usable_marked",
    "reruns": "rerun_of", "roots": "effect_root", "correlations": "correlation_id", "traces": "traceparent", "inputs": "input",
    "target_refs": "target_ref", "target_versions": "target_version",
    "callers": "caller", "scopes": "scope", "actives": "active",
}  # fmt: skip
_TASK = {
    "t_ids": "job_id", "t_nos": "no", "t_labels": "label", "t_handlers": "handler", "t_queues": "queue", "t_priorities": "priority",
    "t_requireds": "required", "t_usables": "usable", "t_deps": "deps", "t_max_attempts": "max_attempts", "t_bases": "base_ms",
    "t_caps": "cap_ms", "t_windows": "window_ms", "t_deadlines": "deadline_ms", "t_items": "item",
    "t_slot_keys": "slot_key", "t_slot_limits": "slot_limit", "t_not_befores": "not_before",
}  # fmt: skip
_EDGE = {"e_ids": "job_id", "e_parents": "parent", "e_children": "child", "e_softs": "soft"}
_RESULT = {
    "tenants": "tenant", "ids": "job_id", "nos": "no", "fences": "fence", "holders": "holder", "workers": "worker", "bodies": "body",
    "refs": "ref",
}  # fmt: skip
_HELD = {"tenants": "tenant", "ids": "job_id", "nos": "no", "fences": "fence", "holders": "holder"}
_SHARE = {"tenants": "tenant", "keys": "key", "limits": "slot_limit", "takes": "take"}
_RENEWAL = {**_HELD, "progress": "progress"}


def _rows(params: Mapping[str, Any], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Flat arrays as one dict a row."""
    names = tuple(columns.values())
    return [dict(zip(names, values, strict=True)) for values in zip(*(params[c] for c in columns), strict=True)]


def admit(params: Mapping[str, Any]) -> Program[Rows]:
    """Admits row by row; a row for each job admitted."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    for task in _rows(params, _TASK):
        tasks.setdefault(task["job_id"], []).append(task)
    edges: dict[str, list[dict[str, Any]]] = {}
    for edge in _rows(params, _EDGE):
        edges.setdefault(edge["job_id"], []).append(edge)
    admitted: list[tuple[Any, ...]] = []
    for job in _rows(params, _JOB):
        place = {"tenant": job["tenant"], "job_id": job["job_id"]}
        if job["key"] is not None and not (yield Statement("admit_submission", job)):
            continue
        if not (yield Statement("admit_job", job)):
            continue
        yield Statement("admit_input", job)
        for task in tasks.get(job["job_id"], ()):
            yield Statement("admit_task", {**task, **place})
        for edge in edges.get(job["job_id"], ()):
            yield Statement("admit_edge", {**edge, **place})
        yield Statement("open_entries", place)
        admitted.append((job["job_id"],))
    return admitted


def claim(params: Mapping[str, Any]) -> Program[Rows]:
    """Claims row by row, in the order of the claim index."""
    found = yield Statement("claim_candidates", {**params, "handlers": json.dumps(list(params["handlers"]))})
    claimed: list[tuple[Any, ...]] = []
    for tenant, job_id, no in found:
        place = {"tenant": tenant, "job_id": job_id, "no": no}
        yield Statement("claim_one", {**place, "holder": params["holder"], "lease_ms": params["lease_ms"]})
        claimed.extend((yield Statement("claimed_one", place)))
    return claimed


def keyed_rooms(params: Mapping[str, Any]) -> Program[Rows]:
    """The keys of a queue, and then the room in each."""
    found = yield Statement("keyed_walk", params)
    rooms: list[tuple[Any, ...]] = []
    for tenant, key in found:
        place = {"queue": params["queue"], "tenant": tenant, "key": key, "window": params["window"]}
        limits = yield Statement("keyed_room", {**place, "handlers": json.dumps(list(params["handlers"]))})
        rooms.extend((tenant, key, *row) for row in limits or [(None, 0, 0, 0)])
    return rooms


def claim_keyed(params: Mapping[str, Any]) -> Program[Rows]:
    """Claims key by key: a free slot and the task that waits first, as long as there are both."""
    handlers = json.dumps(list(params["handlers"]))
    claimed: list[tuple[Any, ...]] = []
    for share in _rows(params, _SHARE):
        free_slots = yield Statement("free_slots", share)
        found = yield Statement("keyed_candidates", {**share, "queue": params["queue"], "handlers": handlers, "limit": len(free_slots)})
        for (tenant, job_id, no), (n,) in zip(found, free_slots, strict=False):
            place = {"tenant": tenant, "job_id": job_id, "no": no}
            yield Statement("claim_one", {**place, "holder": params["holder"], "lease_ms": params["lease_ms"]})
            yield Statement("take_slot", {**place, "key": share["key"], "n": n})
            claimed.extend((yield Statement("claimed_one", place)))
    return claimed


def renew(params: Mapping[str, Any]) -> Program[Rows]:
    """Renews row by row."""
    renewed: list[tuple[Any, ...]] = []
    for row in _rows(params, _RENEWAL):
        renewed.extend((yield Statement("renew_one", {**row, "lease_ms": params["lease_ms"]})))
    return renewed


def hand_back(params: Mapping[str, Any]) -> Program[Rows]:
    """Lets go row by row."""
    released: list[tuple[Any, ...]] = []
    for row in _rows(params, _HELD):
        gone = yield from release({**row, "delay_ms": None})
        released.extend((row["tenant"], row["job_id"], row["no"], row["fence"]) for _ in gone)
    return released


def release(params: Mapping[str, Any]) -> Program[Rows]:
    """Lets go of one without using an attempt, and frees its slot."""
    gone = yield Statement("release_entry", {**params, "consumed": 0, "code": None})
    yield from _free(params, gone)
    return [(queue,) for _, _, queue, _ in gone]


def finish(params: Mapping[str, Any]) -> Program[Rows]:
    """Stores results row by row, and writes each job once."""
    jobs: dict[tuple[str, str], JobChange] = {}
    accepted: list[tuple[str, str, int]] = []
    for row in _rows(params, _RESULT):
        tenant, job_id, no = row["tenant"], row["job_id"], row["no"]
        place = {"tenant": tenant, "job_id": job_id, "no": no}
        gone = yield Statement("end_entry", row)
        if not gone:
            continue
        spent, claimed_at, slot_key = gone[0]
        yield from free(slot_key, tenant, job_id, no, row["fence"])
        end = {
            **place,
            "state": "completed",
            "fence": row["fence"],
            "spent": spent,
            "code": None,
            "worker": row["worker"],
        }
        ended = yield Statement("end_task", {**end, "started_at": claimed_at})
        required, usable = ended[0]
        yield Statement("insert_output", row)
        job = jobs.setdefault((tenant, job_id), JobChange(tenant, job_id))
        job.moved("open", "completed", required=bool(required))
        if usable:
            job.made_usable(no, row["ref"])
        if (yield Statement("has_children", place)):
            yield from settle_children(job, no, "completed")
        accepted.append((tenant, job_id, no))
    for job in jobs.values():
        yield from write(job, retention_ms=params["retention_ms"])
    opened = sum(job.opened for job in jobs.values())
    return [(*key, opened) for key in accepted]


def delete_jobs(params: Mapping[str, Any]) -> Program[Rows]:
    """Deletes jobs with all that is theirs alone, table by table."""
    yield Statement("delete_tasks", params)
    yield Statement("delete_attention", params)
    yield Statement("delete_outputs", params)
    yield Statement("delete_steps", params)
    yield Statement("delete_attempts", params)
    yield Statement("delete_edges", params)
    yield Statement("delete_inputs", params)
    yield Statement("delete_counted", params)
    return (yield Statement("delete_job_rows", params))


def retry(params: Mapping[str, Any]) -> Program[Rows]:
    """A guarded release that uses an attempt, and its row."""
    released = yield Statement("release_entry", {**params, "consumed": 1})
    return (yield from _attempt(params, released))


def retry_lost(params: Mapping[str, Any]) -> Program[Rows]:
    """The sweep's release, and the attempt's row."""
    released = yield Statement("release_lost", params)
    return (yield from _attempt(params, released))


def _attempt(params: Mapping[str, Any], released: Rows) -> Program[Rows]:
    if not released:
        return ()
    spent, claimed_at, queue, _ = released[0]
    yield from _free(params, released)
    yield Statement("insert_attempt", {**params, "number": spent, "started_at": claimed_at})
    return [(queue,)]


def _free(params: Mapping[str, Any], released: Rows) -> Program[None]:
    for *_, slot_key in released:
        yield from free(slot_key, *(params[name] for name in ("tenant", "job_id", "no", "fence")), pause_ms=params.get("pause_ms"))


SUBPROGRAMS: SubPrograms = {
    "admit": admit,
    "claim": claim,
    "keyed_rooms": keyed_rooms,
    "claim_keyed": claim_keyed,
    "renew": renew,
    "hand_back": hand_back,
    "release": release,
    "finish": finish,
    "delete_jobs": delete_jobs,
    "retry": retry,
    "retry_lost": retry_lost,
}
