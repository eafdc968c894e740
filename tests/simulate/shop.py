"""The application that is simulated: kinds of every shape, and handlers that take their time, fail, ask, snooze and call the outside."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from outlast import Ask, Context, Limit, Outlast, Permanent, Plan, Principal, Retry, RetryPolicy, Settings, Snooze
from simulate.provider import TIMEOUT, Mode, Receipt
from simulate.virtual import Now

if TYPE_CHECKING:
    from simulate.world import World

LEASE: Final = 60.0
RETENTION: Final = 250.0
HORIZON: Final = 200.0
SETTINGS: Final = Settings(lease=LEASE, sweep=30.0, attention_window=150.0, retention=RETENTION, replay_horizon=HORIZON)
QUICK: Final = RetryPolicy(base=2.0, cap=30.0, window=1_200.0)
SLOTS: Final = {"default": 3, "slow": 2}
OWNERS: Final = tuple(Principal("acme", name) for name in ("ann", "bob"))
OPERATOR: Final = Principal("acme", "olga", roles=("operator",))

jobs = Outlast("sqlite:///simulated.db", settings=SETTINGS)


@dataclass
class Order:
    """What is asked for."""

    number: int
    parts: int = 2


@dataclass
class Part:
    """One of several."""

    no: int


def _world() -> World:
    world: World = Now.world
    return world


async def _work(ctx: Context) -> None:
    """Takes its time, which may be longer than a lease, or than the attempt may take; goes wrong in one way or another."""
    world = _world()
    draw = world.random.random()
    seconds = draw * 8.0 if draw < 0.85 else draw * LEASE * 1.5 if draw < 0.98 else 500.0
    await asyncio.sleep(0.2 if world.calm else seconds)
    ctx.check()
    draw = 1.0 if world.calm else world.random.random()
    if draw < 0.05:
        raise Retry("busy", after=world.random.uniform(0.0, 20.0), pause_key=draw < 0.02)
    if draw < 0.08:
        raise RuntimeError("a defect")
    if draw < 0.10:
        raise Snooze(world.random.uniform(0.1, 20.0))
    if draw < 0.115:
        raise Permanent("gone", "It is gone.")


@jobs.task(deadline=150, retry=QUICK, max_attempts=4)
async def fetch(ctx: Context, order: Order) -> int:
    await _work(ctx)

    async def look() -> int:
        await asyncio.sleep(0.1)
        return order.number

    first = await ctx.step("first", look)
    ctx.progress("half")
    await _work(ctx)
    return first + await ctx.step("second", look)


@jobs.task(deadline=150, retry=QUICK, max_attempts=4)
async def sum_up(ctx: Context, order: Order) -> int:
    found = await ctx.output(fetch, default=0)
    await _work(ctx)
    return found


@jobs.task(deadline=150, retry=QUICK, max_attempts=3, queue="slow", limit=Limit("press", 2))
async def print_part(ctx: Context, order: Order, part: Part) -> int:
    await _work(ctx)
    return part.no


@jobs.task(deadline=150, retry=QUICK, max_attempts=3)
async def decorate(ctx: Context, order: Order) -> str:
    draw = _world().random.random()
    if draw < 0.2:
        raise Ask("which_colour", "Which colour?", actions=("retry", "skip"))
    if draw < 0.35:
        raise Permanent("no_paint", "There is no paint.")
    await _work(ctx)
    return "blue"


@jobs.task(deadline=150, retry=QUICK, max_attempts=3)
async def choose(ctx: Context, order: Order) -> str:
    return await ctx.ask("size", "Which size?", answer=str)


def _call(mode: Mode, ctx: Context) -> object:
    async def send(key: str) -> Receipt:
        return await _world().provider.call(key, ctx, mode)

    return send


@jobs.task(deadline=150, retry=QUICK, max_attempts=5)
async def mail(ctx: Context, order: Order) -> int:
    await _work(ctx)
    receipt: Receipt = await ctx.effect("mail", _call("idempotent", ctx), idempotent=True, timeout=TIMEOUT)  # type: ignore[call-overload]
    await _work(ctx)
    return receipt.number


@jobs.task(deadline=150, retry=QUICK, max_attempts=5)
async def pay(ctx: Context, order: Order) -> int:
    receipt: Receipt = await ctx.effect(  # type: ignore[call-overload]
        "pay", _call("reconcile", ctx), reconcile=_world().provider.look_up, timeout=TIMEOUT
    )
    await _work(ctx)
    return receipt.number


@jobs.task(deadline=150, retry=QUICK, max_attempts=5, limit=Limit("bank", 1))
async def wire(ctx: Context, order: Order) -> int:
    receipt: Receipt = await ctx.effect("wire", _call("neither", ctx), timeout=TIMEOUT)  # type: ignore[call-overload]
    await _work(ctx)
    return receipt.number


@jobs.kind("report")
def report(plan: Plan[Order], order: Order) -> None:
    found = plan.task(fetch, label="fetch")
    nice = plan.task(decorate, label="decorate", after=[found], optional=True)
    plan.task(sum_up, label="sum", after=[found, nice], usable=True)
    plan.task(mail, label="mail", after=[nice], optional=True)


@jobs.kind("letter")
def letter(plan: Plan[Order], order: Order) -> None:
    plan.task(mail, label="mail")
    plan.task(fetch, label="fetch", optional=True)


@jobs.kind("bill")
def bill(plan: Plan[Order], order: Order) -> None:
    paid = plan.task(pay, label="pay")
    plan.task(wire, label="wire", after=[paid])


@jobs.kind("book", quota=3)
def book(plan: Plan[Order], order: Order) -> None:
    printed = plan.each(print_part, [Part(no) for no in range(order.parts)], label=lambda part: f"part {part.no}")
    plan.task(choose, label="choose", after=printed[:1])


@jobs.kind("errand")
def errand(plan: Plan[Order], order: Order) -> None:
    plan.task(fetch, label="fetch")


KINDS: Final = (report, letter, bill, book, errand)
