"""Attempts: what their fences and numbers tell about the claims of a task, and how many it has consumed."""

from __future__ import annotations

from collections.abc import Iterator

from outlast.domain.soundness.rows import JobRows, TaskRow
from outlast.domain.soundness.rule import CODE, Fault, rule


@rule("C1", "attempt", "Every attempt that ended was a claim that there was.")
def claims(rows: JobRows) -> Iterator[Fault]:
    """Their fences."""
    for task, fences in _ended(rows):
        limit = rows.last_fence(task)
        for fence in fences:
            if not 1 <= fence <= limit:
                yield Fault(f"an attempt of fence {fence}", f"fences 1 to {limit}", task.no)


@rule("D1", "once", "The claim that completed a task did not fail.")
def once(rows: JobRows) -> Iterator[Fault]:
    """One end for each claim."""
    for task, fences in _ended(rows):
        if task.state == "completed" and task.fence in fences:
            yield Fault("the claim that completed it has a failed attempt", "one of both", task.no)


@rule("C7", "failed", "What failed has the attempt that ended it.")
def failed(rows: JobRows) -> Iterator[Fault]:
    """Its last claim."""
    for no, task in sorted(rows.tasks.items()):
        if task.state == "failed" and task.fence not in {attempt.fence for attempt in rows.attempts.get(no, ())}:
            yield Fault("it failed, and its last claim has no attempt", f"an attempt of fence {task.fence}", no)


@rule("C7", "runs", "The claim that runs has not ended.")
def runs(rows: JobRows) -> Iterator[Fault]:
    """An entry is held until the claim ends, and then no more."""
    for task, fences in _ended(rows):
        entry = rows.entries.get(task.no)
        if entry is not None and entry.holder is not None and entry.fence in fences:
            yield Fault("it is held by a claim whose attempt has ended", "not held by it", task.no)


@rule("C7", "spent", "The attempts that are counted are those that ended since the task was last taken up.")
def spent(rows: JobRows) -> Iterator[Fault]:
    """By fence: a failure or a loss consumes one, a question may or may not have, an owner's retry or answer begins anew."""
    for no, task in sorted(rows.tasks.items()):
        questions = {question.id: question for question in rows.questions.get(no, ())}
        possible = {0}
        for attempt in sorted(rows.attempts.get(no, ()), key=lambda row: row.fence):
            if attempt.number - 1 not in possible:
                yield Fault(f"the claim of fence {attempt.fence} was attempt {attempt.number}", f"{_either(possible, 1)}", no)
            question = questions.get(f"{no}.{attempt.fence}")
            possible = {attempt.number} if question is None else {attempt.number - 1, attempt.number}
            if question is not None and question.action in ("retry", "answer"):
                possible = {0}
        if rows.spent(task) not in possible:
            yield Fault(f"{rows.spent(task)} attempts are counted", f"{_either(possible, 0)} by those that ended", no)


def _either(numbers: set[int], more: int) -> str:
    return " or ".join(str(number + more) for number in sorted(numbers))


@rule("F7", "attempt", "An attempt has a safe code, and says whose it was.")
def codes(rows: JobRows) -> Iterator[Fault]:
    """What people are told."""
    for no, ended in sorted(rows.attempts.items()):
        for attempt in ended:
            if not CODE.fullmatch(attempt.code):
                yield Fault(f"the attempt of fence {attempt.fence} has a code that is none", "a word of a-z, 0-9 and _", no)
            if not attempt.worker:
                yield Fault(f"the attempt of fence {attempt.fence} is nobody's", "a worker", no)


def _ended(rows: JobRows) -> Iterator[tuple[TaskRow, list[int]]]:
    for no, ended in sorted(rows.attempts.items()):
        task = rows.tasks.get(no)
        if task is not None:
            yield task, [attempt.fence for attempt in ended]


RULES = (claims, once, failed, runs, spent, codes)
