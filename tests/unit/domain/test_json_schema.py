"""What an answer must look like: the same verdict as reading it by its type gives, with the place of what is wrong."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict, Union
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta, Struct

from outlast.domain import json_schema
from outlast.domain.errors import Invalid
from outlast.domain.values import MISSING, decode, encode, schema_of

NAMES = ("a", "b", "c")


class Kind(enum.Enum):
    ONE = "one"
    TWO = "two"


class Cat(Struct, tag="cat"):
    lives: Annotated[int, Meta(ge=1, le=9)]


class Dog(Struct, tag="dog"):
    """A dog."""

    name: Annotated[str, Meta(min_length=1, max_length=5)]
    friends: list[str] = []


class Pair(NamedTuple):
    one: int
    other: str = "x"


class Row(Struct, array_like=True):
    one: int
    other: str = "x"


class Choice(TypedDict, total=False):
    colour: Required[str]
    shade: int


class Tree(Struct):
    value: int
    parts: list[Tree] = []


@dataclass
class Limit:
    rows: Annotated[int, Meta(ge=0, lt=100, multiple_of=5)]
    why: str | None = None
    kind: Kind = Kind.ONE


class Model(pydantic.BaseModel):
    rows: int = pydantic.Field(ge=0, lt=100)
    why: str | None = pydantic.Field(default=None, max_length=5)
    pet: Literal["cat", "dog"] = "cat"


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    rows: int


def refused(value: Any, hint: object) -> Invalid | None:
    """What the published schema says to an answer; None: it fits."""
    text = schema_of(hint)
    assert text is not None
    try:
        json_schema.check(value, json.loads(text), what="answer")
    except Invalid as error:
        return error
    return None


def unreadable(value: Any, hint: object) -> bool:
    """Whether the handler cannot read it."""
    try:
        decode(json.dumps(value), hint, forbid_unknown=True)
    except Invalid:
        return True
    return False


# -- any type, any value ----------------------------------------------------------------------------------------

SCALARS = st.sampled_from([int, float, str, bool, None, Kind, Literal["one", 2] | None, Literal[3]])
BOUNDED = st.sampled_from(
    [
        Annotated[int, Meta(ge=-3, le=5)],
        Annotated[int, Meta(gt=-3, lt=5)],
        Annotated[int, Meta(multiple_of=3)],
        Annotated[float, Meta(ge=-1.5, lt=2.5)],
        Annotated[str, Meta(min_length=1, max_length=2)],
        Annotated[str, Meta(pattern="^a+$")],
        Annotated[list[int], Meta(min_length=1, max_length=2)],
        Annotated[dict[str, int], Meta(max_length=1)],
    ]
)
RECORDS = st.sampled_from([Limit, Choice, Tree, Pair, Row, Dog | Cat])


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda kind: list[kind]),
        inner.map(lambda kind: dict[str, kind]),
        inner.map(lambda kind: Union[kind, None]),  # noqa: UP007 - the kind may be None
        st.lists(inner, min_size=1, max_size=3).map(lambda kinds: tuple[*kinds]),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: make_dataclass("Made", list(zip(NAMES, kinds, strict=False))),
        ),
        inner.map(lambda kind: msgspec.defstruct("Struct", [("a", kind), ("b", int, 1)])),
        st.just(int | str | list[int]),
    )


TYPES = st.recursive(SCALARS | BOUNDED | RECORDS, _containers, max_leaves=4)
INTS = st.integers(-12, 12)
LEAVES = (
    st.none() | st.booleans() | INTS | st.sampled_from([0.5, -1.5, 2.0, 2.5]) | st.sampled_from(["", "a", "aa", "one", "ab", "cat", "é"])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "rows", "type", "value"]), inner, max_size=3),
    max_leaves=6,
)


def near(schema: Any, definitions: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that mostly fit: as the schema says, but now and then anything."""
    if not isinstance(schema, dict) or depth > 5:
        return ANYTHING
    if "$ref" in schema:
        return near(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions, depth + 1)
    if "anyOf" in schema:
        fitting = st.one_of([near(one, definitions, depth + 1) for one in schema["anyOf"]])
    elif "enum" in schema:
        fitting = st.sampled_from(schema["enum"])
    else:
        fitting = _typed(schema, definitions, depth)
    return st.integers(0, 7).flatmap(lambda chance: fitting if chance else ANYTHING)


def _typed(schema: Any, definitions: Any, depth: int) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "object" if "properties" in schema:
            members = {name: near(one, definitions, depth + 1) for name, one in schema["properties"].items()}
            needed = {name: members[name] for name in schema.get("required", ())}
            return st.fixed_dictionaries(needed, optional={n: one for n, one in members.items() if n not in needed})
        case "object":
            return st.dictionaries(st.sampled_from(NAMES), near(schema.get("additionalProperties"), definitions, depth + 1), max_size=2)
        case "array" if "prefixItems" in schema:
            items = st.tuples(*(near(one, definitions, depth + 1) for one in schema["prefixItems"])).map(list)
            return items | items.map(lambda found: found[:-1]) | items.map(lambda found: [*found, 1])
        case "array":
            return st.lists(near(schema.get("items"), definitions, depth + 1), max_size=3)
        case "integer":
            return INTS
        case "number":
            return INTS | st.sampled_from([0.5, -1.5, 2.5])
        case "string":
            return st.sampled_from(["", "a", "aa", "ab", "one", "éé"])
        case "boolean":
            return st.booleans()
        case _:
            return LEAVES


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_any_answer_fits_the_schema_if_and_only_if_its_type_reads_it(data: st.DataObject) -> None:
    hint = data.draw(TYPES)
    text = schema_of(hint)
    assert text is not None
    schema = json.loads(text)
    value = data.draw(near(schema, schema.get("$defs", {})))
    said = refused(value, hint)
    assert (said is not None) == unreadable(value, hint), said and said.message


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_refusal_names_a_place_of_the_value_and_repeats_nothing_of_it(data: st.DataObject) -> None:
    hint = data.draw(st.sampled_from([list[Limit], dict[str, Dog | Cat], Tree, Model]))
    schema = json.loads(schema_of(hint) or "")
    value = data.draw(near(schema, schema.get("$defs", {})))
    said = refused(value, hint)
    if said is None:
        return
    assert said.pointers
    for pointer in said.pointers:
        at = value
        *inside, last = pointer.split("/")[1:] or [""]
        for part in inside:
            at = at[int(part)] if isinstance(at, list) else at[part]
        assert pointer == "" or last in at or isinstance(at, list) or "missing" in said.message
    strings = [text for text in ("éé", "aa", "ab") if text in json.dumps(value, ensure_ascii=False)]
    assert not any(text in said.message.partition(":")[2] for text in strings)


# -- one by one -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "hint", "pointers"),
    [
        ({"rows": 5}, Limit, None),
        ({"rows": 7}, Limit, ("/rows",)),
        ({"rows": 5.0}, Limit, ("/rows",)),
        ({"rows": True}, Limit, ("/rows",)),
        ({"rows": "5"}, Limit, ("/rows",)),
        ({}, Limit, ("/rows",)),
        ({"rows": 5, "kind": "three"}, Limit, ("/kind",)),
        ({"rows": 5, "more": 1}, Limit, ("/more",)),
        ({"rows": 5, "why": 1, "kind": 2}, Limit, ("/why", "/kind")),
        (None, Limit, ("",)),
        ([{"type": "cat", "lives": 9}, {"type": "dog", "name": ""}], list[Dog | Cat], ("/1/name",)),
        ([{"type": "cow"}], list[Dog | Cat], ("/0",)),
        ({"a/b": {"~": "x"}}, dict[str, dict[str, int]], ("/a~1b/~0",)),
        ([1, "x", 2], Pair, ("",)),
        ({"value": 1, "parts": [{"value": 2, "parts": [{"value": "3"}]}]}, Tree, ("/parts/0/parts/0/value",)),
        ({"rows": 5, "why": "longer than five"}, Model, ("/why",)),
        ({"rows": 5, "pet": "cow"}, Model, ("/pet",)),
        ({"rows": 5, "more": 1}, Model, ("/more",)),
        ({"rows": 5, "more": 1}, Open, None),
    ],
)
def test_what_does_not_fit_is_named_by_its_place(value: Any, hint: object, pointers: tuple[str, ...] | None) -> None:
    said = refused(value, hint)
    assert (said and said.pointers) == pointers


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (datetime(2030, 1, 1, tzinfo=UTC), datetime),
        (UUID(int=7), UUID),
        (Decimal("1.50"), Decimal),
        ({1, 2}, set[int]),
        (b"bytes", bytes),
        ([Limit(5, "x", Kind.TWO)], list[Limit]),
        ({Kind.ONE: 1}, dict[Kind, int]),
        (Dog("rex", ["tom"]), Dog | Cat),
        (Pair(1), Pair),
        (Model(rows=3), Model),
        ({"colour": "red"}, Choice),
    ],
)
def test_what_the_type_writes_fits(value: object, hint: object) -> None:
    written = json.loads(encode(value, limit=10_000, what="answer", hint=hint))
    assert refused(written, hint) is None


def test_decimals_are_read_from_numbers_too() -> None:
    assert refused(1.5, Decimal) is None
    assert not unreadable(1.5, Decimal)


@pytest.mark.parametrize("hint", [Any, object, MISSING])
def test_what_may_be_anything_has_no_schema(hint: object) -> None:
    assert schema_of(hint) is None


def test_a_schema_that_is_too_long_is_not_kept() -> None:
    assert schema_of(Literal[*(f"{n:0>100}" for n in range(400))]) is None


def test_the_top_of_a_schema_says_what_it_is() -> None:
    schema = json.loads(schema_of(Limit) or "")
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["rows"], False)
    assert list(schema["$defs"]) == ["Kind"]
    assert "$ref" in json.loads(schema_of(Tree) or ""), "it refers to itself"


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "unheard-of"},
        {"pattern": "(?<broken"},
        {"pattern": "\\p{L}+"},
        {"$ref": "https://example.org/schema"},
        {"if": {"const": 1}, "then": False},
        {"type": "string", "format": "email"},
        {"type": ["string", "null"], "contentMediaType": "text/plain"},
        {"anyOf": []},
    ],
)
def test_what_is_not_known_is_let_pass(schema: Any) -> None:
    json_schema.check("text", schema, what="answer")


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        ({"const": 1}, 1, True),
        ({"const": {"a": [1]}}, {"a": [1]}, {"a": [1.0]}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, None, 1),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, "ab", "a"),
        ({"items": False}, [], [1]),
        (False, None, None),
        ({"type": ["string", "null"]}, None, 1),
        ({"minProperties": 1}, {"a": 1}, {}),
    ],
)
def test_what_is_known(schema: Any, fits: Any, does_not: Any) -> None:
    if schema is not False:
        json_schema.check(fits, schema, what="answer")
    with pytest.raises(Invalid):
        json_schema.check(does_not, schema, what="answer")
