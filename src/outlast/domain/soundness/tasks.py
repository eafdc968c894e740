"""A task: its state and what goes with it, its result, its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from outlast.domain.soundness.rows import JobRows
from outlast.domain.soundness.rule import Fault, count, given, rule, word
from outlast.domain.states import FINAL_TASKS, StoredTask

_STATES = get_args(StoredTask)


@rule("D6", "word", "A task's state is one that there is.")
def known(rows: JobRows) -> Iterator[Fault]:
    """The words of the state machine."""
    for no, task in sorted(rows.tasks.items()):
        if task.state not in _STATES:
            yield Fault("its state is no word of Outlast's", ", ".join(_STATES), no)


@rule("D3", "output", "A task has a result exactly if it completed.")
def output(rows: JobRows) -> Iterator[Fault]:
    """Result and completion appear together."""
    for no, task in sorted(rows.tasks.items()):
        if (no in rows.outputs) != (task.state == "completed"):
            has, expected = ("a result", "none") if no in rows.outputs else ("no result", "one")
            yield Fault(f"it is {word(task.state)} and has {has}", expected, no)


@rule("D6", "finished", "A task says when it ended exactly if it is final.")
def finished(rows: JobRows) -> Iterator[Fault]:
    """The time of the end."""
    for no, task in sorted(rows.tasks.items()):
        if (task.finished_at is not None) != (task.state in FINAL_TASKS):
            yield Fault(f"it is {word(task.state)}, finished_at is {given(task.finished_at)}", "set exactly if it is final", no)


@rule("D2", "worker", "What completed was claimed, and says by which worker and since when.")
def worker(rows: JobRows) -> Iterator[Fault]:
    """Who completed it."""
    for no, task in sorted(rows.tasks.items()):
        if task.state != "completed":
            continue
        if task.fence < 1 or not task.worker or task.started_at is None:
            yield Fault("it completed, and nobody did it", "fence, worker and started_at of its claim", no)


@rule("F1", "attempts", "A task has consumed no more attempts than it may.")
def attempts(rows: JobRows) -> Iterator[Fault]:
    """The budget."""
    for no, task in sorted(rows.tasks.items()):
        if not 0 <= task.spent <= task.max_attempts:
            yield Fault(f"{count(task.spent, 'attempt')} consumed", f"0 to {task.max_attempts}", no)


@rule("C2", "steps", "Every step was stored by a claim that there was.")
def steps(rows: JobRows) -> Iterator[Fault]:
    """Their fences."""
    for no, stored in sorted(rows.steps.items()):
        task = rows.tasks.get(no)
        if task is not None and not 1 <= stored.lowest <= stored.highest <= rows.last_fence(task):
            found = f"steps of the fences {stored.lowest} to {stored.highest}"
            yield Fault(found, f"fences 1 to {rows.last_fence(task)}", no)


@rule("I1", "task", "No entry, result, attempt, step or question is of a task that is not there.")
def of_tasks(rows: JobRows) -> Iterator[Fault]:
    """Rows of the job, of no task of its."""
    for table, nos in (
        ("queue_entry", rows.entries),
        ("output", rows.outputs),
        ("attempt", rows.attempts),
        ("step", rows.steps),
        ("attention", rows.questions),
    ):
        for no in sorted(set(nos) - set(rows.tasks)):
            yield Fault(f"a row of {table} of a task that is not there", "no such row", no)


RULES = (known, output, finished, worker, attempts, steps, of_tasks)
