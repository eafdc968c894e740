"""What the shop has done in the background; found because of this module's name."""

from __future__ import annotations

from dataclasses import dataclass

from integrations.django.shop.models import Purchase
from outlast import Plan, SyncContext
from outlast.integrations.django import jobs


@dataclass
class Order:
    name: str


@jobs.task
def ship(ctx: SyncContext, order: Order) -> bool:
    """Whether the business row is there."""
    return Purchase.objects.using(jobs.alias).filter(name=order.name).exists()


@jobs.kind("parcel")
def parcel(plan: Plan[Order], order: Order) -> None:
    plan.task(ship, label="100% shipped")
