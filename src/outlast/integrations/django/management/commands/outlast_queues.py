"""`manage.py outlast_queues`: `outlast queues` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast queues --help`."""

    help = "outlast queues, on this project's store; --help shows the options."
    outlast = "queues"
