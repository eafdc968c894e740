"""After: the same work as one kind of job. `outlast dev examples.migrating.celery.after:jobs`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from examples.migrating import outside

from outlast import Context, Every, Outlast, Plan, Principal, RetryPolicy, SyncContext

jobs = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///shop.db"), base_url="/jobs")
HOUSE = Principal("shop", "house")  # whose job it is that nobody asked for


@dataclass
class Brochure:
    order: int
    pages: int


@jobs.task(
    max_attempts=5, retry=RetryPolicy(base=1, cap=600), deadline=120
)  # base 1 s, doubled each time, full jitter, as with retry_backoff
def load(ctx: SyncContext, wanted: Brochure) -> str:
    return outside.load(wanted.order)


@jobs.task(queue="images")
def draw(ctx: SyncContext, wanted: Brochure, page: int) -> str:
    return outside.draw(wanted.order, page)


@jobs.task
def assemble(ctx: SyncContext, wanted: Brochure) -> str:
    return "; ".join(ctx.outputs(draw).values())  # no result is passed on: a task reads what it needs of its parents


@jobs.task
def mail(ctx: SyncContext, wanted: Brochure) -> None:
    to, text = ctx.output(load), ctx.output(assemble)
    ctx.effect("mail", lambda key: outside.send(to, text, key), idempotent=True)  # repeated with the same key, whoever dies


@jobs.kind("brochure", version=1, label="Brochure")
def brochure(plan: Plan[Brochure], wanted: Brochure) -> None:
    loaded = plan.task(load, label="Customer")
    drawn = plan.each(draw, range(1, wanted.pages + 1), label=lambda page: f"Page {page}", after=[loaded])  # the group
    text = plan.task(assemble, label="Text", after=drawn, usable=True)  # the chord's callback
    plan.task(mail, label="E-mail", after=[loaded, text])


@jobs.task
async def tidy(ctx: Context, nothing: dict[str, str]) -> None:
    print("tidied")


def place(order: int, pages: int, who: Principal, *, later: timedelta = timedelta()) -> str:
    """Asks for a brochure; give transaction= to commit it with the order. The same key is the same job."""
    due = datetime.now(UTC) + later if later else None  # countdown and eta; no worker holds it until then
    return jobs.sync.submit(brochure, Brochure(order, pages), owner=who, key=f"brochure-{order}-{pages}", not_before=due).id


def schedule() -> None:
    """Instead of a beat process; run it once, at each deploy if you like."""
    jobs.sync.schedule(tidy, {}, name="nightly", when=Every(86_400), owner=HOUSE)
