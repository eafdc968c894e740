"""Questions to the owner: exactly one while a task needs attention, with something to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from outlast.domain.soundness.rows import JobRows, QuestionRow
from outlast.domain.soundness.rule import CODE, Fault, count, given, rule, word

_ACTIONS = frozenset({"retry", "answer", "skip", "dismiss"})
_ENDS = _ACTIONS | {"closed"}


def _asked(rows: JobRows) -> Iterator[tuple[int, QuestionRow]]:
    for no, asked in sorted(rows.questions.items()):
        for question in asked:
            yield no, question


@rule("D11", "asks", "A task that needs attention has one open question, and no other task has any.")
def asks(rows: JobRows) -> Iterator[Fault]:
    """So that there is something to act on."""
    for no, task in sorted(rows.tasks.items()):
        unresolved = sum(question.resolved_at is None for question in rows.questions.get(no, ()))
        expected = int(task.state == "needs_attention")
        if unresolved != expected:
            yield Fault(f"it is {word(task.state)}, with {count(unresolved, 'open question')}", str(expected), no)


@rule("D11", "actions", "A question offers at least one action, of those that there are, none twice.")
def actions(rows: JobRows) -> Iterator[Fault]:
    """What can be done."""
    for no, question in _asked(rows):
        offered = question.actions.split()
        if not offered or not set(offered) <= _ACTIONS or len(offered) != len(set(offered)):
            yield Fault("a question with other actions", "some of retry, answer, skip and dismiss, none twice", no)


@rule("F1", "origin", "A question is of an attempt that ended with it.")
def origin(rows: JobRows) -> Iterator[Fault]:
    """Its id names the claim."""
    for no, question in _asked(rows):
        if question.id not in {f"{no}.{attempt.fence}" for attempt in rows.attempts.get(no, ())}:
            yield Fault("a question of no attempt", "the attempt that its id names", no)


@rule("F6", "resolved", "A question that is settled says by what and by whom; one that is open says nothing.")
def resolved(rows: JobRows) -> Iterator[Fault]:
    """The end of it."""
    for no, question in _asked(rows):
        settled = question.resolved_at is not None
        if (question.action is not None) != settled or (question.actor is not None) != settled:
            found = f"resolved_at is {given(question.resolved_at)}, action {given(question.action)}, actor {given(question.actor)}"
            yield Fault(found, "all of them, or none", no)
        elif settled and question.action not in _ENDS:
            yield Fault("a question that was settled by no action", ", ".join(sorted(_ENDS)), no)


@rule("F7", "question", "A question has a safe code.")
def codes(rows: JobRows) -> Iterator[Fault]:
    """What people are told."""
    for no, question in _asked(rows):
        if not CODE.fullmatch(question.code):
            yield Fault("a question with a code that is none", "a word of a-z, 0-9 and _", no)


RULES = (asks, actions, origin, resolved, codes)
