"""The settings of a Django project for tests, given to Django before anything asks for them. Names of databases come with the fixtures."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

from django.conf import settings
from psycopg import IsolationLevel

ALIASES: Final = ("default", "lite")
"""The stores: PostgreSQL and SQLite."""


def _lite(**options: Any) -> dict[str, Any]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": "set-by-a-fixture", "OPTIONS": options}


def _postgres(**options: Any) -> dict[str, Any]:
    return {"ENGINE": "django.db.backends.postgresql", "NAME": "set-by-a-fixture", "OPTIONS": options}


DATABASES: Final = {
    "default": _postgres(),
    "pooled": _postgres(pool=True),
    "server_side": _postgres(server_side_binding=True),
    "elsewhere": _postgres(),
    "lite": _lite(transaction_mode="IMMEDIATE"),
    "deferred": _lite(timeout=0),
    "joined": _postgres(),
    "joined_snapshot": _postgres(isolation_level=IsolationLevel.REPEATABLE_READ),
    "joined_lite": _lite(timeout=10),
    "joined_lite_snapshot": _lite(timeout=0),
    "nowhere": {"ENGINE": "django.db.backends.dummy"},
    "memory": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}

JOINED: Final = {
    ("postgresql", False): "joined",
    ("postgresql", True): "joined_snapshot",
    ("sqlite", False): "joined_lite",
    ("sqlite", True): "joined_lite_snapshot",
}
"""The aliases for the tests of tests/joining, by scheme, and whether a transaction has a snapshot."""

if not settings.configured:
    settings.configure(
        DATABASES=DATABASES,
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            *([] if find_spec("django.tasks") else ["django_tasks"]),
            "integrations.django.shop",
            "outlast.integrations.django",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        ROOT_URLCONF="integrations.django.shop.urls",
        SECRET_KEY="for-tests",
        ALLOWED_HOSTS=["*"],
        USE_TZ=True,
        LOGGING_CONFIG=None,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        OUTLAST={"database": "default", "base_url": "/jobs"},
        TASKS={"default": {"BACKEND": "outlast.integrations.django.tasks.OutlastBackend", "QUEUES": []}},
    )
