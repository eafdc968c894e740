"""The app: one kind, and its two tasks, one for each colour. All that they do on request stands in `performance`."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, cast

from outlast.app import Outlast
from outlast.domain.effects import Confirmed
from outlast.domain.errors import Invalid
from outlast.domain.failures import Ask, Permanent, Stopped
from outlast.domain.kinds import Plan, PlannedTask, Task, TaskOptions
from outlast.domain.limits import Limit
from outlast.domain.retry import RetryPolicy
from outlast.rehearsal import outside
from outlast.rehearsal.model import Effect, Part, Question, Rehearsal, Report
from outlast.rehearsal.performance import SLICE, Asking, Blocking, Calling, Stepping, Working, note, perform
from outlast.rehearsal.planning import check, in_order
from outlast.worker.completion import Completion
from outlast.worker.context import Context, SyncContext

app = Outlast(os.environ.get("OUTLAST_STORE") or "sqlite:///rehearsal.db")

_WORDS = "The rehearsal asks: how shall it go on?"
_ANY_JSON = cast("type[dict[str, Any]]", object)


@app.target("document")
def put_document(_db: object, ref: str, expected: str, text: str) -> str | None:
    """A document of the fake provider: changed where it is at the version that is expected."""
    return outside.put_document(ref, expected, text)


@app.task
async def rehearse(ctx: Context, input: Rehearsal) -> Report:
    """One task of a rehearsal on the event loop."""
    return await _perform(ctx, _part_of(ctx, input))


@app.task
async def rehearse_attach(ctx: Context, input: Rehearsal) -> Completion[str]:
    """One task of a rehearsal on the event loop, whose text goes to the job's target."""
    part = _part_of(ctx, input)
    await _perform(ctx, part)
    return ctx.attach(part.attach or "")


async def _perform(ctx: Context, part: Part) -> Report:
    performance = perform(part, ctx)
    try:
        doing = next(performance)
        while True:
            answer: object = None
            match doing:
                case Asking(question):
                    answer = await _ask(ctx, question)
                case Blocking(seconds):
                    time.sleep(seconds)  # noqa: ASYNC251 - blocking the loop is what was asked for
                case Working(seconds):
                    await _work(ctx, part, seconds)
                case Stepping(no):
                    await _step(ctx, part, no)
                case Calling(effect):
                    answer = await _effect(ctx, effect)
            doing = performance.send(answer)
    except StopIteration as end:
        return cast("Report", end.value)


async def _work(ctx: Context, part: Part, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not part.ignore_cancel:
            ctx.check()
        try:
            await asyncio.sleep(min(left, SLICE))
        except asyncio.CancelledError:
            if not part.ignore_cancel:
                raise


async def _step(ctx: Context, part: Part, no: int) -> None:
    ran = False

    async def one() -> int:
        nonlocal ran
        ran = True
        await _work(ctx, part, part.seconds)
        note("step", ctx, step=no)
        return no

    try:
        await ctx.step(f"step {no}", one)
    except (Stopped, asyncio.CancelledError):
        if not part.ignore_cancel:
            raise
        if not ran:
            await one()


async def _effect(ctx: Context, wanted: Effect) -> str:
    async def call(key: str) -> str:
        note("effect", ctx)
        return await asyncio.to_thread(outside.charge, key, {"job": ctx.job_id, "label": ctx.label})

    async def find(key: str) -> Confirmed[str]:
        return await asyncio.to_thread(outside.find, key)

    match wanted.mode:
        case "idempotent":
            return await ctx.effect(wanted.name, call, idempotent=True, timeout=outside.TIMEOUT)
        case "reconcile":
            return await ctx.effect(wanted.name, call, reconcile=find, timeout=outside.TIMEOUT)
        case "neither":
            return await ctx.effect(wanted.name, call, timeout=outside.TIMEOUT)


async def _ask(ctx: Context, question: Question) -> object:
    if "answer" not in question.actions:
        _ask_once(ctx, question)
        return None
    try:
        return await ctx.ask(question.code, _WORDS, answer=_ANY_JSON, actions=[a for a in question.actions if a != "answer"])
    except Ask:
        if ctx.fence == 1:
            raise
        return None  # the owner chose to go on without an answer


@app.task
def rehearse_in_thread(ctx: SyncContext, input: Rehearsal) -> Report:
    """One task of a rehearsal as a plain function in a thread."""
    return _perform_in_thread(ctx, _part_of(ctx, input))


@app.task
def rehearse_attach_in_thread(ctx: SyncContext, input: Rehearsal) -> Completion[str]:
    """One task of a rehearsal in a thread, whose text goes to the job's target."""
    part = _part_of(ctx, input)
    _perform_in_thread(ctx, part)
    return ctx.attach(part.attach or "")


def _perform_in_thread(ctx: SyncContext, part: Part) -> Report:
    performance = perform(part, ctx)
    try:
        doing = next(performance)
        while True:
            answer: object = None
            match doing:
                case Asking(question):
                    answer = _ask_in_thread(ctx, question)
                case Blocking(seconds):
                    time.sleep(seconds)
                case Working(seconds):
                    _work_in_thread(ctx, part, seconds)
                case Stepping(no):
                    _step_in_thread(ctx, part, no)
                case Calling(effect):
                    answer = _effect_in_thread(ctx, effect)
            doing = performance.send(answer)
    except StopIteration as end:
        return cast("Report", end.value)


def _work_in_thread(ctx: SyncContext, part: Part, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not part.ignore_cancel:
            ctx.check()
        time.sleep(min(left, SLICE))


def _step_in_thread(ctx: SyncContext, part: Part, no: int) -> None:
    ran = False

    def one() -> int:
        nonlocal ran
        ran = True
        _work_in_thread(ctx, part, part.seconds)
        note("step", ctx, step=no)
        return no

    try:
        ctx.step(f"step {no}", one)
    except Stopped:
        if not part.ignore_cancel:
            raise
        if not ran:
            one()


def _effect_in_thread(ctx: SyncContext, wanted: Effect) -> str:
    def call(key: str) -> str:
        note("effect", ctx)
        return outside.charge(key, {"job": ctx.job_id, "label": ctx.label})

    match wanted.mode:
        case "idempotent":
            return ctx.effect(wanted.name, call, idempotent=True, timeout=outside.TIMEOUT)
        case "reconcile":
            return ctx.effect(wanted.name, call, reconcile=outside.find, timeout=outside.TIMEOUT)
        case "neither":
            return ctx.effect(wanted.name, call, timeout=outside.TIMEOUT)


def _ask_in_thread(ctx: SyncContext, question: Question) -> object:
    if "answer" not in question.actions:
        _ask_once(ctx, question)
        return None
    try:
        return ctx.ask(question.code, _WORDS, answer=_ANY_JSON, actions=[a for a in question.actions if a != "answer"])
    except Ask:
        if ctx.fence == 1:
            raise
        return None


def _ask_once(ctx: Context | SyncContext, question: Question) -> None:
    if ctx.fence == 1:
        raise Ask(question.code, _WORDS, actions=[a for a in question.actions if a != "answer"])


def _part_of(ctx: Context | SyncContext, input: Rehearsal) -> Part:
    for part in input.tasks:
        if part.label == ctx.label:
            return part
    raise Permanent("not_rehearsed", "Submit the kind 'rehearsal': this task is a part of it and does nothing alone.")


@app.kind(
    "rehearsal",
    version=1,
    target=put_document,
    label="Rehearsal",
    success="The rehearsal is over.",
    cancel_note="What a task has done stays done.",
)
def rehearsal(plan: Plan[Rehearsal], input: Rehearsal) -> None:
    """The plan, in the order of the input where `after` allows it."""
    check(input.tasks)
    placed: dict[str, PlannedTask] = {}
    for no in in_order(input.tasks):
        part = input.tasks[no]
        try:
            placed[part.label] = _place(plan, input, part, [placed[label] for label in part.after])
        except Invalid as error:
            refused = Invalid(error.message, pointers=(f"/tasks/{no}",))
        else:
            continue
        raise refused


def _place(plan: Plan[Rehearsal], input: Rehearsal, part: Part, after: list[PlannedTask]) -> PlannedTask:
    task: Task[Rehearsal, Any]
    if part.attach is None:
        task = rehearse_in_thread if part.sync else rehearse
    else:
        task = rehearse_attach_in_thread if part.sync else rehearse_attach
    options: TaskOptions = {
        "queue": part.queue,
        "max_attempts": input.max_attempts,
        "retry": RetryPolicy(base=input.retry_base),
        "deadline": part.deadline,
    }
    if part.key is not None:
        options["limit"] = Limit(part.key, part.limit or 1)
    if part.optional:
        return plan.task(task, label=part.label, after=after, optional=True, **options)
    return plan.task(task, label=part.label, after=after, usable=part.usable, **options)
