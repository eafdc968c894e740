"""`manage.py outlast_schedules`: `outlast schedules` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast schedules --help`."""

    help = "outlast schedules, on this project's store; --help shows the options."
    outlast = "schedules"
