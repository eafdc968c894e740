"""A Django project in this process, on stores of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import django
import pytest
from django.db import connections
from django.test import override_settings

from integrations.django import site
from servers.postgres import PostgresServer

django.setup()

from django.core.management import call_command  # noqa: E402 - it needs the settings

from outlast.integrations.django import jobs  # noqa: E402
from outlast.integrations.django.addresses import store_url  # noqa: E402


def _place(alias: str, dsn: str, name: str) -> None:
    parts = urlsplit(dsn)
    settings = connections.settings[alias]
    settings.update(NAME=name, USER=parts.username or "", PASSWORD=parts.password or "", HOST=parts.hostname or "", PORT=str(parts.port))


@pytest.fixture(scope="session")
def databases(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The databases of all aliases, migrated as a project's are. The folder of the SQLite file."""
    for name in ("django_shop", "django_elsewhere"):
        postgres_server.create_database(name)
    for alias in ("default", "pooled", "server_side"):
        _place(alias, postgres_server.dsn("django_shop"), "django_shop")
    _place("elsewhere", postgres_server.dsn("django_elsewhere"), "django_elsewhere")
    folder = tmp_path_factory.mktemp("django")
    for alias in ("lite", "deferred"):
        connections.settings[alias]["NAME"] = str(folder / "shop 100%.sqlite3")
    for alias in site.ALIASES:
        with override_settings(OUTLAST={"database": alias}):
            call_command("migrate", database=alias, verbosity=0, run_syncdb=True)
    yield folder
    jobs.sync.close()
    for connection in connections.all():
        if getattr(connection, "pool", None):
            connection.close_pool()
        connection.close()


@contextmanager
def on(alias: str) -> Iterator[None]:
    """The project's jobs on another of its databases."""
    with override_settings(OUTLAST={"database": alias, "base_url": "/jobs"}):
        yield


@pytest.fixture(params=site.ALIASES)
def alias(request: pytest.FixtureRequest, databases: Path) -> Iterator[str]:
    """Each store in turn, as the project's."""
    with on(request.param):
        yield request.param
    for connection in connections.all():
        connection.close()


@pytest.fixture
def default(databases: Path) -> Iterator[None]:
    """The project on PostgreSQL."""
    yield
    for connection in connections.all():
        connection.close()


__all__ = ["store_url"]
