"""Types of the Django integration. It is checked and not run."""

# mypy: disable-error-code=ignore-without-code

from dataclasses import dataclass
from typing import assert_type

from outlast import Handle, Outlast, Principal, SyncContext, Task
from outlast.integrations.django import jobs, principal_of, store_url


@dataclass
class Order:
    number: int


@jobs.task
def confirm(ctx: SyncContext, order: Order) -> str:
    return "confirmed"


def types_of_a_project(user: object) -> None:
    assert_type(jobs, Outlast)
    assert_type(confirm, Task[Order, str])
    assert_type(principal_of(user), Principal)
    assert_type(store_url("default"), str)
    assert_type(jobs.sync.submit(confirm, Order(1), owner=principal_of(user), transaction="default"), Handle)
    jobs.sync.submit(confirm, 1, owner=principal_of(user), transaction="default")  # type: ignore
    jobs.sync.submit(confirm, Order(1), transaction="default")  # type: ignore
