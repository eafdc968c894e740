"""Prose of the reference cut into spans: code, emphasis, citations and plain text.

Code is between straight quotes, which the text builder made of the ``double backquotes`` of the source. It may itself
hold quotes and brackets, so where it ends is judged by what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "code", "em", "strong", "note"]


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text of one kind; of a note, its number."""

    kind: Kind
    text: str


_OPENS_AFTER = re.compile(r"(?:^|[\s(\[{/\u2018\u201c\u201d\u2026\u2013\u2014\u2019,.:=-])$")
_CLOSES_BEFORE = re.compile(r"$|[\s.,;:!?)\]}/\u2019\u201d\u201c\u2026\u2013\u2014<-]|s?(?:$|[\s.,;:)\u2019])")
_MARKED = re.compile(
    r"""
      ``(?P<code>[^`]+)``
    | (?<![\w*])\*\*(?=[^\s*])(?P<strong>[^*]{1,240}?)(?<=[^\s*])\*\*(?![\w*])
    | (?<![\w*])\*(?=[^\s*])(?P<em>[^*]{1,240}?)(?<=[^\s*])\*(?!\*|\w{3})
    | (?<=[\w.,)"\u201d\u2019*])\s+\[(?P<note>\d{1,2})\](?!\w)
    """,
    re.VERBOSE,
)
_EMPTY_FIRST = re.compile(r'"""[^"]+"[^"]*""(?!")')
_KINDS: Mapping[str, Kind] = {"code": "code", "em": "em", "strong": "strong", "note": "note"}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_LONGEST_CODE = 240


def spans(text: str) -> Iterator[Span]:
    """The spans of one paragraph, in order."""
    plain = 0
    at = text.find('"')
    while at >= 0:
        end = _code_end(text, at)
        if end is None:
            at = text.find('"', at + 1)
            continue
        yield from _marked(text[plain:at])
        yield Span("code", text[at + 1 : end])
        plain = end + 1
        at = text.find('"', plain)
    yield from _marked(text[plain:])


def plain(text: str) -> str:
    """The paragraph without its marks, for where there is no markup, as in a table of contents."""
    return "".join(span.text for span in spans(text) if span.kind != "note")


def _code_end(text: str, start: int) -> int | None:
    """Where the quote opened at `start` closes, if it opens code at all."""
    if not _OPENS_AFTER.search(text[max(0, start - 1) : start]):
        return None
    if match := _EMPTY_FIRST.match(text, start):
        return match.end() - 1
    if text.startswith('"""', start) and _CLOSES_BEFORE.match(text, start + 3):
        return start + 2  # a quote, quoted
    first: int | None = None
    end = text.find('"', start + 2)
    while 0 <= end <= start + _LONGEST_CODE:
        if _CLOSES_BEFORE.match(text, end + 1):
            code = text[start + 1 : end]
            # A sign by itself, as the "{" of a format, need not be closed.
            if _is_balanced(code) or not re.search(r"\w", code):
                return end
            first = end if first is None else first
        end = text.find('"', end + 1)
    return first


def _is_balanced(code: str) -> bool:
    still_open: list[str] = []
    for sign in code:
        if sign in "([{":
            still_open.append(sign)
        elif sign in _PAIRS and (not still_open or still_open.pop() != _PAIRS[sign]):
            return False
    return not still_open and code.count('"') % 2 == 0


def _marked(text: str) -> Iterator[Span]:
    at = 0
    for match in _MARKED.finditer(text):
        if match.start() > at:
            yield Span("text", text[at : match.start()])
        yield Span(_KINDS[match.lastgroup or ""], match[match.lastgroup or ""])
        at = match.end()
    if at < len(text):
        yield Span("text", text[at:])
