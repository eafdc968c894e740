"""`manage.py outlast_worker`: `outlast worker` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast worker --help`."""

    help = "outlast worker, on this project's store; --help shows the options."
    outlast = "worker"
