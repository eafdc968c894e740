"""What an answer must look like: the JSON Schema of a type, and whether a value fits one.

Of JSON Schema it knows what msgspec and pydantic write for the types that can be stored. What it does not know it lets pass:
the handler reads the answer by its type, and asks again for one that it cannot read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, cast

from outlast.domain.moments import misfit
from outlast.domain.payload import JSON
from outlast.domain.refusal import Misfit, Problem

Schema: TypeAlias = "Mapping[str, JSON] | bool"
Path: TypeAlias = tuple[object, ...]
Definitions: TypeAlias = Mapping[str, JSON]

MAX_SCHEMA: Final = 32_768
"""Bytes; a longer one is not kept, for it goes out with every look at the job."""
_REF: Final = "#/$defs/"
_SPREAD: Final = ("anyOf", "oneOf")


def stored(schema: Mapping[str, object], *, closed: bool) -> str | None:
    """The text of a type's schema as it is kept with a question; None for one that says nothing, or too much.

    closed: objects whose members are named have no others, as the handler reads them.
    """
    whole = _inlined(json.loads(json.dumps(schema)))
    if closed:
        _close(whole)
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    return text if set(whole) - {"title", "description"} and len(text.encode()) <= MAX_SCHEMA else None


def check(value: JSON, schema: Schema, *, what: str) -> None:
    """Invalid, with JSON pointers and no values, for a value that does not fit."""
    definitions: Definitions = {} if isinstance(schema, bool) else cast("Definitions", schema.get("$defs", {}))
    problems = list(_problems(value, schema, (), definitions))
    if problems:
        raise Misfit(problems).invalid(what, "what is asked for")


def takes_text(schema: Schema, *, alone: bool = False) -> bool:
    """Whether some text fits; alone: and nothing but text."""
    return _takes(schema, {} if isinstance(schema, bool) else cast("Definitions", schema.get("$defs", {})), (), alone=alone)


def _takes(schema: object, definitions: Definitions, seen: tuple[str, ...], *, alone: bool) -> bool:
    if not isinstance(schema, dict):
        return schema is not False and not alone
    known = cast("dict[str, JSON]", schema)
    if kinds := _kinds(known):
        return kinds == ["string"] if alone else "string" in kinds
    if values := [*_list(known.get("enum")), *([known["const"]] if "const" in known else [])]:
        return (all if alone else any)(isinstance(value, str) for value in values)
    ref = known.get("$ref")
    if isinstance(ref, str) and ref.startswith(_REF):
        return ref not in seen and _takes(definitions.get(ref.removeprefix(_REF)), definitions, (*seen, ref), alone=alone)
    for keyword in _SPREAD:
        if options := _list(known.get(keyword)):
            return (all if alone else any)(_takes(one, definitions, seen, alone=alone) for one in options)
    return not alone


# ---- the schema ----


def _inlined(schema: dict[str, JSON]) -> dict[str, JSON]:
    """Without the reference to a definition at its top, where nothing else refers to that."""
    ref, definitions = schema.get("$ref"), schema.get("$defs")
    if not isinstance(ref, str) or not isinstance(definitions, dict):
        return schema
    name = ref.removeprefix(_REF)
    found = definitions.get(name)
    if not isinstance(found, dict):
        return schema
    others = {key: one for key, one in definitions.items() if key != name}
    if json.dumps(ref) in json.dumps([found, others]):
        return schema
    return {**found, **({"$defs": cast("JSON", others)} if others else {})}


def _close(schema: JSON) -> None:
    if isinstance(schema, list):
        for one in schema:
            _close(one)
        return
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
    for keyword, inner in schema.items():
        if keyword in ("properties", "$defs"):
            for one in cast("dict[str, JSON]", inner).values():
                _close(one)
        elif keyword in ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf"):
            _close(inner)


# ---- whether a value fits ----


def _problems(value: JSON, schema: object, path: Path, definitions: Definitions) -> Iterator[Problem]:
    if schema is False:
        yield Problem(path, "has no place here")
    if not isinstance(schema, dict):
        return
    known = cast("dict[str, JSON]", schema)
    if not _of_type(value, known):
        yield Problem(path, f"is {_name(value)}, not {' or '.join(_types(known))}")
        return
    yield from _composed(value, known, path, definitions)
    if not _allowed(value, known):
        yield Problem(path, "is none of the allowed values")
    yield from (Problem(path, said) for said in _bounds(value, known))
    if isinstance(value, dict):
        yield from _members(value, known, path, definitions)
    elif isinstance(value, list):
        yield from _items(value, known, path, definitions)


def _allowed(value: JSON, schema: Mapping[str, JSON]) -> bool:
    if "enum" in schema and not any(_same(value, one) for one in _list(schema["enum"])):
        return False
    return "const" not in schema or _same(value, schema["const"])


def _composed(value: JSON, schema: Mapping[str, JSON], path: Path, definitions: Definitions) -> Iterator[Problem]:
    """What the schemas say that this one refers to or is made of."""
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.startswith(_REF):
        yield from _problems(value, definitions.get(ref.removeprefix(_REF)), path, definitions)
    for one in _list(schema.get("allOf")):
        yield from _problems(value, one, path, definitions)
    for keyword in _SPREAD:
        if keyword in schema:
            yield from _of_some(value, _list(schema[keyword]), path, definitions)


def _of_some(value: JSON, schemas: list[JSON], path: Path, definitions: Definitions) -> Iterator[Problem]:
    """Nothing, if one of them fits; else what is wrong by the only one that is of this kind, or that none fits."""
    found = [list(_problems(value, one, path, definitions)) for one in schemas]
    if not found or not all(found):
        return
    inside = [problems for problems in found if all(len(p.path) > len(path) for p in problems)]
    tagged = [problems for problems in inside if not any(p.reason == "is none of the allowed values" for p in problems)]
    for candidates in (tagged, inside):
        if len(candidates) == 1:
            yield from candidates[0]
            return
    yield Problem(path, "fits none of what is allowed here")


def _members(value: dict[str, JSON], schema: Mapping[str, JSON], path: Path, definitions: Definitions) -> Iterator[Problem]:
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    for name in _list(schema.get("required")):
        if name not in value:
            yield Problem((*path, name), "missing")
    for name, member in value.items():
        if name in named:
            yield from _problems(member, named[name], (*path, name), definitions)
        elif schema.get("additionalProperties") is False and "patternProperties" not in schema:
            yield Problem((*path, name), "not a known member")
        elif "patternProperties" not in schema:
            yield from _problems(member, schema.get("additionalProperties"), (*path, name), definitions)


def _items(value: list[JSON], schema: Mapping[str, JSON], path: Path, definitions: Definitions) -> Iterator[Problem]:
    first = _list(schema.get("prefixItems"))
    for no, item in enumerate(value):
        yield from _problems(item, first[no] if no < len(first) else schema.get("items"), (*path, no), definitions)


def _bounds(value: JSON, schema: Mapping[str, JSON]) -> Iterator[str]:
    """What a number, a text or a number of members or items is beyond."""
    if isinstance(value, str):
        yield from _sized(len(value), schema, "Length", "characters")
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not _matches(pattern, value):
            yield "does not have the form that is asked for"
        if (said := misfit(value, schema)) is not None:
            yield said
    elif isinstance(value, list):
        yield from _sized(len(value), schema, "Items", "items")
    elif isinstance(value, dict):
        yield from _sized(len(value), schema, "Properties", "members")
    elif _is_number(value):
        for keyword, (within, said) in _LIMITS.items():
            limit = schema.get(keyword)
            if _is_number(limit) and not within(cast("float", value), cast("float", limit)):
                yield f"is not {said} {limit}"
        step = schema.get("multipleOf")
        if type(value) is int and type(step) is int and step > 0 and value % step:
            yield f"is no multiple of {step}"


_LIMITS: Final[Mapping[str, tuple[Callable[[float, float], bool], str]]] = {
    "minimum": (lambda value, limit: value >= limit, "at least"),
    "maximum": (lambda value, limit: value <= limit, "at most"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "more than"),
    "exclusiveMaximum": (lambda value, limit: value < limit, "less than"),
}


def _sized(size: int, schema: Mapping[str, JSON], of: str, words: str) -> Iterator[str]:
    least, most = schema.get(f"min{of}"), schema.get(f"max{of}")
    if isinstance(least, int) and size < least:
        yield f"has fewer than {least} {words}"
    if isinstance(most, int) and size > most:
        yield f"has more than {most} {words}"


def _matches(pattern: str, value: str) -> bool:
    """Whether the pattern stands in the text; a pattern of another dialect is let pass."""
    try:
        return re.search(pattern, value) is not None
    except (re.error, OverflowError, RecursionError):
        return True


_IS: Final[Mapping[str, Callable[[JSON], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: type(value) is int,  # 1 and 1.0 stay different values
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_CALLED: Final = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "an object",
}


def _of_type(value: JSON, schema: Mapping[str, JSON]) -> bool:
    wanted = _kinds(schema)
    if not wanted or any(kind not in _IS for kind in wanted):
        return True
    if schema.get("format") == "decimal" and _is_number(value):
        return True  # decimals are read from numbers too
    return any(_IS[kind](value) for kind in wanted)


def _kinds(schema: Mapping[str, JSON]) -> list[str]:
    said = schema.get("type")
    return [said] if isinstance(said, str) else [str(kind) for kind in _list(said)]


def _types(schema: Mapping[str, JSON]) -> list[str]:
    return [_CALLED[kind] for kind in _kinds(schema)]


def _name(value: JSON) -> str:
    return next(_CALLED[kind] for kind, fits in _IS.items() if fits(value))


def _same(value: JSON, other: JSON) -> bool:
    """Equal in JSON, where true is not 1, and here 1 not 1.0."""
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(member, other[name]) for name, member in value.items())
    return type(value) is type(other) and value == other


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []
