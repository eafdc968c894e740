"""`manage.py outlast_verify`: `outlast verify` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast verify --help`."""

    help = "outlast verify, on this project's store; --help shows the options."
    outlast = "verify"
