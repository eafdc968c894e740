"""The host's jobs: each task waits at a gate until the test opens it, so that nothing depends on how fast anything is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict

from msgspec import Struct

from outlast import Ask, Completion, Context, Outlast, Permanent, Plan, SyncContext


class Errand(Struct, kw_only=True):
    """The input of every kind: the name of its gates, where the first result is found, and what it is called in words of the host."""

    gate: str
    ref: str = ""
    words: str = ""


class Choice(Struct, kw_only=True):
    """What the kind `question` asks for."""

    colour: str


class Gates:
    """Doors that tasks wait at, named GATE:TASK; GATE:* opens all of a gate. The gate "open" has no door."""

    def __init__(self) -> None:
        self._open: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def open(self, gate: str, *tasks: str) -> None:
        """Lets these tasks go on; all of them if none is named."""
        for task in tasks or ("*",):
            self._open[f"{gate}:{task}"].set()

    def is_open(self, gate: str, task: str) -> bool:
        """Whether a task may go on."""
        return gate == "open" or self._open[f"{gate}:{task}"].is_set() or self._open[f"{gate}:*"].is_set()

    async def wait(self, gate: str, task: str) -> None:
        """Returns when the task may go on."""
        while not self.is_open(gate, task):  # noqa: ASYNC110 - it is opened in another thread
            await asyncio.sleep(0.02)


gates = Gates()


async def write(ctx: Context, errand: Errand) -> str:
    """A task that is done when its gate opens."""
    await gates.wait(errand.gate, ctx.label)
    return errand.words or ctx.label


async def publish(ctx: Context, errand: Errand) -> Completion[str]:
    """The same; its result is found at the errand's reference."""
    await gates.wait(errand.gate, ctx.label)
    return ctx.complete(errand.words).at(errand.ref)


async def load(ctx: Context, errand: Errand) -> None:
    """Fails for good in its first claim."""
    await gates.wait(errand.gate, ctx.label)
    if ctx.fence == 1:
        raise Permanent("no_paper", "The printer has no paper.")


async def choose(ctx: Context, errand: Errand) -> str:
    """Asks its owner."""
    chosen = await ctx.ask("which_colour", "Which colour should it be?", answer=Choice)
    return chosen.colour


async def doubt(ctx: Context, errand: Errand) -> str:
    """Asks whether it is wanted at all."""
    raise Ask("unsure", "The extra needs more time than usual. Go on without it?", actions=["retry", "skip"])


def grind(ctx: SyncContext, errand: Errand) -> None:
    """Hears nothing until its gate opens, and no cancel either."""
    while not gates.is_open(errand.gate, ctx.label):
        time.sleep(0.02)


def make(url: str) -> Outlast:
    """A new application on this store."""
    jobs = Outlast(url)
    writing, publishing, loading = jobs.task(write), jobs.task(publish), jobs.task(max_attempts=1)(load)
    choosing, doubting, grinding = jobs.task(choose), jobs.task(doubt), jobs.task(grind)

    @jobs.kind("letter", label="A letter", promise=4, cancel_note="What was printed stays printed.")
    def letter(plan: Plan[Errand], input: Errand) -> None:
        text = plan.task(writing, label="Text", usable=True)
        layout = plan.task(writing, label="Layout", after=[text])
        plan.task(writing, label="Polish", after=[layout], optional=True)

    @jobs.kind("print", label="A print")
    def print_kind(plan: Plan[Errand], input: Errand) -> None:
        text = plan.task(writing, label="Text", usable=True)
        plan.task(loading, label="Paper", after=[text])

    @jobs.kind("page", label="A page")
    def page(plan: Plan[Errand], input: Errand) -> None:
        plan.task(publishing, label="Page", usable=True)
        plan.task(writing, label="Index")

    @jobs.kind("question", label="A question")
    def question(plan: Plan[Errand], input: Errand) -> None:
        plan.task(choosing, label="Colour")

    @jobs.kind("extra", label="With an extra")
    def extra(plan: Plan[Errand], input: Errand) -> None:
        plan.task(writing, label="Text")
        plan.task(doubting, label="Extra", optional=True)

    @jobs.kind("stubborn", label="A stubborn one")
    def stubborn(plan: Plan[Errand], input: Errand) -> None:
        plan.task(grinding, label="Grind")

    return jobs
