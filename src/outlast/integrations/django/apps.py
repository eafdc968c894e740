"""The Django app: INSTALLED_APPS += ["outlast.integrations.django"]."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

from outlast.integrations.django.addresses import store_url
from outlast.integrations.django.checks import check_settings
from outlast.integrations.django.configuration import configuration
from outlast.store.open import migrate


class OutlastConfig(AppConfig):
    """Finds each app's `jobs.py`, checks the settings, and migrates the store with the rest."""

    name = "outlast.integrations.django"
    label = "outlast"
    verbose_name = "Background jobs"

    def ready(self) -> None:
        """See `AppConfig`."""
        register(check_settings, "outlast")
        post_migrate.connect(bring_up, sender=self)
        autodiscover_modules("jobs")


def bring_up(*, using: str, **kwargs: Any) -> None:
    """After `manage.py migrate` on the store's database: its tables too, in a test database as well."""
    said = configuration()
    if not said.migrate or using != said.database or kwargs.get("plan") is None:
        return
    for step in migrate(store_url(using)):
        if kwargs.get("verbosity", 1) >= 1 and (out := kwargs.get("stdout")) is not None:
            out.write(f"  Applied outlast {step.number:04d}_{step.name}\n")
