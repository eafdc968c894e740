"""Identities for development: whoever can reach the server is whoever they say. Only for a server bound to loopback."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from starlette.requests import Request

from outlast.domain.access import OPERATOR
from outlast.domain.errors import Invalid
from outlast.domain.model import Principal

COOKIE: Final = "outlast_dev"
CHALLENGE: Final = 'Bearer realm="outlast development"'
_SCHEME: Final = "bearer"
_PREFIX: Final = "dev:"


def identify(request: Request) -> Principal | None:
    """The principal of `Authorization: Bearer dev:TENANT:SUBJECT`, else of the cookie that the sign-in form sets."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        scheme, _, token = authorization.partition(" ")
        return principal_of(token.strip()) if scheme.lower() == _SCHEME else None
    return principal_of(unquote(request.cookies.get(COOKIE, "")))


def token_of(tenant: str, subject: str, *, operator: bool) -> str:
    """The text of which `principal_of` makes that principal; a tenant has no colon."""
    return f"{_PREFIX}{tenant}:{subject}{f':{OPERATOR}' if operator else ''}"


def principal_of(token: str) -> Principal | None:
    """The principal of dev:TENANT:SUBJECT or dev:TENANT:SUBJECT:operator; a subject may have colons of its own."""
    if not token.startswith(_PREFIX):
        return None
    tenant, _, subject = token.removeprefix(_PREFIX).partition(":")
    operator = subject.endswith(f":{OPERATOR}")
    try:
        return Principal(tenant, subject.removesuffix(f":{OPERATOR}"), roles=[OPERATOR] if operator else ())
    except Invalid:
        return None
