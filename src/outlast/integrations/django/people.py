"""Who a user of Django is to Outlast."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model, load_backend
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections
from django.utils.crypto import constant_time_compare
from starlette.requests import Request

from outlast.domain.errors import Invalid
from outlast.domain.model import Principal
from outlast.integrations.django.configuration import configuration


def principal_of(user: Any) -> Principal:
    """The principal of a signed-in user, for `owner=` and `principal=`: the subject is the primary key.

    Tenant and roles are what OUTLAST['tenant'] and OUTLAST['roles'] say. Invalid for nobody, who owns
    nothing, and for a user who is not saved yet.
    """
    if not getattr(user, "is_authenticated", False):
        raise Invalid("Nobody is signed in, so nobody would own the job. Ask for a signed-in user first, for example with login_required.")
    if user.pk is None:
        raise Invalid("The user is not saved yet, so has no primary key by which the job could be theirs. Save the user first.")
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
        user = _user_of(import_module(settings.SESSION_ENGINE).SessionStore(key))
        return principal_of(user) if getattr(user, "is_authenticated", False) else None
    finally:
        close_old_connections()


def _user_of(session: Any) -> Any | None:
    """The user whom Django's `get_user` finds, without what that writes.

    It gives a session that was signed with an earlier key another name, which only Django's middleware could tell the browser, and
    empties one whose password has changed. Both are for the project's own views to do.
    """
    try:
        pk = get_user_model()._meta.pk.to_python(session[SESSION_KEY])  # noqa: SLF001 - Django's documented name for it
        backend = session[BACKEND_SESSION_KEY]
    except KeyError:
        return None
    if backend not in settings.AUTHENTICATION_BACKENDS:
        return None
    user: Any = load_backend(backend).get_user(pk)
    if not hasattr(user, "get_session_auth_hash"):
        return user
    signed = session.get(HASH_SESSION_KEY)
    accepted = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return user if signed and any(constant_time_compare(signed, one) for one in accepted) else None


def check() -> None:
    """ImproperlyConfigured where `identify` finds nobody because the project has no sessions or no users."""
    for app in ("django.contrib.auth", "django.contrib.sessions"):
        if app not in settings.INSTALLED_APPS and configuration().identify is None:
            raise ImproperlyConfigured(
                f"{app} is not in INSTALLED_APPS, so nobody is signed in. Say who calls by OUTLAST['identify'], a function of the request."
            )
