"""The document that describes the API (OpenAPI 3.1), built from the table of routes and the wire types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from outlast.http.call import Call
from outlast.http.problems import CATALOGUE, ProblemDocument
from outlast.http.table import EVENT_STREAM, Access, Answer, Route

__all__ = ["Call", "Response", "document", "served"]

_REF: Final = "#/components/schemas/{name}"
_EVERYWHERE: Final = ("bad_request", "target_too_long", "headers_too_large", "internal")
_SIGNED_IN: Final = ("unauthenticated", "unidentified", "store_unavailable", "not_migrated", "contended")
_HEADERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ETag": {"description": "The tag of what is shown.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds after which to ask again.", "schema": {"type": "integer", "minimum": 0}},
    "WWW-Authenticate": {"description": "How to sign in.", "schema": {"type": "string"}},
    "Location": {"description": "Where the job is shown.", "schema": {"type": "string"}},
    "Idempotency-Replayed": {"description": "This key had come before.", "schema": {"const": "true"}},
}
_ALWAYS: Final[Mapping[int, str]] = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}
"""The header that every problem of this status has."""
_PATH: Final[Mapping[str, Mapping[str, Any]]] = {
    "id": {"type": "string", "format": "uuid"},
    "no": {"type": "integer", "minimum": 0, "maximum": 999_999},
}


def served(call: Call, routes: Iterable[Route]) -> Response:
    """The document as an answer."""
    return Response(
        msgspec.json.encode(document(routes, base=call.base)), headers={"Cache-Control": "no-cache"}, media_type="application/json"
    )


def document(routes: Iterable[Route], *, base: str = "") -> dict[str, Any]:
    """The document; `base` is where the API is mounted."""
    listed = [route for route in routes if not route.page]
    types: dict[type, None] = {ProblemDocument: None}
    for route in listed:
        for found in (route.body, *(body for answer in route.answers.values() for body in (answer.body, answer.or_body))):
            if found is not None:
                types[found] = None
    schemas, components = msgspec.json.schema_components(tuple(types), ref_template=_REF)
    refs = dict(zip(types, schemas, strict=True))
    for body in {route.body for route in listed if route.body is not None}:
        components[body.__name__]["additionalProperties"] = False  # bodies refuse what they do not know
    components["ProblemDocument"]["properties"]["code"] = {"enum": sorted(CATALOGUE)}
    components["ProblemDocument"]["properties"]["job"] = refs.get(_job_type(types), {})
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Outlast", "version": "1", "description": "Jobs that outlast the tab, the worker and the deploy."},
        "servers": [{"url": base or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "host": {"type": "http", "scheme": "bearer", "description": "Whatever the host application authenticates by."}
            },
        },
    }


def _job_type(types: Iterable[type]) -> type:
    return next((one for one in types if one.__name__ == "Job"), object)


def _operation(route: Route, refs: Mapping[type, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": f"For {route.access.value}.",
        "responses": {str(status): _answer(answer, refs) for status, answer in sorted(route.answers.items())},
    }
    if route.access is not Access.PUBLIC:
        operation["security"] = [{"host": []}]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _PATH[name]} for name in _placeholders(route.path)]
    parameters += [
        {"name": one.name, "in": one.place, "required": one.required, "schema": one.schema, "description": one.description}
        for one in route.parameters
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": refs[route.body]}}}
    for status, codes in _problems(route).items():
        operation["responses"].setdefault(str(status), _problem(status, codes, refs[ProblemDocument]))
    return operation


def _placeholders(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _answer(answer: Answer, refs: Mapping[type, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"description": answer.description}
    if answer.headers:
        said["headers"] = {name: _HEADERS[name] for name in answer.headers}
    if not answer.empty:
        schema: Mapping[str, Any] = {} if answer.body is None else refs[answer.body]
        if answer.or_body is not None:
            schema = {"oneOf": [schema, refs[answer.or_body]]}
        said["content"] = {answer.media_type: {"schema": _event(schema) if answer.media_type == EVENT_STREAM else schema}}
    return said


def _event(job: Mapping[str, Any]) -> dict[str, Any]:
    """Of each event in a stream; its data is the job as JSON on one line."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": job}
    properties = {"event": {"const": "job"}, "id": {"type": "string", "pattern": "^[0-9]+[.][a-z_]+$"}, "data": data}
    return {"type": "object", "description": "One event of the stream.", "required": ["event", "id", "data"], "properties": properties}


def _problems(route: Route) -> dict[int, list[str]]:
    codes = {
        *route.problems,
        *_EVERYWHERE,
        *(() if route.access is Access.PUBLIC else _SIGNED_IN),
        *(("cross_site",) if route.mutates else ()),
    }
    found: dict[int, list[str]] = {}
    for code in sorted(codes):
        found.setdefault(CATALOGUE[code].status, []).append(code)
    return found


def _problem(status: int, codes: list[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    described = "; ".join(f"`{code}`: {CATALOGUE[code].title.lower()}" for code in codes)
    said: dict[str, Any] = {"description": described, "content": {"application/problem+json": {"schema": schema}}}
    header = _ALWAYS.get(status)
    if header is not None:
        said["headers"] = {header: {**_HEADERS[header], "required": True}}
    return said
