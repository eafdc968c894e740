"""A Django project in this process, on stores of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import override_settings

from integrations.django import site
from servers.postgres import PostgresServer

django.setup()

from django.core.management import call_command  # noqa: E402 - it needs the settings

from outlast.integrations.django import jobs  # noqa: E402
from outlast.store.open import parse  # noqa: E402


def place(alias: str, url: str) -> Any:
    """This thread's connection of an alias, on the database of a store's URL."""
    connection: Any = connections[alias]
    connection.close()
    connection.settings_dict.update(_named(url))
    return connection


def _named(url: str) -> dict[str, str]:
    if url.startswith("sqlite"):
        return {"NAME": parse(url).target}
    parts = urlsplit(url)
    return {
        "NAME": parts.path.removeprefix("/"),
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }


async def tidy() -> None:
    """Gives back what async code has opened: the pool of the test's loop, and the connections of the thread in which Django is asked."""
    await jobs.close()
    await sync_to_async(connections.close_all)()


@pytest.fixture(scope="session")
def databases(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The databases of all aliases, migrated as a project's are. The folder of the SQLite file."""
    shop, elsewhere = (postgres_server.create_database(name) for name in ("django_shop", "django_elsewhere"))
    for alias, url in (("default", shop), ("pooled", shop), ("server_side", shop), ("elsewhere", elsewhere)):
        connections.settings[alias].update(_named(url))
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
