"""`manage.py outlast_migrate`: `outlast migrate` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast migrate --help`."""

    help = "outlast migrate, on this project's store; --help shows the options."
    outlast = "migrate"
