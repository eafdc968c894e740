"""`manage.py outlast_jobs`: `outlast jobs` for this project."""

from __future__ import annotations

from outlast.integrations.django.commands import OutlastCommand


class Command(OutlastCommand):
    """See `outlast jobs --help`."""

    help = "outlast jobs, on this project's store; --help shows the options."
    outlast = "jobs"
