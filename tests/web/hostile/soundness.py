"""What every answer must be, whatever was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from outlast.domain.errors import Invalid
from outlast.domain.payload import parse
from outlast.http.openapi import document
from outlast.http.problems import CATALOGUE
from outlast.http.routes import ROUTES
from web.hostile.request import MARKER, VERSION
from web.site import Answer

_DOCUMENT: Final[dict[str, Any]] = document(ROUTES)
_MEMBERS: Final = frozenset({"type", "title", "status", "detail", "instance", "code", "retryable", "correlation_id", "pointers", "job"})
_NEEDED: Final = ((401, "www-authenticate"), (405, "allow"), (429, "retry-after"), (503, "retry-after"))
_PATHS: Final = {
    path: re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))) for path in [*_DOCUMENT["paths"], *(route.path for route in ROUTES)]
}


def unsound(method: str, target: str, answer: Answer) -> Iterator[str]:
    """What is wrong with an answer."""
    if answer.status >= 500 and answer.status != 503:
        yield f"it is a fault: {answer.status}"
    if MARKER in answer.body.decode() or str(VERSION) in answer.body.decode():
        yield "it repeats what was sent"
    yield from _unsound_headers(answer)
    media_type = answer.headers.get("content-type", "")
    if "json" in media_type and method != "HEAD":
        try:
            parse(answer.body, limit=2**24)
        except Invalid as error:
            yield f"a strict parser refuses it: {error.message}"
            return
    if media_type.startswith("text/html"):
        yield from _unsound_page(answer)
    elif answer.status >= 400:
        yield from _unsound_problem(answer)
    yield from _undocumented(method, target, answer)


def _unsound_headers(answer: Answer) -> Iterator[str]:
    if answer.headers.get("x-content-type-options") != "nosniff" or not answer.headers.get("x-request-id"):
        yield "a header that every answer has is missing"
    for name, value in answer.headers.items():
        if MARKER in value:
            yield f"{name} repeats what was sent"
        if not value.isascii() or not value.isprintable():
            yield f"{name} has more than visible ASCII"
    for status, name in _NEEDED:
        if answer.status == status and name not in answer.headers:
            yield f"a {status} without {name}"


def _unsound_page(answer: Answer) -> Iterator[str]:
    if b"<script>alert" in answer.body or b"<img src=x" in answer.body:
        yield "what was sent is markup in it"
    policy = answer.headers.get("content-security-policy", "")
    if "default-src 'none'" not in policy or "frame-ancestors 'none'" not in policy or "unsafe" in policy:
        yield f"a policy that lets too much through: {policy}"
    if answer.headers.get("cache-control") != "no-store":
        yield "a page that is kept"


def _unsound_problem(answer: Answer) -> Iterator[str]:
    if answer.headers.get("content-type") != "application/problem+json":
        yield f"an error as {answer.headers.get('content-type')}"
        return
    said = answer.json
    entry = CATALOGUE.get(said["code"])
    if entry is None or entry.status != answer.status or said["status"] != answer.status or said["title"] != entry.title:
        yield f"the code {said['code']} is not one of status {answer.status}"
    if not said.keys() <= _MEMBERS or not said.keys() >= _MEMBERS - {"pointers", "job"}:
        yield f"members {sorted(said)}"
    if said["correlation_id"] != answer.headers["x-request-id"] or not said["detail"].endswith("."):
        yield "no correlation id, or no sentence"
    if said["type"] != f"/problems#{said['code']}" or ("pointers" in said and answer.status != 422):
        yield f"of type {said['type']}, with pointers {said.get('pointers')}"


def _undocumented(method: str, target: str, answer: Answer) -> Iterator[str]:
    """Whether an operation of the document answers with a status that it does not name."""
    path = target.partition("?")[0]
    for template, pattern in _PATHS.items():
        if pattern.fullmatch(path) is None:
            continue
        operation = _DOCUMENT["paths"].get(template, {}).get("get" if method == "HEAD" else method.lower() if method.isupper() else "")
        if operation is not None and str(answer.status) not in operation["responses"]:
            yield f"{operation['operationId']} does not say that it answers {answer.status}"
