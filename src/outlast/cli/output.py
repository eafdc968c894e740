"""What people and programs read: tables, times and ages, JSON. Nothing that was stored can steer the terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import click

from outlast.domain.payload import clean

_MAX_CELL = 2_000
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def say(text: str = "") -> None:
    """One line on standard output."""
    click.echo(text)


def note(text: str) -> None:
    """One line on standard error: for people, out of the way of what programs read."""
    click.echo(text, err=True)


def say_json(value: object) -> None:
    """One JSON document on one line. Pure ASCII, so that no stored character reaches the terminal."""
    click.echo(json.dumps(value, default=_plain))


def counted(number: int, noun: str) -> str:
    """A number with its noun, which takes an s but for one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def safe(text: str) -> str:
    """Any text as one line without control characters."""
    return " ".join(clean(text, limit=_MAX_CELL).split())


def safe_lines(text: str) -> list[str]:
    """Any text as lines without control characters."""
    return clean(text, limit=10 * _MAX_CELL).expandtabs(4).split("\n")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[str] = ()) -> str:
    """Aligned columns, two blanks apart; the columns named in `numbers` to the right. A column without any value is left out."""
    kept = [n for n in range(len(headers)) if any(row[n] for row in rows)]
    cells = [[headers[n] for n in kept], *([safe(row[n]) for n in kept] for row in rows)]
    widths = [max(_width(line[n]) for line in cells) for n in range(len(kept))]
    lines: list[str] = []
    for line in cells:
        padded = [_pad(text, widths[n], right=headers[kept[n]] in numbers) for n, text in enumerate(line)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _pad(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def local(moment: datetime | None) -> str:
    """A time in this machine's zone, ISO 8601 to the second; empty for none."""
    return "" if moment is None else moment.astimezone().isoformat(timespec="seconds")


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, or in how long; empty for none."""
    if moment is None:
        return ""
    seconds = (now - moment).total_seconds()
    return f"in {age(-seconds)}" if seconds < 0 else f"{age(seconds)} ago"


def age(seconds: float | None) -> str:
    """A duration for people, in its two largest units; empty for none."""
    if seconds is None:
        return ""
    whole = max(int(seconds), 0)
    if whole >= _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole >= _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole >= _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    return f"{seconds:.1f}s" if 0 < seconds < 10 else f"{whole}s"  # noqa: PLR2004 - tenths matter below ten


def _two(whole: int, large: int, name: str, small: int, rest: str) -> str:
    left = whole % large // small
    return f"{whole // large}{name} {left}{rest}" if left else f"{whole // large}{name}"


def moment_of(ms: int | None) -> datetime | None:
    """A stored time as a datetime in UTC."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, tz=UTC)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON form here")
