"""Reads a whole store, a page of jobs at a time, and asks every rule of `domain/soundness` and those that are SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from outlast.domain.soundness.rows import (
    AttemptRow,
    EdgeRow,
    EffectRow,
    EntryRow,
    JobRow,
    JobRows,
    OutputRow,
    QuestionRow,
    SlotRow,
    StepsRow,
    TaskRow,
)
from outlast.domain.soundness.rule import Finding, Rule
from outlast.domain.soundness.rules import EFFECT_RULES, JOB_RULES, of_effect, of_job
from outlast.store.program import Program, Rows, Statement, rows_of

PAGE = 200  # jobs
_TASKS = 2_000  # of a page, unless one job has more
_EFFECTS = 1_000
_MOST = 1_000  # findings of a rule that is SQL
_LOWEST = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Queried(Rule):
    """A rule that is SQL: each row of the statement breaks it, and says tenant, job id, and what was found, or only the last."""

    statement: Statement
    found: str
    expected: str


STORE_RULES: Final[tuple[Queried, ...]] = (
    Queried(
        "I1",
        "job",
        "Every row of a job's is of a job that is there.",
        Statement("verify_orphans", {"limit": _MOST}),
        "",
        "a job of that id",
    ),
    Queried(
        "A1",
        "id",
        "No two jobs have one id.",
        Statement("verify_twins", {"limit": _MOST}),
        "another tenant has a job of this id",
        "an id of its own",
    ),
    Queried(
        "A3",
        "active",
        "No two active jobs have one unique key.",
        Statement("verify_keys", {"limit": _MOST}),
        "another active job has its unique key",
        "a key of its own",
    ),
    Queried(
        "A3",
        "tombstone",
        "A key whose job was purged says how that ended and until when it answers; no other key does.",
        Statement("verify_tombstones", {"limit": _MOST}),
        "",
        "all of a purged job's end, nothing of another's",
    ),
    Queried(
        "A3",
        "owner",
        "The key of a job is its owner's.",
        Statement("verify_key_owners", {"limit": _MOST}),
        "its key is another owner's",
        "the owner of the job",
    ),
    Queried(
        "C8",
        "half",
        "A slot names job, task and fence of a claim, or is free.",
        Statement("verify_half_slots", {"limit": _MOST}),
        "",
        "all of it, or nothing",
    ),
    Queried(
        "I1",
        "counted",
        "A job is counted for its owner and kind, by a quota that is there.",
        Statement("verify_counted", {"limit": _MOST}),
        "",
        "its own owner's and kind's quota",
    ),
    Queried(
        "I1",
        "quota",
        "A quota that is there has counted what was open before it.",
        Statement("verify_quotas", {"limit": _MOST}),
        "a quota whose open jobs were not counted",
        "counted",
    ),
    Queried(
        "H3",
        "record",
        "The record of what an operator did says who, what and why; that of a person's deletion has no name.",
        Statement("verify_records", {"limit": _MOST}),
        "",
        "actor, action, subject and reason, a digest for a person",
    ),
    Queried(
        "I1",
        "schedule",
        "The latest job of a schedule has a due time, and if it is still there, the schedule's owner.",
        Statement("verify_schedules", {"limit": _MOST}),
        "",
        "a job of the owner's, and when it was due",
    ),
    Queried(
        "H3",
        "pause",
        "A schedule says when and by whom it was paused, or neither, and makes up for no due time or more.",
        Statement("verify_pauses", {"limit": _MOST}),
        "",
        "both or neither, and 0 or more",
    ),
    Queried("I5", "file", "The store's file is sound, its indexes too.", Statement("verify_file", {"limit": _MOST}), "", "no such message"),
)
RULES: Final[tuple[Rule, ...]] = (*JOB_RULES, *EFFECT_RULES, *STORE_RULES)

BEGINNINGS: Final = frozenset({"verify_jobs", "verify_effects", *(rule.statement.name for rule in STORE_RULES)})
"""Statements before which a store may change under the reader: what is compared with each other is read after one of them."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was read and what does not hold. `counts` has all findings by rule, `findings` the first ones, whole."""

    jobs: int
    tasks: int
    effects: int
    counts: tuple[tuple[Rule, int], ...]
    findings: tuple[Finding, ...]

    @property
    def total(self) -> int:
        """How many findings there are."""
        return sum(number for _, number in self.counts)


class _Tally:
    """Counts what was read and found, and keeps the first findings."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()
        self._kept: list[Finding] = []
        self.jobs = self.tasks = self.effects = 0

    def add(self, findings: Iterable[Finding]) -> None:
        """Counts each."""
        for finding in findings:
            self._counts[finding.rule.full] += 1
            if len(self._kept) < self._limit:
                self._kept.append(finding)

    def report(self) -> Report:
        """The sum of it, by rule in the order of the rules."""
        counts = tuple((rule, self._counts[rule.full]) for rule in RULES if rule.full in self._counts)
        return Report(self.jobs, self.tasks, self.effects, counts, tuple(self._kept))


def verify(*, limit: int) -> Program[Report]:
    """What does not hold in the store, with the first `limit` findings whole. It needs a snapshot, unless nobody writes."""
    tally = _Tally(limit)
    yield from _jobs(tally)
    yield from _effects(tally)
    for rule in STORE_RULES:
        rows = yield rule.statement
        tally.add(_broken(rule, rows))
    return tally.report()


def _broken(rule: Queried, rows: Rows) -> Iterator[Finding]:
    for row in rows:
        tenant, job_id, *said = row if len(row) > 1 else ("", "", *row)
        yield Finding(rule, str(tenant), str(job_id), None, str(said[0]) if said else rule.found, rule.expected)


def _jobs(tally: _Tally) -> Program[None]:
    after = {"tenant": "", "job_id": _LOWEST}
    while True:
        read = yield from rows_of(Statement("verify_jobs", {**after, "limit": PAGE}), JobRow)
        if not read:
            return
        page = _fitting(read)
        for rows in (yield from _with_theirs(page)):
            tally.jobs += 1
            tally.tasks += len(rows.tasks)
            tally.add(of_job(rows))
        if len(page) == len(read) < PAGE:
            return
        after = {"tenant": page[-1].tenant, "job_id": page[-1].id}


def _fitting(read: Sequence[JobRow]) -> Sequence[JobRow]:
    """As many of the jobs as have few enough tasks together, but one at least."""
    tasks = 0
    for place, job in enumerate(read):
        tasks += max(job.total, 0)
        if tasks > _TASKS and place:
            return read[:place]
    return read


def _with_theirs(page: Sequence[JobRow]) -> Program[Iterable[JobRows]]:
    found = {(job.tenant, job.id): JobRows(job) for job in page}
    first, last = page[0], page[-1]
    within = {"tenant": first.tenant, "job_id": first.id, "last_tenant": last.tenant, "last_id": last.id}

    def put(rows: Rows, place: Callable[[JobRows, tuple[Any, ...]], None]) -> None:
        for tenant, job_id, *rest in rows:
            place(found[tenant, job_id], tuple(rest))

    put((yield Statement("verify_inputs", within)), _input)
    put((yield Statement("verify_tasks", within)), _task)
    put((yield Statement("verify_entries", within)), _entry)
    put((yield Statement("verify_slots", within)), _slot)
    put((yield Statement("verify_edges", within)), _edge)
    put((yield Statement("verify_outputs", within)), _output)
    put((yield Statement("verify_attempts", within)), _attempt)
    put((yield Statement("verify_steps", within)), _step)
    put((yield Statement("verify_questions", within)), _question)
    return found.values()


def _input(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.inputs = int(row[0])


def _task(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.tasks[row[0]] = TaskRow(*row)


def _entry(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.entries[row[0]] = EntryRow(*row)


def _slot(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.slots.append(SlotRow(*row))


def _edge(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.edges.append(EdgeRow(*row))


def _output(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.outputs[row[0]] = OutputRow(*row)


def _attempt(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.attempts[row[0]].append(AttemptRow(*row))


def _step(rows: JobRows, row: tuple[Any, ...]) -> None:
    rows.steps[row[0]] = StepsRow(*row)


def _question(rows: JobRows, row: tuple[Any, ...]) -> None:
    question = QuestionRow(*row)
    rows.questions[question.no].append(question)


def _effects(tally: _Tally) -> Program[None]:
    after = {"tenant": "", "effect_root": _LOWEST, "label": "", "name": "", "input_hash": ""}
    while True:
        page = yield from rows_of(Statement("verify_effects", {**after, "limit": _EFFECTS}), EffectRow)
        for row in page:
            tally.effects += 1
            tally.add(of_effect(row))
        if len(page) < _EFFECTS:
            return
        last = page[-1]
        after = {name: getattr(last, name) for name in after}
