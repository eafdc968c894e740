"""`manage.py outlast_forget`: `outlast forget` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast forget --help`."""

    help = "outlast forget, on this project's store; --help shows the options."
    outlast = "forget"
