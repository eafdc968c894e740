"""The document that describes the API: a valid one, of all that there is, and of nothing else."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from outlast.http.openapi import document
from outlast.http.problems import CATALOGUE
from outlast.http.routes import ROUTES
from outlast.http.table import Access
from web.site import Site

DOCUMENT: Final[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(document(ROUTES)))
OPERATIONS: Final = {o["operationId"]: o for path in DOCUMENT["paths"].values() for o in path.values()}
API: Final = [route for route in ROUTES if not route.page]
ELSEWHERE: Final = frozenset({"stale_form", "method_not_allowed"})
"""Codes of what is no operation: a form of the page, and a method that a path does not have."""


def test_it_is_valid() -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []
    assert DOCUMENT["openapi"] == "3.1.0"


async def test_it_is_what_is_served(small: Site) -> None:
    answer = await small.call("GET", "/openapi.json", None)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == DOCUMENT
    mounted = await small.call("GET", "/openapi.json", None, root="/a/b")
    assert mounted.json["servers"] == [{"url": "/a/b"}]


def test_it_has_every_route_but_the_pages() -> None:
    assert set(OPERATIONS) == {route.name for route in API}
    for route in API:
        assert DOCUMENT["paths"][route.path][route.method.lower()] is OPERATIONS[route.name]
        assert ("security" in OPERATIONS[route.name]) == (route.access is not Access.PUBLIC)
        named = {p["name"] for p in OPERATIONS[route.name].get("parameters", ()) if p["in"] == "path"}
        assert named == {*re.findall(r"\{(\w+)\}", route.path)}


def test_every_reference_leads_somewhere() -> None:
    text = msgspec.json.encode(DOCUMENT).decode()
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert named == set(DOCUMENT["components"]["schemas"])


def test_every_code_is_documented_where_it_can_be_met() -> None:
    answers = [answer for o in OPERATIONS.values() for status, answer in o["responses"].items() if int(status) >= 400]
    said = {code for answer in answers for code in re.findall(r"`(\w+)`", answer["description"])}
    assert said == set(CATALOGUE) - ELSEWHERE


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_code_stands_under_its_status(code: str) -> None:
    for operation in OPERATIONS.values():
        for status, answer in operation["responses"].items():
            if f"`{code}`" in answer["description"]:
                assert int(status) == CATALOGUE[code].status


def test_problems_have_the_codes_of_the_catalogue_and_nothing_else() -> None:
    problem = DOCUMENT["components"]["schemas"]["ProblemDocument"]
    assert problem["properties"]["code"]["enum"] == sorted(CATALOGUE)
    for operation in OPERATIONS.values():
        for status, answer in operation["responses"].items():
            if int(status) >= 400 and operation["operationId"] != "readyz":
                assert list(answer["content"]) == ["application/problem+json"]
