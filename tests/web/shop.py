"""The application of these tests: kinds that do at once, or at a word, what a test needs."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from outlast import Ask, Context, Outlast, Permanent, Plan, RetryPolicy, Task


class Note(Struct, kw_only=True):
    """The input of most kinds."""

    text: str
    seconds: float = 0.0


class Choice(Struct, kw_only=True):
    """What the kind `choose` asks for."""

    colour: str


def call_outside(jobs: Outlast) -> None:
    """Kinds whose calls to the outside are lost: with an outcome, and without."""

    async def lose(key: str) -> str:
        raise ConnectionError("the answer was lost")

    @jobs.task(retry=RetryPolicy(base=0))
    async def debit(ctx: Context, note: Note) -> str:
        return await ctx.effect("card <charge>", lose, timeout=0.2)

    @jobs.kind("charge", label="A charge")
    def charge_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(debit, label="Card")

    async def forget(key: str) -> None:
        raise ConnectionError("the answer was lost")

    @jobs.task(retry=RetryPolicy(base=0))
    async def post(ctx: Context, note: Note) -> None:
        await ctx.effect("letter", forget, timeout=0.2)

    @jobs.kind("letter", label="A letter")
    def letter_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(post, label="Post")


def make(url: str, *, base_url: str = "") -> Outlast:  # noqa: C901 - one kind after the other
    """A new application on this store."""
    jobs = Outlast(url, base_url=base_url)
    call_outside(jobs)

    @jobs.task
    async def write(ctx: Context, note: Note) -> str:
        await asyncio.sleep(note.seconds)
        return note.text

    @jobs.task(max_attempts=1)
    async def polish(ctx: Context, note: Note) -> str:
        await asyncio.sleep(note.seconds)
        return note.text.upper()

    @jobs.task(max_attempts=1)
    async def broken(ctx: Context, note: Note) -> None:
        raise Permanent("no_paper", "The printer has no paper.")

    @jobs.task
    async def choose(ctx: Context, note: Note) -> str:
        chosen = await ctx.ask("which_colour", "Which colour should it be?", answer=Choice)
        return chosen.colour

    @jobs.task
    async def ask_name(ctx: Context, note: Note) -> str:
        return await ctx.ask("which_name", "What should it be called?", answer=str)

    @jobs.task
    async def ask_count(ctx: Context, note: Note) -> int:
        return await ctx.ask("how_many", "How many should there be?", answer=int, actions=["retry"])

    @jobs.task
    async def doubt(ctx: Context, note: Note) -> str:
        raise Ask("unsure", "Go on without the extra?", actions=["retry", "skip"])

    @jobs.kind(
        "note", label="A note", promise=4, success="The note is written and can be read.", cancel_note="Printed copies stay printed."
    )
    def note_kind(plan: Plan[Note], input: Note) -> None:
        text = plan.task(write, label="Text", usable=True)
        plan.task(polish, label="Polish", after=[text], optional=True)

    @jobs.kind("postcard", version=3, label="A postcard")
    def postcard_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(write, label="Text", usable=True)

    @postcard_kind.upgrade(from_version=2)
    def from_2(old: dict[str, Any]) -> dict[str, Any]:
        if old["body"] == "burst":
            raise RuntimeError("MARKER")
        return {"text": old["body"]}

    @jobs.kind("print", label="A print")
    def print_kind(plan: Plan[Note], input: Note) -> None:
        text = plan.task(write, label="Text", usable=True)
        plan.task(broken, label="Paper", after=[text])

    @jobs.kind("question", label="A question")
    def question_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(choose, label="Colour")

    @jobs.kind("extra", label="With an extra")
    def extra_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(write, label="Text")
        plan.task(doubt, label="Extra", optional=True)

    @jobs.task(max_attempts=1)
    async def look(ctx: Context, note: Note) -> str:
        raise Permanent("input_gone", note.text.strip())

    @jobs.kind("revoked", label="No longer permitted", still_permitted=lambda owner, job: False)
    def revoked_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(write, label="Text")

    @jobs.kind("shared", label="One for all of the tenant", unique_scope="tenant")
    def shared_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(write, label="Text")

    @jobs.kind("few", label="Two at a time", promise=40, quota=2)
    def few_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(write, label="Text")

    @jobs.kind("secret", label="For editors", roles=["editor"])
    def secret_kind(plan: Plan[Note], input: Note) -> None:
        plan.task(write, label="Text")

    for kind, task in (("name", ask_name), ("count", ask_count), ("vanish", look)):
        alone(jobs, kind, task)
    return jobs


def alone(jobs: Outlast, kind: str, task: Task[Any, Any]) -> None:
    """A kind with a plan of one: a task by itself is none for callers."""

    def build(plan: Any, input: Any) -> None:
        plan.task(task, label=kind)

    build.__annotations__ = {"plan": Plan[task.input_type], "input": task.input_type}
    jobs.kind(kind)(build)
