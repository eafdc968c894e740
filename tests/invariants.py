"""Recomputes from a store's rows what must hold in every history, in plain SQL and plain Python, on both dialects.

    from invariants import check
    check(url)

It reads one snapshot, so that workers may go on meanwhile, and uses nothing of the engine but its tables. What it knows is
what the rows tell: the graph as admitted, counters and states, fences and attempts, outputs, questions, orphans.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import psycopg

Row = Mapping[str, Any]
Key = tuple[str, str]  # tenant, job id

FINAL_TASKS = ("completed", "skipped", "failed", "cancelled")
FINAL_JOBS = ("completed", "cancelled")
TASK_STATES = ("blocked", "open", "needs_attention", *FINAL_TASKS)
ACTIONS = {"retry", "answer", "skip", "dismiss"}
CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
TABLES = ("job", "job_input", "task", "queue_entry", "edge", "output", "attempt", "step", "attention", "submission", "effect", "slot")
TOMBSTONE = ("expires_at", "final_state", "outcome", "finished_at", "purged_at")


def check(url: str, *, settled: bool = False) -> None:
    """AssertionError with everything that is wrong. settled: moreover, that nothing waits, runs or is blocked any more."""
    found = problems(url)
    if settled:
        found = [*found, *unsettled(url)]
    assert not found, f"{len(found)} invariants do not hold:\n" + "\n".join(found[:50])


def problems(url: str) -> list[str]:
    """What is wrong in a store, a line each; empty when all holds."""
    store = _Snapshot(read(url))
    return [*store.orphans(), *store.slots(), *(said for job in store.jobs.values() for said in job.problems())]


def unsettled(url: str) -> list[str]:
    """The jobs that are neither final nor in need of attention, and the entries that stand."""
    tables = read(url)
    jobs = [f"job {j['id']} is {j['state']}" for j in tables["job"] if j["state"] == "open"]
    return [*jobs, *(f"job {e['job_id']}: task {e['no']} has an entry" for e in tables["queue_entry"])]


def query(url: str, sql: str, params: Sequence[object] = ()) -> list[dict[str, Any]]:
    """Rows of one statement with `{table}` names, such as `select * from {job}`; parameters are written `?`."""
    with _Reading(url) as run:
        return run(sql, params)


def read(url: str) -> dict[str, list[dict[str, Any]]]:
    """All rows of the tables that are checked, in one snapshot."""
    with _Reading(url) as run:
        return {table: run(f"select * from {{{table}}}", ()) for table in TABLES}


class _Reading:
    """A reading transaction on a store."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> Callable[[str, Sequence[object]], list[dict[str, Any]]]:
        if self._url.startswith("sqlite:"):
            path = unquote(self._url.partition(":///")[2])
            self._lite = sqlite3.connect(path, isolation_level=None, timeout=20)
            self._lite.row_factory = sqlite3.Row
            self._lite.execute("begin")
            self._close = self._lite.close
            return self._run_lite
        self._pg = psycopg.connect(self._url, autocommit=True)
        self._pg.execute("begin isolation level repeatable read read only")
        self._close = self._pg.close
        return self._run_pg

    def __exit__(self, *_exc: object) -> None:
        self._close()

    def _run_lite(self, sql: str, params: Sequence[object]) -> list[dict[str, Any]]:
        return [dict(row) for row in self._lite.execute(_named(sql, "outlast_"), tuple(params))]

    def _run_pg(self, sql: str, params: Sequence[object]) -> list[dict[str, Any]]:
        text = _named(sql, "outlast.").replace("%", "%%").replace("?", "%s")
        cursor = self._pg.execute(text, tuple(params))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, _plain(row), strict=True)) for row in cursor.fetchall()]


def _named(sql: str, prefix: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: prefix + match[1], sql)


def _plain(row: Iterable[Any]) -> list[Any]:
    """Ids as text, as SQLite has them."""
    return [str(value) if type(value).__name__ == "UUID" else value for value in row]


@dataclass
class _Job:
    """One job's rows."""

    row: Row
    inputs: int = 0
    tasks: dict[int, Row] = field(default_factory=dict)
    entries: dict[int, Row] = field(default_factory=dict)
    edges: list[Row] = field(default_factory=list)
    outputs: dict[int, Row] = field(default_factory=dict)
    attempts: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    questions: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    effects: list[Row] = field(default_factory=list)  # those whose intent is a claim of this job's

    def problems(self) -> Iterator[str]:
        where = f"job {self.row['id']} ({self.row['state']})"
        for said in self._of_job():
            yield f"{where}: {said}"
        for no, task in sorted(self.tasks.items()):
            for said in (*self._of_task(no, task), *self._of_entry(no, task), *self._of_attempts(no, task)):
                yield f"{where}, task {no} {task['label']!r} ({task['state']}): {said}"

    # -- the job ----------------------------------------------------------------------------------------------

    def _of_job(self) -> Iterator[str]:
        yield from self._as_admitted()
        yield from self._counters()
        yield from self._ends()
        yield from self._cancelled()
        yield from self._usable()
        yield from self._version()
        for effect in self.effects:
            for said in self._of_effect(effect):
                yield f"the effect {effect['name']!r} of {effect['label']!r} ({effect['state']}): {said}"

    def _of_effect(self, effect: Row) -> Iterator[str]:
        """G1 to G3, C2: its intent is a claim that was made, its end is all there or not at all, its key is derived."""
        task = self.tasks.get(effect["no"])
        if effect["state"] not in ("intended", "confirmed", "refused", "unknown"):
            yield "G1: no such state"
        if effect["effect_root"] != self.row["effect_root"]:
            yield f"G1: of the root {effect['effect_root']}, where the job's is {self.row['effect_root']}"
        if task is None or task["label"] != effect["label"]:
            yield "G1: of no task of its job"
        elif not 1 <= effect["fence"] <= self._fence(effect["no"], task):
            yield f"C2: the intent of fence {effect['fence']}, which nobody had"
        if (effect["settled_at"] is not None) != (effect["state"] in ("confirmed", "refused")):
            yield f"G4: settled_at is {effect['settled_at']!r}"
        if effect["outcome"] is not None and effect["state"] != "confirmed":  # a null outcome reads as None on PostgreSQL
            yield "G4: an outcome"
        parts = [str(effect[name]) for name in ("effect_root", "label", "name", "input_hash")]
        key = hashlib.sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
        if effect["provider_key"] != key:
            yield f"G3: the key is {effect['provider_key']}"

    def _as_admitted(self) -> Iterator[str]:
        """A5: all of it exists, or nothing."""
        if self.inputs != 1:
            yield f"A5: {self.inputs} input rows"
        if sorted(self.tasks) != list(range(self.row["total"])):
            yield f"A5: tasks {sorted(self.tasks)} where total is {self.row['total']}"
        if len({t["label"] for t in self.tasks.values()}) != len(self.tasks):
            yield "A5: a label twice"
        if not any(t["required"] for t in self.tasks.values()):
            yield "A5: no required task"
        if bool(self.row["usable_marked"]) != any(t["usable"] for t in self.tasks.values()):
            yield "A5: usable_marked is not what the tasks say"
        for edge in self.edges:
            parent, child = self.tasks.get(edge["parent"]), self.tasks.get(edge["child"])
            if parent is None or child is None:
                yield f"I1: an edge {edge['parent']} -> {edge['child']} without its tasks"
            elif bool(edge["soft"]) != (bool(child["required"]) and not parent["required"]):
                yield f"A5: the edge {edge['parent']} -> {edge['child']} has the wrong softness"

    def _counters(self) -> Iterator[str]:
        """D6: the counters and the state are those of the tasks."""
        tasks = self.tasks.values()
        final = [t["state"] in FINAL_TASKS for t in tasks]
        wanted = {
            "open": final.count(False),
            "required_open": sum(1 for t in tasks if t["required"] and t["state"] not in FINAL_TASKS),
            "attention": sum(1 for t in tasks if t["state"] == "needs_attention"),
            "problems": sum(1 for t in tasks if not t["required"] and t["state"] in ("failed", "skipped")),
        }
        for name, value in wanted.items():
            if self.row[name] != value:
                yield f"D6: {name} is {self.row[name]}, the tasks give {value}"
        state = "open"
        if self.row["cancelled_at"] is not None:
            state = "cancelled"
        elif wanted["open"] == 0:
            state = "completed"
        elif wanted["attention"]:
            state = "needs_attention"
        if self.row["state"] != state:
            yield f"D6: the rows give the state {state}"

    def _ends(self) -> Iterator[str]:
        """D7, D11: what is final says when and how, and nothing else does."""
        row, tasks = self.row, self.tasks.values()
        final = row["state"] in FINAL_JOBS
        for name in ("finished_at", "outcome", "purge_at"):
            if (row[name] is not None) != final:
                yield f"D7: {name} is {row[name]!r}"
        if row["state"] == "completed":
            if row["outcome"] != ("succeeded_with_problems" if row["problems"] else "succeeded"):
                yield f"D6: the outcome is {row['outcome']!r} with {row['problems']} problems"
            if any(t["required"] and t["state"] != "completed" for t in tasks):
                yield "D11: completed, and a required task did not complete"
        if final and row["finished_at"] is not None and row["finished_at"] < row["accepted_at"]:
            yield "D6: finished before it was accepted"

    def _cancelled(self) -> Iterator[str]:
        """D7, E1: who cancelled it, and that its tasks were not cancelled by anything else."""
        row, tasks = self.row, self.tasks.values()
        if row["state"] == "cancelled":
            if row["outcome"] not in ("user", "abandoned", "superseded"):
                yield f"D7: the outcome is {row['outcome']!r}"
            if row["cancelled_at"] is None or row["cancelled_by"] is None:
                yield "D7: cancelled, and nobody did it"
        if row["state"] != "cancelled" and any(t["state"] == "cancelled" for t in tasks):
            yield "E1: a task is cancelled, and the job is not"

    def _usable(self) -> Iterator[str]:
        """D8: usable once the marked task (with none, all required ones) completed, and for ever."""
        row, tasks = self.row, self.tasks.values()
        if row["usable_marked"]:
            reached = any(t["usable"] and t["state"] == "completed" for t in tasks)
            refs = {self.outputs[t["no"]]["ref"] for t in tasks if t["usable"] and t["no"] in self.outputs}
            if row["usable_at"] is not None and row["usable_ref"] not in refs:
                yield "D8: usable_ref is of no usable task"
        else:
            reached = all(t["state"] == "completed" for t in tasks if t["required"])
        if (row["usable_at"] is not None) != reached:
            yield f"D8: usable_at is {row['usable_at']!r}, where the tasks say {reached}"

    def _version(self) -> Iterator[str]:
        """D10, as far as rows tell: at most one step for each change that they show, at least one if there is any."""
        changes = sum(1 for t in self.tasks.values() if t["state"] in ("completed", "failed", "skipped"))
        for asked in self.questions.values():
            changes += sum(1 + (q["resolved_at"] is not None) for q in asked)
        if self.row["state"] == "cancelled":
            changes += 2  # the cancel itself, and the end of `stopping`
        if self.row.get("target_ref") is not None:
            changes = max(changes, self.row["version"] - 1)  # takeovers and attachments count too, and leave no row each
        if not (changes > 0) + 1 <= self.row["version"] <= changes + 1:
            yield f"D10: version {self.row['version']} after at most {changes} changes"

    # -- a task -----------------------------------------------------------------------------------------------

    def _of_task(self, no: int, task: Row) -> Iterator[str]:
        state = task["state"]
        if state not in TASK_STATES:
            yield "D6: no such state"
        if (no in self.outputs) != (state == "completed"):
            yield f"D3: {'an' if no in self.outputs else 'no'} output"
        if (task["finished_at"] is not None) != (state in FINAL_TASKS):
            yield f"D6: finished_at is {task['finished_at']!r}"
        if state == "completed" and not (task["fence"] > 0 and task["worker"] and task["started_at"] is not None):
            yield "D2: completed by nobody"
        if not 0 <= task["spent"] <= task["max_attempts"]:
            yield f"F1: {task['spent']} attempts spent of {task['max_attempts']}"
        yield from self._of_edges(no, task)
        yield from self._of_questions(no, task)
        limit = self._fence(no, task)
        late = [s["name"] for s in self.steps[no] if s["fence"] > limit]
        if late:
            yield f"C2: steps {late} of a fence above {limit}"

    def _of_edges(self, no: int, task: Row) -> Iterator[str]:
        """D9, T2, T3: nothing starts before what it waits for, and nothing waits for what is over."""
        left = 0
        for edge in self.edges:
            parent = self.tasks.get(edge["parent"])
            if edge["child"] != no or parent is None:
                continue
            state = parent["state"]
            satisfied = state == "completed" or (edge["soft"] and state in ("failed", "skipped"))
            left += not satisfied
            if not satisfied and self._fence(no, task) > 0:
                yield f"D9: claimed before its parent {parent['no']} ended"
            if not edge["soft"] and state in ("failed", "skipped") and task["state"] not in ("skipped", "cancelled"):
                yield f"T3: its parent {parent['no']} is {state}"
            both = task["state"] == "completed" and state in ("completed", "failed")
            if both and task["started_at"] < parent["finished_at"]:
                yield f"D9: started before its parent {parent['no']} ended"
        if task["state"] == "blocked" and (left == 0 or task["deps_left"] != left):
            yield f"D9: blocked with deps_left {task['deps_left']}, where {left} edges are open"
        if task["state"] in ("open", "needs_attention", "completed") and (left or task["deps_left"]):
            yield f"D9: runnable with deps_left {task['deps_left']}, where {left} edges are open"

    def _of_questions(self, no: int, task: Row) -> Iterator[str]:
        """D11, F1: one open question while it needs attention, with a safe code and an action; none otherwise."""
        asked = self.questions[no]
        unresolved = [q for q in asked if q["resolved_at"] is None]
        if len(unresolved) != (task["state"] == "needs_attention"):
            yield f"F1: {len(unresolved)} open questions"
        for question in asked:
            actions = str(question["actions"]).split()
            if not CODE.fullmatch(question["code"]):
                yield f"F7: the code {question['code']!r}"
            if "dismiss" not in actions or not set(actions) <= ACTIONS or len(actions) != len(set(actions)):
                yield f"D11: the actions {actions}"
            if question["id"] not in {f"{no}.{a['fence']}" for a in self.attempts[no]}:
                yield f"F1: the question {question['id']} is of no attempt"
            if question["resolved_at"] is not None and question["action"] is None:
                yield f"F6: the question {question['id']} was resolved by nothing"

    def _fence(self, no: int, task: Row) -> int:
        entry = self.entries.get(no)
        fence: int = task["fence"] if entry is None else entry["fence"]
        return fence

    def _of_entry(self, no: int, task: Row) -> Iterator[str]:
        """An entry stands exactly while the task is open, or cancelled and still held."""
        entry = self.entries.get(no)
        if entry is None:
            if task["state"] == "open":
                yield "A5: open, and no entry stands"
            return
        if task["state"] not in ("open", "cancelled"):
            yield "D5: an entry stands"
        if bool(entry["revoked"]) != (task["state"] == "cancelled"):
            yield f"E1: an entry with revoked = {entry['revoked']}"
        if entry["fence"] < task["fence"]:
            yield f"C1: fence {entry['fence']} below the task's {task['fence']}"
        if entry["spent"] >= task["max_attempts"]:
            yield f"F1: {entry['spent']} of {task['max_attempts']} attempts spent, and it may run again"
        if (entry["spent"] > 0) != (entry["first_failed_at"] is not None):
            yield f"F1: {entry['spent']} attempts spent, first failed at {entry['first_failed_at']!r}"
        if any(entry[name] != task[name] for name in ("queue", "priority", "handler", "deadline_ms", "slot_key", "slot_limit")):
            yield "A5: the entry is not of this task"
        yield from _of_lease(entry)

    def _of_attempts(self, no: int, task: Row) -> Iterator[str]:
        """C1, C7, F1: attempt rows by fence tell how many attempts are spent, question by question."""
        rows = sorted(self.attempts[no], key=lambda row: row["fence"])
        limit = self._fence(no, task)
        if rows and rows[-1]["fence"] > limit:
            yield f"C1: an attempt of fence {rows[-1]['fence']}, the task's is {limit}"
        if task["state"] == "completed" and any(row["fence"] >= limit for row in rows):
            yield "D1: the claim that completed it also failed"
        entry = self.entries.get(no)
        if entry is not None and entry["holder"] is not None and any(row["fence"] == limit for row in rows):
            yield "C7: the claim that runs has ended"
        questions = {q["id"]: q for q in self.questions[no]}
        spent = {0}
        for row in rows:
            if not CODE.fullmatch(row["code"]) or not row["worker"]:
                yield f"F7: attempt {row['number']} with code {row['code']!r} by {row['worker']!r}"
            if row["started_at"] is not None and row["started_at"] > row["ended_at"]:
                yield f"D6: attempt {row['number']} ended before it began"
            if row["number"] - 1 not in spent:
                yield f"C7: fence {row['fence']} was attempt {row['number']}, after {sorted(spent)} spent"
            question = questions.get(f"{no}.{row['fence']}")
            spent = {row["number"]} if question is None else {row["number"] - 1, row["number"]}  # a question spends none
            if question is not None and question["action"] in ("retry", "answer"):
                spent = {0}
        now = task["spent"] if entry is None else entry["spent"]
        if now not in spent:
            yield f"C7: {now} attempts spent, the rows give {sorted(spent)}"


def _of_lease(entry: Row) -> Iterator[str]:
    """C3, C4, F5: lease and deadline stand exactly while somebody holds it."""
    held = entry["holder"] is not None
    if entry["revoked"] and not held:
        yield "E1: a revoked entry that nobody holds"
    for name in ("lease_until", "deadline_at"):
        if (entry[name] is not None) != held:
            yield f"C3: {'held' if held else 'not held'}, and {name} is {entry[name]!r}"
    if held and (entry["ready_at"] is None or entry["claimed_at"] is None or entry["fence"] < 1):
        yield "C4: held, and was never claimable"
    if held and entry["lease_until"] is not None and entry["lease_until"] > entry["deadline_at"]:
        yield "F5: the lease ends after the deadline"
    if not held and entry["ready_at"] is None and entry["due_at"] is None:
        yield "B1: waits for nothing"


def _buried(row: Row) -> bool:
    """Whether a key says all that is to be said of a job that was purged."""
    return all(row.get(name) is not None for name in TOMBSTONE) and row["final_state"] in FINAL_JOBS


class _Snapshot:
    """All jobs of a store."""

    def __init__(self, tables: Mapping[str, list[dict[str, Any]]]) -> None:
        self.tables = tables
        self.jobs: dict[Key, _Job] = {(row["tenant"], row["id"]): _Job(row) for row in tables["job"]}
        for table, row, job in self._rows():
            if table == "effect":
                job.effects.append(row)
            else:
                self._take(table, row, job)

    @staticmethod
    def _take(table: str, row: Row, job: _Job) -> None:
        match table:
            case "job_input":
                job.inputs += 1
            case "task":
                job.tasks[row["no"]] = row
            case "queue_entry":
                job.entries[row["no"]] = row
            case "edge":
                job.edges.append(row)
            case "output":
                job.outputs[row["no"]] = row
            case "attempt":
                job.attempts[row["no"]].append(row)
            case "step":
                job.steps[row["no"]].append(row)
            case "attention":
                job.questions[row["no"]].append(row)
            case _:
                pass

    def _rows(self) -> Iterator[tuple[str, Row, _Job]]:
        for table in TABLES[1:]:
            for row in self.tables[table]:
                job = self.jobs.get((row["tenant"], row["job_id"]))
                if job is not None:
                    yield table, row, job

    def slots(self) -> Iterator[str]:
        """C8: each claim of a task with a concurrency key has one slot of it, within its limit, and no slot is lost."""
        held = {
            (e["tenant"], e["job_id"], e["no"], e["fence"]): e
            for e in self.tables["queue_entry"]
            if e["holder"] is not None and e["slot_key"] is not None
        }
        seen: dict[tuple[Any, ...], int] = defaultdict(int)
        for slot in self.tables["slot"]:
            where = f"C8: slot {slot['n']} of {slot['key']!r}"
            parts = [slot[name] is None for name in ("job_id", "no", "fence")]
            if any(parts):
                if not all(parts):
                    yield f"{where} is taken by half"
                continue
            claim = (slot["tenant"], slot["job_id"], slot["no"], slot["fence"])
            entry = held.get(claim)
            seen[claim] += 1
            if entry is None or entry["slot_key"] != slot["key"]:
                yield f"{where} is lost: fence {slot['fence']} of task {slot['no']} of job {slot['job_id']} does not hold it"
            elif slot["n"] > entry["slot_limit"]:
                yield f"{where} is taken by a task with the limit {entry['slot_limit']}"
        for claim, entry in held.items():
            if seen[claim] != 1:
                yield f"C8: the claim of task {entry['no']} of job {entry['job_id']} has {seen[claim]} slots of {entry['slot_key']!r}"

    def orphans(self) -> Iterator[str]:
        """I1, A3: rows of no job, or of no task of theirs; keys of purged jobs that say too little, or keys of others that say too much."""
        roots = {(job["tenant"], job["effect_root"]) for job in self.tables["job"]}
        for table in TABLES[1:]:
            for row in self.tables[table]:
                if row["job_id"] is None and table == "slot":
                    continue
                job = self.jobs.get((row["tenant"], row["job_id"]))
                if job is None:
                    kept = (row["tenant"], row["effect_root"]) in roots if table == "effect" else table == "submission" and _buried(row)
                    if not kept:
                        yield f"I1: a row of {table} of the job {row['job_id']}, which is not there"
                elif table == "submission" and any(row.get(name) is not None for name in TOMBSTONE):
                    yield f"I1: the key {row['key']!r} says that job {row['job_id']} was purged, and it is there"
                elif "no" in row and row["no"] not in job.tasks:
                    yield f"I1: a row of {table} of task {row['no']} of job {row['job_id']}, which is not there"
        ids = [job["id"] for job in self.tables["job"]]
        if len(set(ids)) != len(ids):
            yield "A1: a job id in two tenants"
