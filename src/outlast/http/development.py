"""Identities for development: whoever can reach the server is whoever they say. Only for a server bound to loopback."""

from __future__ import annotations

from typing import Final

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
    return principal_of(request.cookies.get(COOKIE, ""))


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
