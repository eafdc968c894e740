"""The one strict JSON boundary, and the checks of texts that stand beside payloads.

What `dump` accepts, `parse` with the same limit reads back equal, on every store: Python's `json` makes and reads the
text, and what it lets through beyond the standard is refused here. -0.0 is kept everywhere (payload columns are text,
not jsonb); 1 and 1.0 stay different values. Errors name the place by JSON pointers and never repeat a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final, NoReturn, TypeAlias, TypeGuard, cast

from outlast.domain.errors import Invalid
from outlast.domain.refusal import Refusal, article

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

MAX_DEPTH: Final = 32
MAX_NODES: Final = 100_000
"""Members and items of all containers together; an empty container counts as one."""
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
MAX_KEY: Final = 255

_INF: Final = float("inf")
_INT64_DIGITS: Final = 20
_MAX_CANONICAL: Final = 2**26

_SUSPECT: Final = re.compile(r"\\u(?:0000|d[89a-f])", re.IGNORECASE)
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_BRACKET: Final = re.compile(r"[\[\]{}]")
# Controls, surrogates, line separators, and what turns the direction of the text around it.
_CONTROL: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNCLEAN: Final = re.compile(f"[{_CONTROL}]")
_UNFIT: Final = re.compile(f"[\t\n{_CONTROL}]")
_KEY: Final = re.compile(r"[!-~]{1,255}")
_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

_TOO_DEEP: Final = f"is nested deeper than {MAX_DEPTH} levels; flatten it"
_TOO_MANY: Final = f"has more than {MAX_NODES} members and items; store the data elsewhere and pass a reference"
_NOT_INT64: Final = "is a whole number outside 64 bit; send it as a string"
_NOT_FINITE: Final = "is NaN or infinite, or a number too large for a 64 bit float; send null or a string"
_TWICE: Final = "gives a key twice; send each key once"
_BAD_KEY: Final = "has a key with a NUL character or half a surrogate pair; remove it"
_BAD_TEXT: Final = "has a NUL character or half a surrogate pair; remove it"


def parse(text: str | bytes, *, limit: int, what: str = "input") -> JSON:
    """The JSON value of a text of at most `limit` bytes; Invalid, with the place where it is known, for anything else.

    Refused: what is not UTF-8 or not JSON, NaN and infinities, whole numbers outside 64 bit, a key twice in an object,
    NUL and lone surrogates, more than MAX_DEPTH levels or MAX_NODES values. The cost is linear, whatever the text.
    """
    source = _decoded(text, limit, what)
    _check_shape(source, what)
    try:
        value: JSON = _STRICT.decode(source)
        if _may_be_unstorable(source):
            check_texts(value)
    except (Refusal, ValueError):
        pass  # said below, outside of the handler: the parser's own error holds the whole text
    else:
        return value
    raise _explained(source, what)


def dump(value: object, *, limit: int, what: str = "value", code: str | None = None, advice: str = "") -> str:
    """Compact JSON text of a plain value, in the order of its keys; Invalid by the rules of `parse`.

    Only the very types None, bool, int, float, str, list and dict with str keys: what would come back as another type
    (a tuple, an IntEnum) is refused by name. `advice` is added to that message.
    """
    return _dump(value, _ENCODER, limit=limit, what=what, code=code, advice=advice)


def canonical(value: object) -> str:
    """One text for equal values, whatever the order of keys, for fingerprints. Invalid as by `dump`; at most 64 MiB."""
    return _dump(value, _SORTED_ENCODER, limit=_MAX_CANONICAL, what="value", code=None, advice="")


def clean(text: str, *, limit: int) -> str:
    """Any text made storable and fit to show, of at most `limit` (1 or more) characters.

    NUL, lone surrogates, controls (not newline and tab) and what turns the direction of a text become U+FFFD; CR LF
    becomes a newline; what is cut off is marked by an ellipsis.
    """
    head = text[: 2 * limit + 1].replace("\r\n", "\n")
    kept = head if len(head) <= limit else head[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return _UNCLEAN.sub("\N{REPLACEMENT CHARACTER}", kept)


def check_text(value: str, *, what: str, limit: int) -> str:
    """The value, if it is text for one line: not blank, at most `limit` characters, no controls. Invalid otherwise."""
    _require_text(value, what)
    if not value.strip():
        raise Invalid(f"The {what} is empty; give it at least one visible character.")
    if len(value) > limit:
        raise Invalid(f"The {what} is longer than {limit} characters; shorten it.")
    if _UNFIT.search(value):
        raise Invalid(f"The {what} has control characters, line breaks or half a surrogate pair; remove them.")
    return value


def check_names(values: Iterable[str], *, what: str, limit: int) -> tuple[str, ...]:
    """Several such texts, as `what` names one of them; Invalid for a single text, and for what holds none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise Invalid(f"Several names are wanted, each a {what}: a list of texts, for example ['{what}'].")
    return tuple(check_text(value, what=what, limit=limit) for value in values)


def check_key(value: str, *, what: str = "idempotency key") -> str:
    """The value, if it is an idempotency or unique key: 1 to 255 visible ASCII characters. Invalid otherwise."""
    _require_text(value, what)
    if _KEY.fullmatch(value) is None:
        raise Invalid(f"The {what} must be 1 to {MAX_KEY} visible ASCII characters without spaces.")
    return value


def check_code(value: object) -> bool:
    """Whether this is a failure or attention code: a lower-case letter, then at most 63 of a-z, 0-9 and underscore."""
    return isinstance(value, str) and _CODE.fullmatch(value) is not None


def _require_text(value: object, what: str) -> None:
    """For callers without a type checker."""
    if not isinstance(value, str):
        raise Invalid(f"The {what} must be text, not {article(value)}.")


def sort_key(value: object) -> str:
    """A text by which unordered values get one order, the same in every process."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


# ---- reading ----


def _decoded(text: str | bytes, limit: int, what: str) -> str:
    """The text, measured in bytes before anything else reads it."""
    if len(text) > limit:
        raise _too_large(limit).invalid(what)
    if isinstance(text, bytes):
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            position = error.start
        raise Invalid(f"The {what} is not UTF-8 at byte {position}; send it as UTF-8.")
    if not text.isascii() and _size(text) > limit:
        raise _too_large(limit).invalid(what)
    return text


def _too_large(limit: int) -> Refusal:
    return Refusal(f"is larger than {limit} bytes; store the data elsewhere and pass a reference", whole=True)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _may_be_unstorable(source: str) -> bool:
    """Whether NUL or half a surrogate pair may stand in a JSON text; whole pairs and escaped backslashes match too."""
    if "\\u" in source and _SUSPECT.search(source):
        return True
    if source.isascii():
        return False
    try:
        source.encode()
    except UnicodeEncodeError:
        return True
    return False


def _check_shape(source: str, what: str) -> None:
    """Refuses depth and numbers of values before anything recursive or greedy runs, by counting characters."""
    opened = source.count("[") + source.count("{")
    if opened <= MAX_DEPTH and source.count(",") + opened <= MAX_NODES:
        return
    # Escapes stand in strings only; without them each quote begins or ends a string. In a text that is not JSON this
    # holds up to the first error, where the parser stops.
    outside = "".join(source.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    # A container of n > 0 has n - 1 commas: together its n members or items. An empty one counts as one.
    if outside.count(",") + outside.count("[") + outside.count("{") > MAX_NODES:
        raise Invalid(f"The {what} {_TOO_MANY}.")
    depth = 0
    for bracket in _BRACKET.finditer(outside):
        if bracket[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Invalid(f"The {what} {_TOO_DEEP}.")
        else:
            depth -= 1


def _object(members: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(members)
    if len(found) != len(members):
        raise Refusal(_TWICE)
    return found


def _whole(digits: str) -> int:
    # Measured first: reading 5,000 digits is refused by Python itself, reading 4,000 is slow.
    if len(digits) > _INT64_DIGITS or not INT64_MIN <= (value := int(digits)) <= INT64_MAX:
        raise Refusal(_NOT_INT64)
    return value


def _real(digits: str) -> float:
    value = float(digits)
    if value in (_INF, -_INF):
        raise Refusal(_NOT_FINITE)
    return value


def _constant(_name: str) -> NoReturn:
    raise Refusal(_NOT_FINITE)


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_constant)


class _Mark:
    """Stands in a value for what is refused, so that a second reading can say where it is."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _marking_object(members: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in members:
        found[key] = _Mark(_TWICE) if key in found else value
    return found


def _marking_number(digits: str) -> object:
    try:
        return _real(digits) if set(digits) & set(".eE") else _whole(digits)
    except Refusal as caught:
        reason = caught.reason
    return _Mark(reason)


_MARKING: Final = json.JSONDecoder(
    object_pairs_hook=_marking_object,
    parse_int=_marking_number,
    parse_float=_marking_number,
    parse_constant=lambda _name: _Mark(_NOT_FINITE),
)


def _explained(source: str, what: str) -> Invalid:
    """Why a text that the strict reading refused is refused."""
    try:
        value: object = _MARKING.decode(source)
    except json.JSONDecodeError as error:
        if source.startswith("\ufeff"):
            return Invalid(f"The {what} begins with a byte order mark; send UTF-8 without one.")
        place = f"at line {error.lineno}, column {error.colno}"
        if error.msg == "Extra data":
            return Invalid(f"The {what} goes on after its end {place}; send one JSON value.")
        return Invalid(f"The {what} is not JSON {place}; correct it there.")
    refusal = Refusal(_BAD_TEXT)
    try:
        _check_marks(value)
        check_texts(value)
    except Refusal as caught:
        refusal = caught
    return refusal.invalid(what)


def _check_marks(value: object) -> None:
    if isinstance(value, _Mark):
        raise Refusal(value.reason)
    _descend(value, _check_marks)


def check_texts(value: object) -> None:
    """Refuses NUL and lone surrogates in all strings and keys of a value."""
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise Refusal(_BAD_TEXT)
        return
    if _is_object(value) and any(_UNSTORABLE.search(key) for key in value):
        raise Refusal(_BAD_KEY)
    _descend(value, check_texts)


def _descend(value: object, visit: Callable[[object], None]) -> None:
    part: object = None
    try:
        if _is_object(value):
            for part, member in value.items():  # noqa: B007 - the handler below names it
                visit(member)
        elif _is_array(value):
            for part, item in enumerate(value):  # noqa: B007 - the handler below names it
                visit(item)
    except Refusal as refusal:
        refusal.inside(part, value)
        raise


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


# ---- writing ----

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))
_SORTED_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


class _Budget:
    """What may still be written; counted before the encoder runs, so that shared parts cannot multiply without end."""

    __slots__ = ("advice", "limit", "nodes", "room")

    def __init__(self, limit: int, advice: str) -> None:
        self.limit = limit
        self.room = limit
        self.nodes = MAX_NODES + 1  # the list around the value
        self.advice = advice


def _dump(value: object, encoder: json.JSONEncoder, *, limit: int, what: str, code: str | None, advice: str) -> str:
    refusal: Refusal | None = None
    text = ""
    try:
        _measure([value], 0, budget := _Budget(limit, advice))
        if budget.room < 0:
            raise _too_large(limit)
        text = encoder.encode(value)
        if _may_be_unstorable(text):
            check_texts([value])
        if (len(text) if text.isascii() else _size(text)) > limit:
            raise _too_large(limit)
    except Refusal as caught:
        refusal = caught
    if refusal is not None:
        del refusal.path[-1:]  # the list around the value
        raise refusal.invalid(what, code=code)
    return text


def _measure(container: dict[object, object] | list[object], depth: int, budget: _Budget) -> None:
    """Refuses what is no plain JSON value or exceeds depth, number or size."""
    _open(container, depth, budget)
    part: object = None
    try:
        if isinstance(container, dict):
            _check_keys(container, budget)
        members = container.items() if isinstance(container, dict) else enumerate(container)
        for part, item in members:  # noqa: B007 - the handler below names it
            if type(item) is str:
                budget.room -= len(item)
            elif type(item) is dict or type(item) is list:
                _measure(cast("dict[object, object] | list[object]", item), depth + 1, budget)
            elif item is not None and item is not True and item is not False:
                _check_number(item, budget.advice)
    except Refusal as refusal:
        refusal.inside(part, container)
        raise


def _open(container: dict[object, object] | list[object], depth: int, budget: _Budget) -> None:
    if depth > MAX_DEPTH:
        raise Refusal(_TOO_DEEP, deepest=container)
    if budget.room < 0:
        raise _too_large(budget.limit)
    budget.nodes -= len(container) or 1
    if budget.nodes < 0:
        raise Refusal(_TOO_MANY, whole=True)


def _check_keys(container: dict[object, object], budget: _Budget) -> None:
    for key in container:
        if type(key) is not str:
            raise Refusal(f"has {article(key)} as a key; keys must be text")
        budget.room -= len(key)


def _check_number(value: object, advice: str) -> None:
    """Refuses a number that has no JSON text, and whatever is no number either."""
    if type(value) is int:
        if not INT64_MIN <= value <= INT64_MAX:
            raise Refusal(_NOT_INT64)
    elif type(value) is float:
        if not isfinite(value):
            raise Refusal(_NOT_FINITE)
    else:
        raise Refusal(f"is {article(value)}, which is not a JSON value{advice and '; '}{advice}")
