"""`manage.py outlast_serve`: `outlast serve` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast serve --help`."""

    help = "outlast serve, on this project's store; --help shows the options."
    outlast = "serve"
