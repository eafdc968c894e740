"""`manage.py outlast_doctor`: `outlast doctor` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast doctor --help`."""

    help = "outlast doctor, on this project's store; --help shows the options."
    outlast = "doctor"
