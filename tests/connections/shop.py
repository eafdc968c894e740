"""A small application on any store."""

from __future__ import annotations

from dataclasses import dataclass

from outlast import Context, Outlast, Principal, Task

WHO = Principal("acme", "ann")

opened: list[Outlast] = []
"""The applications of the test that runs; they are closed after it, also when it fails."""


@dataclass
class Order:
    number: int
    note: str = ""


def shop(url: str) -> tuple[Outlast, Task[Order, int]]:
    """An application with one task, which gives back its number."""
    jobs = Outlast(url)
    opened.append(jobs)

    @jobs.task(name="ship")
    async def ship(ctx: Context, order: Order) -> int:
        return order.number

    return jobs, ship
