"""Why a payload is refused and where: what the domain raises inside, until it becomes an Invalid for the caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from outlast.domain.errors import Invalid

_POINTER_PART: Final = 100
_TYPE_NAME: Final = 80
_PROBLEMS: Final = 10


class Refusal(Exception):
    """Why a value is refused, and where. Inside the domain only: it becomes an Invalid where the value came in.

    `path` is filled from the place upwards, while the exception passes the containers around it. whole: it is no single
    place's fault. deepest: the container that is one too deep; met again further up, it contains itself.
    """

    def __init__(self, reason: str, *, whole: bool = False, deepest: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[object] = []
        self._whole = whole
        self._deepest = deepest

    def inside(self, part: object, container: object) -> None:
        """Notes that it passed `part` of `container`."""
        self.path.append(part)
        if self._deepest is container:
            self.reason = "contains itself"
            self.path.clear()

    def invalid(self, what: str, *, code: str | None = None) -> Invalid:
        """The refusal for the caller."""
        if self._whole:
            return Invalid(f"The {what} {self.reason}.", code=code, pointers=("",))
        place = pointer(reversed(self.path))
        at = f"at {place} " if place else ""
        return Invalid(f"The {what} {at}{self.reason}.", code=code, pointers=(place,))


def pointer(path: Iterable[object]) -> str:
    """The JSON pointer (RFC 6901) of a path of keys and indexes.

    It ends above the first key that is too long or not printable: still true, of a larger place, and safe to show.
    """
    parts: list[str] = []
    for part in path:
        text = part if isinstance(part, str) else str(part) if isinstance(part, int) else ""
        if not text.isprintable() or len(text) > _POINTER_PART or not isinstance(part, str | int):
            break
        parts.append("/" + text.replace("~", "~0").replace("/", "~1"))
    return "".join(parts)


def article(value: object) -> str:
    """The name of a value's type with its article, safe to show."""
    name = type(value).__name__[:_TYPE_NAME]
    if not name.isprintable():
        return "an object"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a value from being of a type: where, and what."""

    path: tuple[object, ...]
    reason: str


class Misfit(Exception):
    """A value is not of the type that it should be. Inside the domain only, as Refusal."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self.problems = problems[:_PROBLEMS]

    def invalid(self, what: str, type_name: str) -> Invalid:
        """The misfit for the caller."""
        places = [pointer(problem.path) for problem in self.problems]
        said = [f"{place}: {p.reason}" if place else p.reason for place, p in zip(places, self.problems, strict=True)]
        return Invalid(f"The {what} does not fit {type_name}: {'; '.join(said)}.", pointers=tuple(dict.fromkeys(places)))
