"""OUTLAST in the settings of a Django project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from outlast.client.views import check_base_url
from outlast.domain.access import OPERATOR
from outlast.domain.errors import Invalid

T = TypeVar("T")

TENANT = "site"
"""The tenant of everybody, unless OUTLAST['tenant'] says whose a user is."""


def one_tenant(user: object) -> str:
    """Everybody's tenant in a project that serves one."""
    del user
    return TENANT


def superusers(user: Any) -> Iterable[str]:
    """Operators are superusers, where nothing else is said."""
    return (OPERATOR,) if getattr(user, "is_superuser", False) else ()


@dataclass(frozen=True, slots=True)
class Configuration:
    """What OUTLAST says. Functions are given as such or as dotted paths.

    database: the alias of DATABASES in which the jobs are. base_url: where the page and the HTTP API are. tenant(user), roles(user):
    whose a signed-in user is, and what they may. identify(request): who calls, in place of the session's user; the request is
    Starlette's. migrate: whether `manage.py migrate` brings the store's tables up too.
    """

    database: str = "default"
    base_url: str = "/jobs"
    tenant: Callable[[Any], str] = one_tenant
    roles: Callable[[Any], Iterable[str]] = superusers
    identify: Callable[[Any], Any] | None = None
    migrate: bool = True


_FUNCTIONS = ("tenant", "roles", "identify")


def configuration() -> Configuration:
    """What the settings say now; ImproperlyConfigured for what cannot be used."""
    given: object = getattr(settings, "OUTLAST", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("OUTLAST in the settings is a dict, for example {'database': 'default', 'base_url': '/jobs'}.")
    said = dict(cast("Mapping[str, Any]", given))
    known = [field.name for field in fields(Configuration)]
    for name in said:
        if name not in known:
            raise ImproperlyConfigured(f"OUTLAST in the settings has no {name!r}; it has {', '.join(known)}.")
    for name in _FUNCTIONS:
        if name in said:
            said[name] = _function(name, said[name])
    if not isinstance(said.get("database", "default"), str):
        raise ImproperlyConfigured("OUTLAST['database'] is an alias of DATABASES, for example 'default'.")
    if not isinstance(said.get("migrate", True), bool):
        raise ImproperlyConfigured("OUTLAST['migrate'] is True or False.")
    try:
        check_base_url(said.get("base_url", "/jobs"))
    except Invalid as error:
        raise ImproperlyConfigured(f"OUTLAST['base_url']: {error.message}") from error
    return Configuration(**said)


def _function(name: str, value: object) -> Callable[..., Any]:
    if isinstance(value, str):
        try:
            value = import_string(value)
        except ImportError as error:
            raise ImproperlyConfigured(f"OUTLAST[{name!r}] names {value!r}, which cannot be imported.") from error
    if not callable(value):
        raise ImproperlyConfigured(f"OUTLAST[{name!r}] is a function, or the dotted path of one.")
    return value
