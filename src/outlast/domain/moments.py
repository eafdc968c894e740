"""Dates, times and the like in a JSON Schema: which texts are such, and whether a text is one.

msgspec says `date-time` only of a datetime that must have an offset; of any other its schema is that of any text. The annotation knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import inspect

OFFSET: Final = "x-offset"
"""Beside `date-time` and `time`: `required`, or `none` where there must not be one; without it both will do."""
_REF: Final = "#/$defs/"
_MOMENTS: Final = (inspect.DateTimeType, inspect.TimeType)
_RECORDS: Final = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)
_LISTS: Final = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)

_FORMATS: Final[Mapping[str, tuple[type[Any], str]]] = MappingProxyType(
    {
        "date": (date, "a date, as 2030-01-31"),
        "date-time": (datetime, "a date and time, as 2030-01-31T08:00:00Z"),
        "time": (time, "a time of day, as 08:00:00Z"),
        "duration": (timedelta, "a duration, as PT1H30M"),
        "uuid": (UUID, "a UUID, as 01234567-89ab-7cde-8f01-23456789abcd"),
        "decimal": (Decimal, "a decimal number, as 12.50"),
    }
)


def misfit(text: str, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a text whose schema names a format, in words without the text; None if nothing is, or the format is not known."""
    known = _FORMATS.get(str(schema.get("format")))
    if known is None:
        return None
    kind, words = known
    try:
        value: Any = msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return f"is not {words}"
    offset = schema.get(OFFSET)
    if not isinstance(value, datetime | time) or offset not in ("required", "none"):
        return None
    if (value.tzinfo is not None) is (offset == "required"):
        return None
    return "has no offset, such as Z at its end" if offset == "required" else "has an offset, and is asked for without one"


def mark(schema: dict[str, object], hint: object) -> None:
    """Names, in msgspec's schema of the type, each text that is a date with time or a time of day."""
    definitions = cast("dict[str, dict[str, object]]", schema.get("$defs", {}))
    _mark(schema, inspect.type_info(hint), definitions, set())


def _mark(schema: object, node: inspect.Type, definitions: Mapping[str, dict[str, object]], seen: set[str]) -> None:
    if not isinstance(schema, dict):
        return
    here = cast("dict[str, object]", schema)
    ref = here.get("$ref")
    if isinstance(ref, str):
        name = ref.removeprefix(_REF)
        if name in seen or name not in definitions:
            return
        seen.add(name)
        here = definitions[name]
    if isinstance(node, inspect.Metadata):
        _mark(here, node.type, definitions, seen)
    elif isinstance(node, _MOMENTS):
        here["format"] = "date-time" if isinstance(node, inspect.DateTimeType) else "time"
        if node.tz is not None:
            here[OFFSET] = "required" if node.tz else "none"
    else:
        for inner, part in _parts(here, node, definitions):
            _mark(inner, part, definitions, seen)


def _parts(
    schema: dict[str, object], node: inspect.Type, definitions: Mapping[str, dict[str, object]]
) -> list[tuple[object, inspect.Type]]:
    """The schemas inside this one, each with the type that it is of, as far as both can be told."""
    if isinstance(node, inspect.UnionType):
        options = cast("list[dict[str, object]]", schema.get("anyOf", []))
        return [(option, kind) for kind in node.types for option in options if _is_of(option, kind, definitions)]
    if isinstance(node, _RECORDS):
        if "prefixItems" in schema:
            return list(zip(cast("list[object]", schema["prefixItems"]), [field.type for field in node.fields], strict=False))
        members = cast("dict[str, object]", schema.get("properties", {}))
        return [(members.get(field.encode_name), field.type) for field in node.fields]
    if isinstance(node, _LISTS):
        return [(schema.get("items"), node.item_type)]
    if isinstance(node, inspect.DictType):
        return [(schema.get("additionalProperties"), node.value_type)]
    items = cast("list[object]", schema.get("prefixItems", []))
    if isinstance(node, inspect.NamedTupleType):
        return list(zip(items, [field.type for field in node.fields], strict=False))
    return list(zip(items, node.item_types, strict=False)) if isinstance(node, inspect.TupleType) else []


def _is_of(option: dict[str, object], kind: inspect.Type, definitions: Mapping[str, dict[str, object]]) -> bool:
    """Whether this schema of a union is that of the type: of texts, lists and mappings a union has one at the most."""
    if isinstance(kind, inspect.Metadata):
        return _is_of(option, kind.type, definitions)
    ref = option.get("$ref")
    if isinstance(kind, _RECORDS):
        return isinstance(ref, str) and definitions.get(ref.removeprefix(_REF), {}).get("title") == kind.cls.__name__
    if isinstance(kind, _MOMENTS):
        return option.get("type") == "string"
    if isinstance(kind, inspect.DictType):
        return ref is None and option.get("type") == "object"
    return option.get("type") == "array" and not isinstance(ref, str)
