"""What `manage.py check` says of settings with which there is no store, or one that will be in the way of itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - Django's word for it
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist

from outlast.integrations.django.addresses import store_url
from outlast.integrations.django.configuration import configuration


def check_settings(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """Errors that keep the project from having jobs, and warnings."""
    del app_configs, kwargs
    try:
        alias = configuration().database
    except ImproperlyConfigured as error:
        return [Error(str(error), id="outlast.E001")]
    try:
        connection: Any = connections[alias]
    except ConnectionDoesNotExist:
        known = ", ".join(repr(name) for name in connections)
        return [Error(f"OUTLAST['database'] names {alias!r}, which DATABASES does not have; it has {known}.", id="outlast.E002")]
    except ImproperlyConfigured as error:
        return [Error(f"The database {alias!r} of OUTLAST['database'] cannot be used: {error}", id="outlast.E003")]
    if connection.vendor == "postgresql":
        from django.db.backends.postgresql.psycopg_any import is_psycopg3  # noqa: PLC0415 - needs a driver

        if not is_psycopg3:
            return [
                Error(
                    f"The database {alias!r} of OUTLAST['database'] is used through psycopg2.",
                    hint="Install psycopg 3, which Django then takes: pip install 'outlast[postgres]'.",
                    id="outlast.E003",
                )
            ]
    try:
        store_url(alias)
    except ImproperlyConfigured as error:
        return [Error(str(error), id="outlast.E003")]
    found: list[CheckMessage] = []
    if not urlsplit(configuration().base_url).path.rstrip("/"):
        found.append(
            Warning(
                "OUTLAST['base_url'] has no path, and the root is Django's: Mounted and MountedWsgi refuse it.",
                hint="OUTLAST['base_url'] = '/jobs'",
                id="outlast.W002",
            )
        )
    mode = str(connection.settings_dict["OPTIONS"].get("transaction_mode") or "").upper()
    if connection.vendor == "sqlite" and mode not in ("IMMEDIATE", "EXCLUSIVE"):
        found.append(
            Warning(
                f"Transactions on {alias!r} begin as readers, so one that has read and then submits a job is refused with Contended if "
                "another has written meanwhile.",
                hint=f"DATABASES[{alias!r}]['OPTIONS'] = {{'transaction_mode': 'IMMEDIATE'}}",
                id="outlast.W001",
            )
        )
    return found
