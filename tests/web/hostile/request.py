"""What a hostile request is: plain data, with names in braces for what only a running application knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

MARKER: Final = "MARKER-5ad1e"
"""Planted in what is sent; no answer may repeat it."""
VERSION: Final = 1_234_567
"""A version of a kind, planted likewise."""

Fields = Iterable[tuple[str, str | bytes]]
Body = bytes | Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Hostile:
    """A request and what must come of it. In target and header values a name in braces stands for an id, cursor or tag."""

    why: str
    method: str
    target: str
    wanted: tuple[int, ...]
    headers: tuple[tuple[str, str | bytes], ...] = ()
    body: Body = b""
    who: str | None = "acme:ann"
    codes: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        """The body, which large ones make when they are sent."""
        return self.body if isinstance(self.body, bytes) else self.body()

    def pairs(self, names: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        """The headers, but the one that signs in."""
        return [(name.lower().encode(), _filled(value, names)) for name, value in self.headers]

    def address(self, names: Mapping[str, str]) -> str:
        """The target."""
        return _filled(self.target, names).decode("latin-1")


def _filled(text: str | bytes, names: Mapping[str, str]) -> bytes:
    found = text if isinstance(text, bytes) else text.encode("latin-1")
    for name, value in names.items():
        found = found.replace(b"{%s}" % name.encode(), value.encode())
    return found


def statuses(wanted: int | tuple[int, ...]) -> tuple[int, ...]:
    """One or several."""
    return wanted if isinstance(wanted, tuple) else (wanted,)


def get(why: str, target: str, wanted: int | tuple[int, ...], *codes: str, headers: Fields = (), who: str | None = "acme:ann") -> Hostile:
    """A GET."""
    return Hostile(why, "GET", target, statuses(wanted), tuple(headers), who=who, codes=codes)


def submit(
    why: str,
    body: Body | Mapping[str, Any],
    wanted: int | tuple[int, ...],
    *codes: str,
    headers: Fields = (),
    key: str | bytes | None = "k",
    media_type: str | None = "application/json",
    who: str | None = "acme:ann",
) -> Hostile:
    """A POST of a job: a whole body, or its members."""
    return post(why, "/v1/jobs", body, wanted, *codes, headers=headers, key=key, media_type=media_type, who=who)


def post(
    why: str,
    target: str,
    body: Body | Mapping[str, Any],
    wanted: int | tuple[int, ...],
    *codes: str,
    headers: Fields = (),
    key: str | bytes | None = None,
    media_type: str | None = "application/json",
    who: str | None = "acme:ann",
) -> Hostile:
    """A POST anywhere."""
    fields: list[tuple[str, str | bytes]] = [*headers]
    if key is not None:
        fields.append(("Idempotency-Key", key))
    if media_type is not None:
        fields.append(("Content-Type", media_type))
    content = msgspec.json.encode(body) if isinstance(body, Mapping) else body
    return Hostile(why, "POST", target, statuses(wanted), tuple(fields), content, who, codes)


GOOD: Final[Mapping[str, Any]] = {"kind": "note", "input": {"text": MARKER}}
"""A submit with which nothing is wrong."""


def good(**members: Any) -> dict[str, Any]:
    """It, with other members."""
    return {**GOOD, **members}


def note(**members: Any) -> dict[str, Any]:
    """It, with other members of its input."""
    return good(input={"text": MARKER, **members})
