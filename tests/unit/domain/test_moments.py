"""Dates and times in what an answer must look like: the schema names them, and what is none is refused as reading it would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import pydantic
import pytest
from msgspec import Meta, Struct

from outlast.domain import json_schema
from outlast.domain.errors import Invalid
from outlast.domain.values import decode, schema_of

Aware = Annotated[datetime, Meta(tz=True)]
Naive = Annotated[datetime, Meta(tz=False)]


class Row(Struct, array_like=True):
    at: datetime
    until: Aware | None = None


class Pair(NamedTuple):
    at: datetime
    no: int = 0


class Loose(TypedDict):
    at: time


class Node(Struct):
    at: Naive
    parts: list[Node] = []


@dataclass
class All:
    one: datetime | None
    many: list[time]
    named: dict[str, datetime]
    row: Row
    pair: Pair
    both: tuple[int, Aware]
    loose: Loose
    some: Node | list[datetime] | None = None


def says(hint: Any, value: object) -> str:
    text = schema_of(hint)
    assert text is not None
    try:
        json_schema.check(value, json.loads(text), what="answer")  # type: ignore[arg-type]
    except Invalid as error:
        return error.message
    return ""


def reads(hint: Any, value: object) -> bool:
    try:
        decode(json.dumps(value), hint, forbid_unknown=True)
    except Invalid:
        return False
    return True


TEXTS = ("tomorrow", "", "2030-01-31", "2030-01-31T08:00:00", "2030-01-31T08:00:00Z", "2030-13-01T08:00:00Z", "08:00:00", "08:00:00+01:00")
OTHERS = ("PT1H30M", "1:30", "12.50", "twelve", "01234567-89ab-7cde-8f01-23456789abcd")


@pytest.mark.parametrize(
    "hint", [datetime, Aware, Naive, date, time, timedelta, UUID, Decimal, datetime | None, Annotated[time, Meta(tz=True)]]
)
@pytest.mark.parametrize("text", TEXTS + OTHERS)
def test_a_text_is_judged_as_reading_it_would(hint: Any, text: str) -> None:
    assert (says(hint, text) == "") is reads(hint, text)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("/one", {"one": "x"}),
        ("/many/1", {"many": ["08:00:00", "x"]}),
        ("/named/a", {"named": {"a": "x"}}),
        ("/row/0", {"row": ["x"]}),
        ("/row/1", {"row": ["2030-01-31T08:00:00", "2030-01-31T08:00:00"]}),
        ("/pair/0", {"pair": ["x", 1]}),
        ("/both/1", {"both": [1, "2030-01-31T08:00:00"]}),
        ("/loose/at", {"loose": {"at": "x"}}),
        ("/some/at", {"some": {"at": "2030-01-31T08:00:00Z"}}),
        ("/some/parts/0/at", {"some": {"at": "2030-01-31T08:00:00", "parts": [{"at": "x"}]}}),
        ("/some/0", {"some": ["x"]}),
    ],
)
def test_wherever_it_stands(place: str, value: dict[str, object]) -> None:
    right = {
        "one": None,
        "many": [],
        "named": {},
        "row": ["2030-01-31T08:00:00"],
        "pair": ["2030-01-31T08:00:00Z", 1],
        "both": [1, "2030-01-31T08:00:00Z"],
        "loose": {"at": "08:00:00"},
    }
    assert says(All, right) == ""
    assert reads(All, right)
    assert f" {place}: " in says(All, right | value)
    assert not reads(All, right | value)


def test_models_of_pydantic_name_theirs() -> None:
    class Model(pydantic.BaseModel):
        at: datetime

    assert says(Model, {"at": "2030-01-31T08:00:00"}) == ""
    assert "/at: is not a date and time, as 2030-01-31T08:00:00Z" in says(Model, {"at": "tomorrow"})
