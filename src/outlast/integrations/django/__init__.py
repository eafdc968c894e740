"""Outlast in a Django project, on one of its databases, with the users of its sessions.

With INSTALLED_APPS += ["outlast.integrations.django"], in an app's `jobs.py`:

    from outlast.integrations.django import jobs

    @jobs.task
    def confirm(ctx: SyncContext, order: Order) -> str: ...

And in a view:

    with transaction.atomic():
        order = Order.objects.create(...)
        jobs.sync.submit(confirm, Order(order.pk), owner=principal_of(request.user), transaction="default")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlast.app import Outlast
    from outlast.integrations.django.addresses import store_url
    from outlast.integrations.django.mounting import Mounted, MountedWsgi
    from outlast.integrations.django.people import identify, principal_of

    jobs: Outlast
    """The project's `Outlast`, on the database that OUTLAST['database'] names."""

__all__ = ["Mounted", "MountedWsgi", "identify", "jobs", "principal_of", "store_url"]

_PLACES = {
    "Mounted": "mounting",
    "MountedWsgi": "mounting",
    "identify": "people",
    "principal_of": "people",
    "store_url": "addresses",
}


def __getattr__(name: str) -> Any:
    """Imported when asked for: Django imports this package before its apps are there."""
    from importlib import import_module  # noqa: PLC0415 - see above

    if name == "jobs":
        return import_module("outlast.integrations.django.project").project()
    if name in _PLACES:
        return getattr(import_module(f"outlast.integrations.django.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
