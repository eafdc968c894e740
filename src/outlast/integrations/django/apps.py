"""The Django app: INSTALLED_APPS += ["outlast.integrations.django"]."""

from __future__ import annotations

import functools
from typing import Any

from django.apps import AppConfig
from django.core.checks import register
from django.db import connections
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

from outlast.integrations.django.addresses import store_url
from outlast.integrations.django.checks import check_settings
from outlast.integrations.django.configuration import configuration
from outlast.integrations.django.project import project
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
    if using == said.database:
        _let_go_before_the_end(connections[using].creation)
    if not said.migrate or using != said.database or kwargs.get("plan") is None:
        return
    for step in migrate(store_url(using)):
        if kwargs.get("verbosity", 1) >= 1 and (out := kwargs.get("stdout")) is not None:
            out.write(f"  Applied outlast {step.number:04d}_{step.name}\n")


def _let_go_before_the_end(creation: Any) -> None:
    """Closes the project's store before Django's test runner, or pytest-django, destroys the test database on this connection.

    PostgreSQL drops no database that somebody is connected to, and Django has no signal that says when. A database that is made for
    tests is migrated through the very connection by which it is destroyed. Elsewhere this is never called.
    """
    if "destroy_test_db" in vars(creation):
        return
    destroy = creation.destroy_test_db

    @functools.wraps(destroy)
    def let_go(*args: Any, **kwargs: Any) -> Any:
        project().sync.close()
        return destroy(*args, **kwargs)

    creation.destroy_test_db = let_go
