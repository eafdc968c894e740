"""After: the same work as one kind of job. `outlast dev examples.migrating.rq.after:jobs`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime

from examples.migrating import outside

from outlast import Outlast, Plan, Principal, RetryPolicy, SyncContext

jobs = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///shop.db"), base_url="/jobs")
HOUSE = Principal("shop", "house")  # whose job it is that nobody asked for


@dataclass
class Brochure:
    order: int
    pages: int


@jobs.task(max_attempts=5, retry=RetryPolicy(base=1, cap=8), deadline=120)  # deadline: what job_timeout was
def load(ctx: SyncContext, wanted: Brochure) -> str:
    return outside.load(wanted.order)


@jobs.task(queue="images")
def draw(ctx: SyncContext, wanted: Brochure, page: int) -> str:
    ctx.progress(f"page {page}")  # what meta was for; the person who asked sees it without your doing
    return outside.draw(wanted.order, page)


@jobs.task
def mail(ctx: SyncContext, wanted: Brochure) -> None:
    to, text = ctx.output(load), "; ".join(ctx.outputs(draw).values())
    ctx.effect("mail", lambda key: outside.send(to, text, key), idempotent=True)  # repeated with the same key, whoever dies


@jobs.kind("brochure", version=1, label="Brochure")
def brochure(plan: Plan[Brochure], wanted: Brochure) -> None:
    loaded = plan.task(load, label="Customer")
    drawn = plan.each(draw, range(1, wanted.pages + 1), label=lambda page: f"Page {page}", after=[loaded])
    plan.task(mail, label="E-mail", after=[loaded, *drawn])


def place(order: int, pages: int, who: Principal, *, at: datetime | None = None) -> str:
    """Asks for a brochure; give transaction= to commit it with the order. The same key is the same job, whatever became of the answer."""
    return jobs.sync.submit(brochure, Brochure(order, pages), owner=who, key=f"brochure-{order}-{pages}", not_before=at).id
