"""`manage.py outlast_prune`: `outlast prune` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast prune --help`."""

    help = "outlast prune, on this project's store; --help shows the options."
    outlast = "prune"
