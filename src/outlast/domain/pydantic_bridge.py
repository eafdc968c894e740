"""Pydantic's models among the values that are stored. Pydantic itself is the host's: it is never imported here.

A type can come from pydantic only when the host has imported it, so that it is found in `sys.modules`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import isfinite
from typing import Final, Protocol, cast, get_args, get_origin, get_type_hints

from outlast.domain.annotations import per_type
from outlast.domain.payload import JSON, sort_key
from outlast.domain.refusal import Misfit, Problem, Refusal, article

_UNKNOWN_TYPE: Final = re.compile(r"Unable to serialize unknown type: <class '(?:[\w.<>]*\.)?(\w{1,80})'>")
_ERROR_TYPE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_REASONS: Final = {
    "missing": "missing",
    "missing_argument": "missing",
    "extra_forbidden": "not a known member",
    "unexpected_keyword_argument": "not a known member",
}
_HAS_FIELDS: Final = (
    "__dataclass_fields__",
    "__struct_fields__",
    "__pydantic_serializer__",
    "__total__",  # of a TypedDict
    "_fields",  # of a NamedTuple
)
_WRITING: Final[Mapping[str, object]] = {"by_alias": True, "round_trip": True, "warnings": False}


class _Adapter(Protocol):
    def validate_json(self, data: str, /, **options: object) -> object: ...
    def dump_python(self, instance: object, /, **options: object) -> object: ...
    def json_schema(self) -> dict[str, object]: ...


class _Report(Protocol):
    def errors(self, *, include_url: bool, include_context: bool, include_input: bool) -> Sequence[Mapping[str, object]]: ...


@dataclass(frozen=True, slots=True)
class _Codec:
    adapter: _Adapter
    forbids: Mapping[str, object]


def is_model(value: object) -> bool:
    """Whether the value is an instance of a pydantic model or dataclass."""
    return hasattr(type(value), "__pydantic_serializer__")


@per_type
def reaches(hint: object) -> bool:
    """Whether pydantic's types or constraints stand anywhere in a type, so that pydantic has to read and write it."""
    return any(_is_pydantic(part) for part in _parts(hint, {}))


def prepare(hint: object) -> None:
    """Makes what reads and writes values of a type; raises whatever pydantic does for one that it cannot handle."""
    _codec(hint)


def schema(hint: object) -> tuple[dict[str, object] | None, bool]:
    """The JSON Schema of the type, None where pydantic has none for it; and whether reading it refuses members that are not known."""
    codec = _codec(hint)
    try:
        return codec.adapter.json_schema(), bool(codec.forbids)
    except Exception:  # noqa: BLE001 - the host's types may have none; then the handler judges alone
        return None, False


def to_plain(value: object, hint: object) -> object:
    """The value as JSON types by its type's own rules, sets in one order; Refusal for what would be lost."""
    refusal: Refusal | None = None
    dumped: object = None
    try:
        dumped = _codec(hint).adapter.dump_python(value, mode="json", **_WRITING)
    except Exception as error:  # noqa: BLE001 - the host's serializers raise anything, and it may hold the value
        refusal = _unwritable(error, value)
    if refusal is not None:
        raise refusal
    try:
        raw = _codec(hint).adapter.dump_python(value, mode="python", **_WRITING)
    except Exception:  # noqa: BLE001 - such as for a set of models, which as dicts cannot stand in a set
        return dumped
    return _aligned(raw, dumped)


def load(text: str, data: JSON, hint: object, *, forbid_unknown: bool) -> object:
    """The value of a JSON text, whose parsed form is `data`; Misfit, without values, if it is none of the type.

    Unknown members are refused unless a model in the type says itself what it does with them.
    """
    codec = _codec(hint)
    try:
        return codec.adapter.validate_json(text, **(codec.forbids if forbid_unknown else {}))
    except Exception as error:  # noqa: BLE001 - the host's validators raise anything, and it may hold the value
        problems = _problems(error, data)
    raise Misfit(problems)


# ---- types ----


@per_type
def _codec(hint: object) -> _Codec:
    make = cast("Callable[[object], _Adapter]", sys.modules["pydantic"].TypeAdapter)
    adapter = make(hint)
    decided = any(_decides_about_unknown(part) for part in _parts(hint, {}))
    can_forbid = "extra" in signature(adapter.validate_json).parameters  # pydantic 2.12
    return _Codec(adapter, {"extra": "forbid"} if can_forbid and not decided else {})


def _is_pydantic(part: object) -> bool:
    kind = part if isinstance(part, type) else type(part)
    return (
        kind.__module__.partition(".")[0] in {"pydantic", "pydantic_core"}
        or hasattr(kind, "__pydantic_serializer__")
        or hasattr(kind, "__get_pydantic_core_schema__")
    )


def _decides_about_unknown(part: object) -> bool:
    config: object = getattr(part, "model_config", None) or getattr(part, "__pydantic_config__", None)
    return isinstance(config, Mapping) and cast("Mapping[str, object]", config).get("extra") in {"allow", "ignore"}


def _parts(hint: object, seen: dict[int, object]) -> Iterator[object]:
    """A type and all that it is made of: arguments, metadata, fields."""
    if id(hint) in seen:
        return
    seen[id(hint)] = hint  # kept, so that no other object gets its id
    yield hint
    for part in (*get_args(hint), *_fields(get_origin(hint) or hint)):
        yield from _parts(part, seen)


def _fields(kind: object) -> Iterable[object]:
    alias: object = getattr(kind, "__supertype__", None)  # of a NewType
    if alias is not None:
        return (alias,)
    if not isinstance(kind, type) or not any(hasattr(cast("object", kind), mark) for mark in _HAS_FIELDS):
        return ()
    try:
        return get_type_hints(cast("object", kind), include_extras=True).values()
    except Exception:  # noqa: BLE001 - evaluates the host's annotations; what reads the type says what is wrong
        return ()


# ---- values ----


def _unwritable(error: Exception, value: object) -> Refusal:
    unknown = _UNKNOWN_TYPE.match(str(error))
    if unknown is not None:
        return Refusal(f"holds a value of the type {unknown[1]}, which is not a JSON value")
    return Refusal(f"is {article(value)}, which cannot be written as JSON ({type(error).__name__})")


def _aligned(raw: object, dumped: object) -> object:
    """What was dumped, with its sets in one order; Refusal where pydantic wrote another value, for JSON cannot hold it.

    `raw` is the value before it became JSON. Where a serializer of the host gave it another shape, that one holds.
    """
    if isinstance(raw, float) and not isfinite(raw) and not isinstance(dumped, str):
        raise Refusal("is NaN or infinite; use None or a string")
    if isinstance(raw, Iterator):
        raise Refusal("is read by going through it once, as files and generators are; use a list")
    if hasattr(raw, "get_secret_value"):
        raise Refusal(f"is {article(raw)}, which is not written; pass a reference to the secret")
    if isinstance(raw, Mapping) and isinstance(dumped, dict):
        return _aligned_members(cast("Mapping[object, object]", raw), cast("dict[object, object]", dumped))
    if isinstance(raw, set | frozenset) and isinstance(dumped, list):
        return sorted(cast("list[object]", dumped), key=sort_key)
    if isinstance(raw, list | tuple) and isinstance(dumped, list):
        return _aligned_items(cast("Sequence[object]", raw), cast("list[object]", dumped))
    return dumped


def _aligned_members(raw: Mapping[object, object], dumped: dict[object, object]) -> object:
    if len(raw) != len(dumped):
        return dumped
    made: dict[object, object] = {}
    key: object = None
    try:
        for (key, member), before in zip(dumped.items(), raw.values(), strict=True):
            made[key] = _aligned(before, member)
    except Refusal as refusal:
        refusal.inside(key, dumped)
        raise
    return made


def _aligned_items(raw: Sequence[object], dumped: list[object]) -> object:
    if len(raw) != len(dumped):
        return dumped
    made: list[object] = []
    try:
        for before, item in zip(raw, dumped, strict=True):
            made.append(_aligned(before, item))
    except Refusal as refusal:
        refusal.inside(len(made), dumped)
        raise
    return made


def _problems(error: Exception, data: JSON) -> list[Problem]:
    if not isinstance(error, cast("type[Exception]", sys.modules["pydantic"].ValidationError)):
        return [Problem((), f"its own check failed with {type(error).__name__}")]
    report = cast("_Report", error).errors(include_url=False, include_context=False, include_input=False)
    return [_problem(str(entry["type"]), cast("tuple[object, ...]", entry["loc"]), data) for entry in report]


def _problem(kind: str, location: tuple[object, ...], data: JSON) -> Problem:
    reason = _REASONS.get(kind) or (f"does not fit ({kind})" if _ERROR_TYPE.fullmatch(kind) else "does not fit")
    path: list[object] = []
    at: object = data
    for part in location:  # names of union members stand in it as well
        if isinstance(at, dict) and isinstance(part, str) and part in at:
            at = cast("dict[str, object]", at)[part]
        elif isinstance(at, list) and isinstance(part, int) and 0 <= part < len(cast("list[object]", at)):
            at = cast("list[object]", at)[part]
        elif part is not location[-1] or reason != "missing":
            continue
        path.append(part)
    return Problem(tuple(path), reason)
