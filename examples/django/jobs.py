"""What is done in the background about an order."""

from __future__ import annotations

import time
from dataclasses import dataclass

from examples.django.models import Order

from outlast import Plan, SyncContext
from outlast.integrations.django import jobs

_PARTS = 20
_PAUSE = 0.1


@dataclass
class Ordered:
    """Which order, by its primary key."""

    order: int


@jobs.task
def pack(ctx: SyncContext, _ordered: Ordered) -> int:
    """Takes a while, and says how far it is."""
    for part in range(1, _PARTS + 1):
        ctx.check()
        time.sleep(_PAUSE)
        ctx.progress(f"{part} of {_PARTS} parts")
    return _PARTS


@jobs.task
def invoice(ctx: SyncContext, ordered: Ordered) -> str:
    """Writes the invoice's number to the order; twice is once, since the number is the job's."""
    number = f"INV-{ctx.job_id[:13]}"
    Order.objects.filter(pk=ordered.order).update(invoice=number)
    return number


@jobs.kind("order", label="Your order", promise=5, success="Your order is packed and invoiced.")
def fulfil(plan: Plan[Ordered], _ordered: Ordered) -> None:
    """First packed, then invoiced."""
    packed = plan.task(pack, label="Pack")
    plan.task(invoice, label="Write the invoice", after=[packed])
