"""Dataclasses, Structs, TypedDicts and the types of the standard library read from JSON by msgspec.

msgspec's own errors repeat values; of their texts only the place and what speaks of types goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final, cast

import msgspec
from msgspec import inspect

from outlast.domain import moments
from outlast.domain.annotations import per_type
from outlast.domain.payload import JSON
from outlast.domain.refusal import Misfit, Problem

_PLACE: Final = re.compile(r" - at `(?:key` in `)?\$([^`]*)`\Z")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_SPEAKS_OF_TYPES: Final = re.compile(
    r"Expected `.*"
    r"|Invalid (?:UUID|decimal string|base64 encoded string|RFC3339 encoded \w+|ISO8601 duration)"
    r"|[A-Z]\w+(?: \w+){0,2} out of range",
    re.DOTALL,
)
_MISSING_FIELD: Final = re.compile(r"Object missing required field `(.+)`\Z", re.DOTALL)

_FOREIGN: Final = (inspect.CustomType, inspect.RawType, inspect.ExtType)
_RECORDS: Final = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)
_ANYTHING: Final = inspect.AnyType()
_LISTS: Final = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)


def foreign(hint: object) -> object:
    """A type in `hint` that JSON cannot be read as, or None; raises what msgspec does for an ambiguous one."""
    kinds = (getattr(node, "cls", node) for node in _nodes(_type_info(hint), {}) if isinstance(node, _FOREIGN))
    return next((kind for kind in kinds if kind is not object), None)


@per_type
def _type_info(hint: object) -> inspect.Type:
    return inspect.type_info(hint)


def load(data: JSON, hint: object, *, forbid_unknown: bool) -> object:
    """The value of the type, made of plain JSON without loose conversions; Misfit, without values, if it is none."""
    try:
        value: object = msgspec.convert(data, cast("type[object]", hint), str_keys=True)
    except Exception as error:  # noqa: BLE001 - the host's own checks raise anything, and it may hold the value
        problems = [_problem(error, data)]
    else:
        problems = list(_unknown(_type_info(hint), data, ())) if forbid_unknown else []
        if not problems:
            return value
    raise Misfit(problems)


def _problem(error: Exception, data: JSON) -> Problem:
    """Where and why msgspec refused, of its text only what no value can stand in."""
    text = str(error)
    place = _PLACE.search(text)
    path = _located(place[1] if place else "", data)
    if not isinstance(error, msgspec.ValidationError) or error.__cause__ is not None:
        return Problem(path, f"its own check failed with {type(error.__cause__ or error).__name__}")
    said = text[: place.start()] if place else text
    missing = _MISSING_FIELD.match(said)
    if missing:
        return Problem((*path, missing[1]), "missing")
    if said.startswith("Object contains unknown field"):
        return Problem(path, "has a member that is not known")
    if said.startswith(("Invalid enum value", "Invalid value")):
        return Problem(path, "is none of the allowed values")
    return Problem(path, said[:1].lower() + said[1:] if _SPEAKS_OF_TYPES.fullmatch(said) else "does not fit")


def _located(place: str, data: JSON) -> tuple[object, ...]:
    """The path of msgspec's `.field[3][...]` as far as the data has it; `[...]` is some member of a mapping."""
    path: list[object] = []
    at = data
    for step in _STEP.finditer(place):
        if step[1] is not None and isinstance(at, dict) and step[1] in at:
            path.append(step[1])
            at = at[step[1]]
        elif step[2] is not None and isinstance(at, list) and int(step[2]) < len(at):
            path.append(int(step[2]))
            at = at[int(step[2])]
        else:
            break
    return tuple(path)


def _unknown(node: inspect.Type, value: JSON, path: tuple[object, ...]) -> Iterator[Problem]:
    """The members in a value, which is of the type, that the type does not know."""
    if isinstance(node, inspect.Metadata):
        yield from _unknown(node.type, value, path)
    elif isinstance(node, inspect.UnionType):
        for option in node.types:
            if not _of_another_tag(option, value):
                yield from _unknown(option, value, path)
    elif isinstance(value, list):
        for no, (inner, item) in enumerate(zip(_item_types(node), value, strict=False)):
            yield from _unknown(inner, item, (*path, no))
    elif isinstance(value, dict):
        for key, member in value.items():
            known = _member_type(node, key)
            if known is None:
                yield Problem((*path, key), "not a known member")
            else:
                yield from _unknown(known, member, (*path, key))


def _of_another_tag(option: inspect.Type, value: JSON) -> bool:
    """Of the types in a union that are JSON objects, all but one carry another tag than the value."""
    if not isinstance(option, inspect.StructType) or option.tag_field is None or not isinstance(value, dict):
        return False
    return value.get(option.tag_field) != option.tag


def _item_types(node: inspect.Type) -> Iterable[inspect.Type]:
    if isinstance(node, _LISTS):
        return repeat(node.item_type)
    if isinstance(node, inspect.TupleType):
        return node.item_types
    if isinstance(node, inspect.NamedTupleType):
        return [field.type for field in node.fields]
    return ()


def _member_type(node: inspect.Type, key: str) -> inspect.Type | None:
    """The type of a member; None if it is not known. What is no record knows every member."""
    if isinstance(node, inspect.DictType):
        return node.value_type
    if not isinstance(node, _RECORDS):
        return _ANYTHING
    if isinstance(node, inspect.StructType) and key == node.tag_field:
        return _ANYTHING
    return next((field.type for field in node.fields if field.encode_name == key), None)


def _nodes(node: inspect.Type, seen: dict[int, inspect.Type]) -> Iterator[inspect.Type]:
    """A type and all that it is made of."""
    if id(node) in seen:
        return
    seen[id(node)] = node
    yield node
    for part in _parts(node):
        yield from _nodes(part, seen)


def _parts(node: inspect.Type) -> Iterable[inspect.Type]:
    if isinstance(node, inspect.Metadata):
        return (node.type,)
    if isinstance(node, inspect.UnionType):
        return node.types
    if isinstance(node, inspect.DictType):
        return (node.key_type, node.value_type)
    if isinstance(node, _LISTS):
        return (node.item_type,)
    if isinstance(node, _RECORDS):
        return [field.type for field in node.fields]
    return _item_types(node)


def schema(hint: object) -> dict[str, object] | None:
    """The JSON Schema of the type; None where msgspec has none for it."""
    try:
        found = msgspec.json.schema(hint)
        moments.mark(found, hint)
    except Exception:  # noqa: BLE001 - evaluates the host's annotations; without a schema the handler judges alone
        return None
    return found
