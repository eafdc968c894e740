"""The routes as a table: what is offered, to whom, and what comes of it. Dispatch, document and authorization matrix are made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from starlette.responses import Response
from starlette.types import ASGIApp

from outlast.http.call import Call

Endpoint = Callable[[Call], Awaitable[Response | ASGIApp]]


class Access(Enum):
    """Who gets what is asked for; everybody else gets 401 without a principal, and 404 or 403 with one."""

    PUBLIC = "anybody"
    SIGNED_IN = "any principal, for what is their own"
    READ = "the owner, and operators of the tenant"
    OWNER = "the owner; operators of the tenant may see the job, and get 403"
    CONTROL = "the owner, and operators of the tenant, with a mutation"
    DECIDE = "the owner; an operator of the tenant may only retry, and no call of unknown outcome"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter or header of a route."""

    name: str
    place: str
    schema: Mapping[str, Any]
    description: str
    required: bool = False


EVENT_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Answer:
    """One good answer: its media type, the wire type of its body (None: none, or one that the type says all of), what it means.

    or_body: the type of the other body that it may have.
    """

    description: str
    body: type | None = None
    media_type: str = "application/json"
    headers: tuple[str, ...] = ()
    empty: bool = False
    or_body: type | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path. `page`: for people, answered in HTML, errors too."""

    name: str
    method: str
    path: str
    endpoint: Endpoint
    access: Access
    summary: str
    answers: Mapping[int, Answer] = field(default_factory=dict[int, Answer])
    problems: tuple[str, ...] = ()
    body: type | None = None
    parameters: tuple[Parameter, ...] = ()
    page: bool = False

    @property
    def mutates(self) -> bool:
        """Whether it changes something."""
        return self.method not in ("GET", "HEAD")
