"""Typed values in and out of stored JSON.

What went in comes back as the type of the annotation: dataclasses, msgspec Structs, TypedDicts, pydantic models,
Decimal, datetime and its kin, UUID, Enum, sets, tuples, bytes, and containers of them. Errors name places and types,
never values.
"""

from __future__ import annotations

import sys
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from outlast.domain import json_schema, msgspec_bridge, pydantic_bridge
from outlast.domain.annotations import MISSING, Hints, hints, takes
from outlast.domain.errors import Invalid
from outlast.domain.payload import JSON, MAX_DEPTH, MAX_NODES, clean, dump, parse, sort_key
from outlast.domain.refusal import Misfit, Refusal, article

__all__ = ["MISSING", "STORED_INCOMPATIBLE", "Hints", "check_hint", "decode", "decode_stored", "encode", "hints", "schema_of", "takes"]

STORED_INCOMPATIBLE: Final = "stored_incompatible"
_ADVICE: Final = "annotate the function with what it returns"
_MINUTE: Final = timedelta(minutes=1)
_TYPE_NAME: Final = 120
_MAX_REASON: Final = 500


def encode(value: object, *, limit: int, what: str, plain: bool = False, hint: object = MISSING, code: str | None = None) -> str:
    """Strict JSON text of a value, in at most `limit` bytes; Invalid (with `code`) for one that cannot be stored.

    plain, or a hint that is Any or object: only plain JSON values, for nothing says how to read back another one. hint:
    the annotation by which `decode` will read it; with pydantic's types in it, pydantic writes all by its own rules.
    """
    if plain or hint is Any or hint is object:
        return dump(value, limit=limit, what=what, code=code, advice=_ADVICE)
    by_pydantic = hint is not MISSING and pydantic_bridge.reaches(hint)
    if type(value) in _PERHAPS_PLAIN and not by_pydantic:
        try:
            return dump(value, limit=limit, what=what, code=code)
        except Invalid:
            pass  # something in it is not plain, or is refused below as well
    refusal: Refusal | None = None
    body: object = None
    try:
        body = pydantic_bridge.to_plain(value, hint) if by_pydantic else _Plain().of(value)
    except Refusal as caught:
        refusal = caught
    if refusal is not None:
        raise refusal.invalid(what, code=code)
    return dump(body, limit=limit, what=what, code=code)


def decode(text: str, hint: object, *, what: str = "value", forbid_unknown: bool = False) -> object:
    """The value of a stored text as its annotation says; plain JSON where that is Any, object or MISSING.

    No conversion but what JSON needs ("1" is no int), unless a pydantic model wants it. Invalid, with JSON pointers,
    for a text that is not strict JSON or not of the type; forbid_unknown: also for members that the type does not know.
    """
    data = parse(text, limit=sys.maxsize, what=what)
    if hint is MISSING or hint is Any or hint is object:
        return data
    try:
        if pydantic_bridge.reaches(hint):
            return pydantic_bridge.load(text, data, hint, forbid_unknown=forbid_unknown)
        return msgspec_bridge.load(data, hint, forbid_unknown=forbid_unknown)
    except Misfit as caught:
        misfit = caught
    raise misfit.invalid(what, name_of(hint))


def decode_stored(text: str, hint: object, *, what: str) -> object:
    """As `decode`, of what a task stored before, perhaps in another release; Invalid with the code stored_incompatible if it does not fit.

    Nothing is lost by it: a release whose annotation fits reads it again.
    """
    try:
        return decode(text, hint, what=what)
    except Invalid as error:
        misfit = error
    words = f"The {what} that was stored before has another type in this release, which cannot read it. Nothing of it is lost."
    raise Invalid(words, code=STORED_INCOMPATIBLE, pointers=misfit.pointers) from misfit


def schema_of(hint: object) -> str | None:
    """The JSON Schema of what `decode` reads as this type with forbid_unknown, as text; None if there is none to tell."""
    if hint is MISSING or hint is Any or hint is object:
        return None
    found, closed = pydantic_bridge.schema(hint) if pydantic_bridge.reaches(hint) else (msgspec_bridge.schema(hint), True)
    return None if found is None else json_schema.stored(found, closed=closed)


def check_hint(hint: object, *, what: str) -> None:
    """Invalid if values of this type could not be read back, such as `date | str` or a class of no known kind."""
    if hint is MISSING:
        return
    found: object = None
    try:
        if pydantic_bridge.reaches(hint):
            pydantic_bridge.prepare(hint)
        else:
            found = msgspec_bridge.foreign(hint)
    except Exception as error:  # noqa: BLE001 - evaluates the host's annotations; no value stands in what it raises
        reason = clean(str(error).partition("\n")[0], limit=_MAX_REASON)
    else:
        if found is None:
            return
        reason = f"JSON cannot be read as {name_of(found)}"
    raise Invalid(f"The {what} has the type {name_of(hint)}, which cannot be stored and read back: {reason}.")


def name_of(hint: object) -> str:
    """The name of a type, for messages."""
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    return clean(name, limit=_TYPE_NAME)


# ---- writing ----


class _Plain:
    """Makes plain JSON values of typed ones; what those must not hold is left to `dump`, but for depth and number."""

    def __init__(self) -> None:
        self._left = MAX_NODES
        self._depth = 0

    def of(self, value: object) -> object:
        """The plain value; Refusal for a type that is not known."""
        if type(value) in _AS_THEY_ARE:
            return value
        if pydantic_bridge.is_model(value):
            return pydantic_bridge.to_plain(value, type(value))
        body = _opened(value)
        if body is None:
            return _leaf(value)
        if self._depth >= MAX_DEPTH:
            raise Refusal(f"is nested deeper than {MAX_DEPTH} levels; flatten it", deepest=value)
        self._left -= len(body) or 1
        if self._left < 0:
            raise Refusal(f"has more than {MAX_NODES} members and items", whole=True)
        self._depth += 1
        made = self._closed(value, body)
        self._depth -= 1
        return made

    def _closed(self, value: object, body: dict[str, object] | list[object]) -> object:
        part: object = None
        made: dict[object, object] = {}
        try:
            for part, item in body.items() if isinstance(body, dict) else enumerate(body):
                made[part] = self.of(item)
        except Refusal as refusal:
            refusal.inside(part, value)
            raise
        if isinstance(body, dict):
            return made
        return sorted(made.values(), key=sort_key) if isinstance(value, AbstractSet) else list(made.values())


def _opened(value: object) -> dict[str, object] | list[object] | None:
    """The members or items of a container, still as they are; None for what is none."""
    if isinstance(value, list | tuple):
        return list(cast("Iterable[object]", value))
    if isinstance(value, Mapping):
        return _keyed(cast("Mapping[object, object]", value))
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: member for name, member in members.items() if member is not msgspec.UNSET}
    return list(cast("Iterable[object]", value)) if isinstance(value, AbstractSet) else None


def _keyed(value: Mapping[object, object]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, member in value.items():
        text = key if type(key) is str else _key(key)
        if text in members:
            raise Refusal("has two keys that are the same text in JSON")
        members[text] = member
    return members


def _key(key: object) -> str:
    text = None if key is None or isinstance(key, bool) or _opened(key) is not None else _leaf(key)
    if text is None or (isinstance(text, float) and not isfinite(text)):
        raise Refusal(f"has {article(key)} as a key, which cannot be read back")
    return text if isinstance(text, str) else repr(text)


def _struct(value: msgspec.Struct) -> dict[str, object] | list[object]:
    config = value.__struct_config__
    members: dict[str, object] = {}
    if config.tag_field is not None:
        members[config.tag_field] = config.tag
    for encoded, name in zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True):
        member: object = getattr(value, name)
        if member is not msgspec.UNSET:
            members[encoded] = member
    return list(members.values()) if config.array_like else members


def _leaf(value: object) -> JSON:
    """JSON of a value that holds no others, by the nearest known type, so that a subclass cannot change its form."""
    for kind in type(value).__mro__:
        if kind in _LEAVES:
            return _LEAVES[kind](value)
    raise Refusal(f"is {article(value)}, which cannot be stored as JSON")


def _base64(value: bytes | bytearray | memoryview) -> JSON:
    return b2a_base64(value, newline=False).decode()


def _decimal(value: Decimal) -> JSON:
    if not value.is_finite():
        raise Refusal("is NaN or infinite; use None or a string")
    return Decimal.__str__(value)


def _datetime(value: datetime) -> JSON:
    _check_zone(value)
    return datetime.isoformat(value)


def _time(value: time) -> JSON:
    _check_zone(value)
    return time.isoformat(value)


def _check_zone(value: datetime | time) -> None:
    if value.tzinfo is None:
        return
    offset = value.utcoffset()
    if offset is None or offset % _MINUTE:
        raise Refusal("has a time zone without an offset in whole minutes; use UTC")


def _timedelta(value: timedelta) -> JSON:
    return cast("str", msgspec.to_builtins(timedelta(value.days, value.seconds, value.microseconds)))


def _enum(value: Enum) -> JSON:
    if type(value.value) not in {str, int}:
        raise Refusal(f"is {article(value)}, whose value is neither text nor a whole number")
    return cast("str | int", value.value)


_AS_THEY_ARE: Final = frozenset({type(None), bool, int, float, str})
_PERHAPS_PLAIN: Final = _AS_THEY_ARE | {dict, list}
_LEAVES: Final[Mapping[type, Callable[[Any], JSON]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: _base64,
    bytearray: _base64,
    memoryview: _base64,
    Decimal: _decimal,
    datetime: _datetime,
    date: date.isoformat,
    time: _time,
    timedelta: _timedelta,
    UUID: UUID.__str__,
    Enum: _enum,
}
