"""What a handler reads and stores on its way, once for both colours: generators that yield store operations and receive their values."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from outlast.domain.errors import Invalid, NotAParent
from outlast.domain.failures import Ask, Stopped, StopReason
from outlast.domain.kinds import AnyTask, parse_handler
from outlast.domain.model import Action
from outlast.domain.payload import check_text
from outlast.domain.values import MISSING, check_hint, decode, decode_stored, encode, hints, schema_of
from outlast.domain.work import ParentRow, Verdict
from outlast.store.programs import steps
from outlast.store.protocol import Store, SyncRunner
from outlast.worker.attempt_state import AttemptState
from outlast.worker.outside import Doing, aperform, perform

T = TypeVar("T")
Recall: TypeAlias = Generator[Doing, Any, T]

MAX_STEP_NAME = 200
REASONS: dict[Verdict, StopReason] = {Verdict.CANCELLED: "cancelled", Verdict.STALE: "replaced"}


class Question(Ask):
    """An Ask whose answer the handler waits for."""

    def __init__(self, code: str, message: str, *, actions: Sequence[str], input_schema: str | None = None) -> None:
        super().__init__(code, message, actions=())
        self.actions = ("answer", *actions)
        self.input_schema = input_schema


async def adrive_recall(recall: Recall[T], store: Store) -> T:
    """Runs its operations without blocking the loop."""
    try:
        doing = next(recall)
        while True:
            doing = recall.send(await aperform(doing, store))
    except StopIteration as stop:
        value: T = stop.value
        return value


def drive_recall(recall: Recall[T], store: SyncRunner) -> T:
    """Runs its operations in this thread."""
    try:
        doing = next(recall)
        while True:
            doing = recall.send(perform(doing, store))
    except StopIteration as stop:
        value: T = stop.value
        return value


def recall_step(state: AttemptState, name: str, fn: Callable[..., Any]) -> Recall[tuple[bool, Any]]:
    """Whether the step is stored, and its value as the type that `fn` returns."""
    if name.startswith("answer/"):
        raise Invalid("The names of steps that begin with answer/ are the owner's answers.")
    check_text(name, what="step name", limit=MAX_STEP_NAME)
    if name in state.seen:
        raise Invalid(f"The step {name!r} ran in this attempt already; give each its own name.")
    state.seen.add(name)
    made_as = hints(fn).returns  # before the work, for one that cannot be read would be found after it
    ref = state.hold.claimed.ref
    if ref.fence == 1:
        return False, None  # nobody ran before: nothing to read
    stored = state.steps
    if stored is None:
        names: frozenset[str] = yield steps.step_names(ref)
        stored = state.steps = names
    if name not in stored:
        return False, None
    body = yield steps.step_body(ref, name)
    return True, decode_stored(body, made_as, what="step's output")


def store_made(state: AttemptState, name: str, fn: Callable[..., Any], made: object) -> Recall[Any]:
    """Stores what the step made, and gives it back as a replacement would read it."""
    made_as = hints(fn).returns
    body = encode(
        made,
        limit=state.max_output,
        what="step's output",
        plain=made_as is MISSING,
        hint=made_as,
        code="result_invalid",
    )
    value = read_back(body, made_as, what="step's output")
    state.hold.check()
    verdict, stored = yield steps.store_step(state.hold.claimed.ref, name, body)
    if verdict is not Verdict.ACCEPTED:
        reason = REASONS.get(verdict, "replaced")
        state.hold.lose(reason)
        raise Stopped(reason)
    return value if stored == body else decode_stored(stored, made_as, what="step's output")


def read_back(body: str, made_as: object, *, what: str) -> object:
    """The value as a replacement will get it; refused now, before it is stored, if it is not what the annotation says."""
    try:
        return decode(body, made_as, what=what)
    except Invalid as error:
        raise Invalid(error.message, code="result_invalid", pointers=error.pointers) from error


def output(state: AttemptState, task: AnyTask[Any], label: str | None, default: tuple[Any, ...]) -> Recall[Any]:
    """The output of one parent made of `task`."""
    parents = yield from _parents(state, task)
    found = [p for p in parents if label is None or p.label == label]
    if not found:
        raise NotAParent(f"The task {task.name!r} is no parent of this one; name it in after=.")
    if len(found) > 1:
        raise NotAParent(f"The task {task.name!r} is a parent of this one several times; give label=, or use outputs().")
    (parent,) = found
    if parent.body is None:
        if default:
            return default[0]
        raise NotAParent(f"The parent {task.name!r} ended without an output; give default= for optional parents.")
    return decode_stored(parent.body, task.returns, what="result of an earlier task")


def outputs(state: AttemptState, task: AnyTask[Any]) -> Recall[dict[str, Any]]:
    """The outputs of all completed parents made of `task`."""
    parents = yield from _parents(state, task)
    return {p.label: decode_stored(p.body, task.returns, what="result of an earlier task") for p in parents if p.body is not None}


def ask(state: AttemptState, code: str, message: str, answer: object, actions: Sequence[str]) -> Recall[Any]:
    """The owner's answer of this code, or the question."""
    if not isinstance(actions, Iterable) or any(a not in ("retry", "skip") for a in actions):
        raise Invalid("The further actions of a question are 'retry' and 'skip'; 'answer' and 'dismiss' are always offered.")
    check_hint(answer, what="answer of ctx.ask")
    body: str | None = None
    if state.hold.claimed.ref.fence > 1:
        body = yield steps.answer_of(state.hold.claimed.ref, code)
    why = ""
    if body is not None:
        try:
            return decode(body, answer, what="answer before", forbid_unknown=True)
        except Invalid as error:  # not what was asked for: ask again, and say why
            why = f" {error.message}"
    raise Question(code, message + why, actions=actions, input_schema=schema_of(answer))


def _parents(state: AttemptState, task: AnyTask[Any]) -> Recall[list[ParentRow]]:
    rows: list[ParentRow] = yield steps.parents_of(state.hold.claimed.ref)
    return [row for row in rows if parse_handler(row.handler)[2] == task.name]


def actions_of(question: Ask) -> tuple[Action, ...]:
    """The actions that the owner is offered; `dismiss` always is."""
    known: tuple[Action, ...] = ("retry", "answer", "skip")
    return (*(a for a in known if a in question.actions), "dismiss")
