"""Releases of one application, as they meet on one store while it is deployed: `old`, `new`, and some that are not quite right.

Each job writes a text in a step, sends a mail by an effect, and, in the old release, goes out by fax; the new one keeps a copy instead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from outlast import Context, Outlast, Permanent, Plan, Principal, RetryPolicy, SyncContext
from outlast.rehearsal import ledger

STORE = "sqlite:///unused.db"  # tests give their own store to client and worker
QUICK = RetryPolicy(base=0, cap=0)
EFFECT_TIME = 0.5


@dataclass
class Period:
    """The input of version 1."""

    period: str
    seconds: float = 0.0


@dataclass
class Month:
    """The input of version 2."""

    month: str
    seconds: float = 0.0


def _started(ctx: Context | SyncContext) -> None:
    ledger.write("start", job=ctx.job_id, label=ctx.label, attempt=ctx.attempt, fence=ctx.fence)


def _text(ctx: SyncContext, month: str, seconds: float) -> str:
    ledger.write("step", job=ctx.job_id, label=ctx.label, attempt=ctx.attempt, fence=ctx.fence)
    time.sleep(seconds)
    return f"Report of {month}"


def _send(ctx: Context, key: str) -> str:
    ledger.write("effect", job=ctx.job_id, label=key, attempt=ctx.attempt, fence=ctx.fence)
    return "sent"


# ---- the old release ----

old = Outlast(STORE)


@old.task(name="write", retry=QUICK)
def write_old(ctx: SyncContext, given: Period) -> str:
    _started(ctx)
    return ctx.step("text", _text, ctx, given.period, given.seconds)


@old.task(name="mail", retry=QUICK)
async def mail_old(ctx: Context, given: Period) -> str:
    _started(ctx)

    async def send(key: str) -> str:
        return _send(ctx, key)

    return await ctx.effect("mail", send, idempotent=True, input=given.period, timeout=EFFECT_TIME)


@old.task(name="fax", retry=QUICK)
async def fax_old(ctx: Context, given: Period) -> str:
    _started(ctx)
    return await ctx.output(write_old)


@old.kind("report")
def report_old(plan: Plan[Period], given: Period) -> None:
    text = plan.task(write_old, label="Text", usable=True)
    plan.task(mail_old, label="Mail", after=[text])


@old.kind("fax-report")
def fax_report_old(plan: Plan[Period], given: Period) -> None:
    text = plan.task(write_old, label="Text", usable=True)
    plan.task(fax_old, label="Fax", after=[text])


# ---- the new one, and others of its version ----


def _new(*, fax: bool = False) -> Outlast:
    jobs = Outlast(STORE)

    @jobs.task(name="write", retry=QUICK)
    def write(ctx: SyncContext, given: Month) -> str:
        _started(ctx)
        return ctx.step("text", _text, ctx, given.month, given.seconds)

    @jobs.task(name="mail", retry=QUICK)
    async def mail(ctx: Context, given: Month) -> str:
        _started(ctx)

        async def send(key: str) -> str:
            return _send(ctx, key)

        return await ctx.effect("mail", send, idempotent=True, input=given.month, timeout=EFFECT_TIME)

    @jobs.task(name="copy", retry=QUICK)
    async def keep_copy(ctx: Context, given: Month) -> str:
        _started(ctx)
        return await ctx.output(write)

    if fax:

        @jobs.task(name="fax", retry=QUICK)
        async def keep_fax(ctx: Context, given: Month) -> str:
            _started(ctx)
            return await ctx.output(write)

    @jobs.kind("report", version=2)
    def report(plan: Plan[Month], given: Month) -> None:
        text = plan.task(write, label="Text", usable=True)
        plan.task(mail, label="Mail", after=[text])
        plan.task(keep_copy, label="Copy", after=[text])

    @jobs.kind("fax-report", version=2)
    def fax_report(plan: Plan[Month], given: Month) -> None:
        plan.task(write, label="Text", usable=True)

    return jobs


def upgraded(old_input: dict[str, Any]) -> dict[str, Any]:
    return {"month": old_input["period"], "seconds": old_input["seconds"]}


def fails(old_input: dict[str, Any]) -> dict[str, Any]:
    raise LookupError(f"MARKER {old_input['period']}")


def misfits(old_input: dict[str, Any]) -> dict[str, Any]:
    return {"month": 7}


def _with(fn: Any, *, fax: bool = False) -> Outlast:
    jobs = _new(fax=fax)
    for name in ("report", "fax-report"):
        jobs.registry.kind(name).upgrade(from_version=1)(fn)
    return jobs


new = _with(upgraded)
new_with_fax = _with(upgraded, fax=True)
without_upgrade = _new()
failing = _with(fails)
misfitting = _with(misfits)


# ---- what was stored by one release and is read by another ----


@dataclass
class Charge:
    account: str


@dataclass
class Receipt:
    id: str


@dataclass
class Bill:
    number: int


def _get_on(ends: bool) -> None:
    if not ends:
        raise Permanent("half", "The old release gets no further.")


def _shop(made_as: type, *, ends: bool) -> Outlast:
    """A kind whose step, parent's result and effect are of the type that this release gives them."""
    jobs = Outlast(STORE)

    def make(_key: str = "") -> Any:
        return Receipt("r1") if made_as is Receipt else Bill(1)

    make.__annotations__["return"] = made_as

    @jobs.task(name="first", retry=QUICK)
    def first(ctx: SyncContext, given: Charge) -> Any:
        _started(ctx)
        return make()

    first.returns = made_as

    @jobs.task(name="steps", retry=QUICK)
    def steps(ctx: SyncContext, given: Charge) -> str:
        _started(ctx)
        ctx.step("receipt", make)
        _get_on(ends)
        return "done"

    @jobs.task(name="reads", retry=QUICK)
    def reads(ctx: SyncContext, given: Charge) -> str:
        _started(ctx)
        _get_on(ends)
        ctx.output(first)
        return "done"

    @jobs.task(name="charges", retry=QUICK)
    def charges(ctx: SyncContext, given: Charge) -> str:
        _started(ctx)

        def call(key: str) -> Any:
            ledger.write("effect", job=ctx.job_id, label=key, attempt=ctx.attempt, fence=ctx.fence)
            return make()

        call.__annotations__["return"] = made_as
        ctx.effect("charge", call, idempotent=True, input=given.account)
        _get_on(ends)
        return "done"

    @jobs.kind("charge")
    def charge(plan: Plan[Charge], given: Charge) -> None:
        parent = plan.task(first, label="First")
        plan.task(steps, label="Steps")
        plan.task(reads, label="Reads", after=[parent])
        plan.task(charges, label="Charges")

    return jobs


receipts_half = _shop(Receipt, ends=False)
receipts = _shop(Receipt, ends=True)
bills = _shop(Bill, ends=True)
OPERATOR = Principal("acme", "olga", roles=["operator"])
