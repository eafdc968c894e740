"""Tasks of Django's framework."""

from __future__ import annotations

from typing import Any

from integrations.django.shop.models import Purchase
from outlast import Permanent, Snooze
from outlast.integrations.django.framework import part

task = part().task


@task
def note(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


@task(priority=5, queue_name="mail")
async def note_async(name: str) -> bool:
    return await Purchase.objects.filter(name=name).aexists()


@task(takes_context=True)
def with_context(context: Any, more: int) -> list[Any]:
    return [context.task_result.id, context.attempt, more]


@task
def fails(secret: str) -> None:
    raise LookupError(f"nothing for {secret}")


@task
def gives_up() -> None:
    raise Permanent("no_such_order", "There is no such order.")


class Chatty(Permanent):
    """A failure of the task's own, which says more than it should."""

    def __str__(self) -> str:
        return 'a\n  File "x", line 1, in hunter2 and more\nhunter2'


@task
def chatters() -> None:
    raise Chatty("no_such_order")


@task
def ends_the_process() -> None:
    raise SystemExit(3)


@task
def makes_no_json() -> Any:
    return object()


_snoozed: list[str] = []


@task(takes_context=True)
def snoozes_once(context: Any) -> int:
    if context.task_result.id not in _snoozed:
        _snoozed.append(context.task_result.id)
        raise Snooze(0.05)
    return int(context.attempt)


def plain() -> None:
    """No task."""
