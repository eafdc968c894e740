"""A tiny application, named as TARGET by the tests: `shop:jobs`. Its handlers write a line each to the file SHOP_LEDGER."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from outlast import Context, Outlast, Permanent, Plan, RetryPolicy, SyncContext

jobs = Outlast("sqlite:///shop.db")
not_jobs = 3


@dataclass(frozen=True)
class Order:
    """What to do: `how` is quick, fail, break, ask or block."""

    how: str = "quick"
    seconds: float = 0.0


def write(line: str) -> None:
    """One line in the ledger."""
    ledger = os.environ.get("SHOP_LEDGER")
    if ledger:
        with Path(ledger).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@jobs.task(max_attempts=2, retry=RetryPolicy(base=0.05, cap=0.1))
async def pack(ctx: Context, order: Order) -> str:
    """Packs in two steps."""
    write(f"start {ctx.job_id} {ctx.fence}")
    first = await ctx.step("first", _first)
    if order.how == "fail":
        raise Permanent("out_of_stock", "We have none left.")
    if order.how == "break":
        raise RuntimeError("the secret lies in /etc/secret")
    if order.how == "ask":
        await ctx.ask("which_colour", "Which colour?", answer=Order)
    if order.how == "block":
        time.sleep(order.seconds)  # noqa: ASYNC251 - what it is for
    await asyncio.sleep(order.seconds)
    write(f"end {ctx.job_id} {ctx.fence}")
    return first


def _first() -> str:
    return "packed"


@jobs.task(deadline=1.0)
def hang(ctx: SyncContext, order: Order) -> None:
    """A thread that does not hear."""
    write(f"start {ctx.job_id} {ctx.fence}")
    time.sleep(order.seconds)


@jobs.task(queue="mail")
async def mail(ctx: Context, order: Order) -> None:
    """Nothing much."""


@jobs.kind("rare", quota=1)
def rare(plan: Plan[Order], order: Order) -> None:
    """One at a time for an owner."""
    plan.task(pack, label="Pack")


@jobs.kind("order", label="An order", cancel_note="What was sent cannot be called back.")
def order(plan: Plan[Order], order: Order) -> None:
    """Pack, then mail."""
    packed = plan.task(pack, label="Pack", usable=True)
    plan.task(mail, label="Mail", after=[packed], optional=True)
