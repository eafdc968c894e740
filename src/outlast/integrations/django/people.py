"""Who a user of Django is to Outlast."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections
from django.http import HttpRequest
from starlette.requests import Request

from outlast.domain.errors import Invalid
from outlast.domain.model import Principal
from outlast.integrations.django.configuration import configuration


def principal_of(user: Any) -> Principal:
    """The principal of a signed-in user, for `owner=` and `principal=`: the subject is the primary key.

    Tenant and roles are what OUTLAST['tenant'] and OUTLAST['roles'] say. Invalid for nobody: who is not signed in owns nothing.
    """
    if not getattr(user, "is_authenticated", False):
        raise Invalid("Nobody is signed in, so nobody would own the job. Ask for a signed-in user first, for example with login_required.")
    said = configuration()
    return Principal(said.tenant(user), str(user.pk), roles=said.roles(user))


def identify(request: Request) -> Principal | None:
    """Who calls the page and the HTTP API: the user of Django's session, or None. It blocks; it runs in a thread.

    The application stands beside Django's middleware: what signs users in otherwise than by the session says so in OUTLAST['identify'].
    """
    key = request.cookies.get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    close_old_connections()
    try:
        asked = HttpRequest()
        asked.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
        user = get_user(asked)
        return principal_of(user) if user.is_authenticated else None
    finally:
        close_old_connections()


def check() -> None:
    """ImproperlyConfigured where `identify` finds nobody because the project has no sessions or no users."""
    for app in ("django.contrib.auth", "django.contrib.sessions"):
        if app not in settings.INSTALLED_APPS and configuration().identify is None:
            raise ImproperlyConfigured(
                f"{app} is not in INSTALLED_APPS, so nobody is signed in. Say who calls by OUTLAST['identify'], a function of the request."
            )
