"""Rows of an outbox in another database: what an application writes there, and what a row asks for once it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast

from outlast.domain.errors import Invalid
from outlast.domain.model import MAX_NAME, MAX_TARGET, Principal, TargetRef, Unique, UniquePolicy
from outlast.domain.payload import JSON, check_key, check_text, dump, parse

Value: TypeAlias = "str | int | None"

WRITTEN: Final = (
    "id",
    "tenant",
    "owner",
    "roles",
    "claims",
    "kind",
    "version",
    "input",
    "target_ref",
    "target_version",
    "unique_key",
    "unique_policy",
    "not_before",
    "correlation_id",
)
"""The columns that an application writes; the rest are the database's and the relay's."""
NUMBERS: Final = frozenset({"version", "not_before"})
MAX_LONG: Final = 65_536
"""Bytes of a column that holds JSON, but for the input."""
MAX_SHORT: Final = 4 * MAX_TARGET
"""Bytes of any other text."""
UNDECODABLE: Final = "undecodable"
INVALID_ROW: Final = "invalid_row"
INPUT_TOO_LARGE: Final = "input_too_large"


@dataclass(frozen=True, slots=True)
class Mark:
    """Which row it is. Both are compared before a row is changed: numbers start anew where a table is emptied."""

    seq: int
    created_at: int


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row as its driver gave it. `size` is that of the input in bytes; one that is too large is not read."""

    mark: Mark
    tries: int
    size: int | None
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a row asks for, as a request over HTTP would."""

    key: str
    owner: Principal
    kind: str
    version: int | None
    input: JSON
    target: TargetRef | None
    unique: Unique | None
    not_before: datetime | None
    correlation_id: str | None


def written(
    *,
    key: str,
    owner: Principal,
    kept: Mapping[str, str],
    kind: str,
    version: int,
    input: str,
    target: TargetRef | None,
    unique: Unique | None,
    not_before_ms: int | None,
    correlation_id: str | None,
) -> dict[str, Value]:
    """The columns of a row, each of them, by name. `kept`: the claims that the kind keeps."""
    return {
        "id": key,
        "tenant": owner.tenant,
        "owner": owner.subject,
        "roles": dump(sorted(owner.roles), limit=MAX_LONG, what="roles") if owner.roles else None,
        "claims": dump(dict(kept), limit=MAX_LONG, what="claims") if kept else None,
        "kind": kind,
        "version": version,
        "input": input,
        "target_ref": None if target is None else target.ref,
        "target_version": None if target is None else target.version,
        "unique_key": None if unique is None else unique.key,
        "unique_policy": None if unique is None else unique.policy,
        "not_before": not_before_ms,
        "correlation_id": correlation_id,
    }


def asked(row: OutboxRow, *, limit: int) -> Asked:
    """What a row asks for; Invalid, with a code that says what is wrong with the row, if it cannot be told.

    `undecodable`: a text is no UTF-8. `input_too_large`: more bytes than `limit`. `invalid_row`: a column holds what it may not.
    `invalid`: the input is no strict JSON.
    """
    if row.size is not None and row.size > limit:
        raise Invalid(f"The input is larger than {limit} bytes; store the data elsewhere and pass a reference.", code=INPUT_TOO_LARGE)
    texts = {name: _text(row.values[name], name) for name in WRITTEN if name not in NUMBERS}
    numbers = {name: _number(row.values[name], name) for name in NUMBERS}
    try:
        key = check_key(_needed(texts, "id"), what="id")
        kind = check_text(_needed(texts, "kind"), what="kind", limit=MAX_NAME)
        owner = Principal(_needed(texts, "tenant"), _needed(texts, "owner"), roles=_roles(texts["roles"]), claims=_claims(texts["claims"]))
        target = _target(texts["target_ref"], texts["target_version"])
        unique = _unique(texts["unique_key"], texts["unique_policy"])
        not_before = _moment(numbers["not_before"])
        correlation = texts["correlation_id"]
        if correlation is not None:
            check_text(correlation, what="correlation_id", limit=MAX_NAME)
        body = _needed(texts, "input")
    except Invalid as error:
        raise Invalid(error.message, code=INVALID_ROW) from None
    try:
        given = parse(body, limit=limit)
    except Invalid as error:
        raise Invalid(error.message, code=error.code, pointers=error.pointers or ("",)) from None
    return Asked(key, owner, kind, numbers["version"], given, target, unique, not_before, correlation)


def _text(value: object, name: str) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
        raise Invalid(f"The column {name} is no UTF-8.", code=UNDECODABLE)
    if value is None or isinstance(value, str):
        return value
    raise Invalid(f"The column {name} holds no text.", code=INVALID_ROW)


def _number(value: object, name: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise Invalid(f"The column {name} holds no whole number.", code=INVALID_ROW)


def _needed(texts: Mapping[str, str | None], name: str) -> str:
    value = texts[name]
    if value is None:
        raise Invalid(f"The column {name} is null.")
    return value


def _roles(text: str | None) -> list[str]:
    found = [] if text is None else parse(text, limit=MAX_LONG, what="roles")
    if not isinstance(found, list) or not all(isinstance(role, str) for role in found):
        raise Invalid('The column roles is a JSON array of texts, for example ["staff"].')
    return cast("list[str]", found)


def _claims(text: str | None) -> dict[str, str]:
    found = {} if text is None else parse(text, limit=MAX_LONG, what="claims")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise Invalid('The column claims is a JSON object of texts, for example {"department": "sales"}.')
    return cast("dict[str, str]", found)


def _target(ref: str | None, version: str | None) -> TargetRef | None:
    if ref is None and version is None:
        return None
    if ref is None or version is None:
        raise Invalid("target_ref and target_version stand together, or both are null.")
    return TargetRef(ref, version)


def _unique(key: str | None, policy: str | None) -> Unique | None:
    if key is None and policy is None:
        return None
    if key is None or policy is None:
        raise Invalid("unique_key and unique_policy stand together, or both are null.")
    return Unique(key, cast("UniquePolicy", policy))


def _moment(ms: int | None) -> datetime | None:
    if ms is None:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise Invalid("not_before is no time: it is milliseconds since 1970, in UTC.")
