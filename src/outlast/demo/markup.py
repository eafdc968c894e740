"""The plain text of the language reference, read back into blocks.

The topics are what Sphinx's text builder made of reStructuredText: underlined titles, blocks told apart by their
indent, tables drawn with dashes. The builder threw away which indented block was code and which was prose, so that is
judged by the look of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

UNDERLINES = '*=-~^"+#'
"""The characters that underline a title, from the topic's own down."""

FOOTNOTES = "-[ Footnotes ]-"


@dataclass(frozen=True, slots=True)
class Heading:
    """A title inside a topic; level 1 is the first below the topic's own."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Prose on one line, its inline marks still in it."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """Code, grammar or a session, line by line as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list. `marker` is that of its first item: `*`, or a number such as `3` or `II`."""

    marker: str
    items: tuple[tuple[Block, ...], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something described: terms of prose, or signatures of code, with what is said of them."""

    terms: tuple[str, ...]
    is_code: bool
    body: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Aside:
    """A note, a warning or a "see also"."""

    kind: str
    body: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Cells row by row; a cell is its paragraphs."""

    head: tuple[tuple[tuple[str, ...], ...], ...]
    rows: tuple[tuple[tuple[str, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A footnote, by the number it is cited with."""

    number: str
    body: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """Indented prose."""

    body: tuple[Block, ...]


Block: TypeAlias = Heading | Paragraph | Literal | Items | Entry | Aside | Table | Note | Quote

_ITEM = re.compile(r"(?P<marker>\*|\d+\.|[IVX]+\.|[a-h]\.)(?P<gap> +)(?=\S)")
_NOTE = re.compile(r"\[(?P<number>\d+)\](?P<gap> +)(?=\S)")
_ASIDE = re.compile(r"(?P<kind>Note|Warning|Caution|Important|Attention|Danger|Hint|Tip|See also):(?P<rest>$| .*)")
_VERSION = re.compile(r"(?:New|Added|Changed|Deprecated|Removed)\b[^.:]*\bversion \d")
_CALLABLE = re.compile(r"(?:(?:async|class|classmethod|staticmethod|exception|method) )*[\w.]+\(.*\)(?: (?:->|→) .+)?")
_RULE = re.compile(r"[=*-]{20,}")
_HYPHENATED = re.compile(r"(?<=\w)-$")
_CODE_SIGNS = re.compile(r"::=| = |\s# |^(?:>>>|\.\.\.|def |class |import |from \w+ import |#)|[{}]|\w\(\w*\):?$")
_PLAIN = re.compile(r"[A-Z][\w\s*\u2019,-]+")


def parse(text: str) -> tuple[Block, ...]:
    """The blocks of a topic's body, or of any part of it."""
    return tuple(_blocks(text.expandtabs().split("\n")))


def is_underline(line: str, title: str) -> bool:
    """Whether `line` underlines `title`: one sign over, as long as the title."""
    return len(line) >= 1 and line[0] in UNDERLINES and line == line[0] * len(line) and len(line) == len(title)


def joined(lines: Sequence[str]) -> str:
    """Wrapped lines as one, words that were broken at their hyphen put together again."""
    text = ""
    for line in (line.strip() for line in lines):
        # "built-\nin" is one word, while "left-\nor right-hand" is two.
        glued = not text or (_HYPHENATED.search(text) and not re.match(r"(?:and|or|to)\b", line))
        text += line if glued else f" {line}"
    return text


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedented(lines: Sequence[str]) -> list[str]:
    """Without the indent that all lines share, and without blank lines at either end."""
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    cut = [line[margin:].rstrip() for line in lines]
    while cut and not cut[-1]:
        cut.pop()
    while cut and not cut[0]:
        cut.pop(0)
    return cut


def _chunk(lines: Sequence[str], start: int) -> int:
    """Where the indented lines that begin at `start` end: at the next line without an indent."""
    end = start
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end])):
        end += 1
    return end


def _paragraph(lines: Sequence[str], start: int) -> int:
    end = start
    while end < len(lines) and lines[end].strip() and not _indent(lines[end]):
        end += 1
    return end


def _next_text(lines: Sequence[str], start: int) -> int:
    while start < len(lines) and not lines[start].strip():
        start += 1
    return start


def _blocks(lines: Sequence[str]) -> list[Block]:
    found: list[Block] = []
    at = _next_text(lines, 0)
    while at < len(lines):
        block, at = _block(lines, at)
        if block is not None:
            _append(found, block)
        at = _next_text(lines, at)
    return found


def _append(found: list[Block], block: Block) -> None:
    """Add a block; a further item goes to the list before it."""
    last = found[-1] if found else None
    if isinstance(block, Items) and isinstance(last, Items) and _numbering(block) == _numbering(last):
        found[-1] = Items(last.marker, last.items + block.items)
    else:
        found.append(block)


def _numbering(block: Items) -> str:
    if block.marker.isdigit():
        return "1"
    return block.marker if block.marker == "*" else "I" if block.marker.isupper() else "a"


def _block(lines: Sequence[str], at: int) -> tuple[Block | None, int]:
    """The block that begins at a line with text, and where it ends; None for what a book does not show."""
    line = lines[at]
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if _indent(line):
        end = _chunk(lines, at)
        return _indented(_dedented(lines[at:end])), end
    if is_underline(following, line):
        return Heading(UNDERLINES.index(following[0]), line), at + 2
    if line == FOOTNOTES or _RULE.fullmatch(line):
        return None, at + 1
    if line.startswith("+-"):
        end = _paragraph(lines, at)
        return _table(lines[at:end]), end
    if line.startswith(">>> "):
        end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
        return Literal("\n".join(lines[at:end])), end
    # A wrapped line without an indent shows that "I. " only opens a paragraph.
    hangs = not following.strip() or _indent(following) > 0 or bool(_ITEM.match(following) or _NOTE.match(following))
    if hangs and (match := _ITEM.match(line) or _NOTE.match(line)):
        return _hanging(match, lines, at)
    if match := _ASIDE.match(line):
        return _aside(match, lines, at)
    return _prose(lines, at)


def _hanging(match: re.Match[str], lines: Sequence[str], at: int) -> tuple[Block, int]:
    """One item of a list, or one footnote."""
    end = _chunk(lines, at + 1)
    body = tuple(_blocks(_dedented([" " * match.end() + lines[at][match.end() :], *lines[at + 1 : end]])))
    if match.re is _NOTE:
        return Note(match["number"], body), end
    return Items(match["marker"].rstrip("."), (body,)), end


def _aside(match: re.Match[str], lines: Sequence[str], at: int) -> tuple[Block, int]:
    if match["rest"].strip():
        end = _paragraph(lines, at)
        return Aside(match["kind"], (Paragraph(joined([match["rest"], *lines[at + 1 : end]])),)), end
    end = _chunk(lines, at + 1)
    return Aside(match["kind"], tuple(_blocks(_dedented(lines[at + 1 : end])))), end


def _prose(lines: Sequence[str], at: int) -> tuple[Block, int]:
    """A paragraph, a term with its definition, or signatures with their description."""
    end = _paragraph(lines, at)
    own = lines[at:end]
    if end < len(lines) and _indent(lines[end]):
        stop = _chunk(lines, end)
        return Entry((joined(own),), is_code=False, body=tuple(_blocks(_dedented(lines[end:stop])))), stop
    below = _next_text(lines, end)
    stop = _chunk(lines, below) if below < len(lines) and _indent(lines[below]) else below
    body = _dedented(lines[below:stop])
    if all(_CALLABLE.fullmatch(line) for line in own) or (_is_signature(own) and _is_prose(body)):
        return Entry(tuple(own), is_code=True, body=tuple(_blocks(body))), stop
    return Paragraph(joined(own)), end


def _is_signature(lines: Sequence[str]) -> bool:
    """Such as `d[key] = value` or `h(elp) [command]`, of which only the description below tells."""
    return all(line[-1] not in ".:,;" and not _VERSION.match(line) for line in lines)


def _indented(lines: list[str]) -> Block:
    first = lines[0]
    is_term = len(lines) > 1 and first.startswith('"') and first.endswith('"') and _indent(lines[1]) and _is_prose(lines[1:])
    opens_block = first.startswith("+-") or _ITEM.match(first) or _ASIDE.match(first) or _VERSION.match(first)
    if is_term or opens_block or _is_prose(lines):
        return Quote(tuple(_blocks(lines)))
    return Literal("\n".join(_aligned(lines)))


def _aligned(lines: Sequence[str]) -> list[str]:
    """Grammar with the further lines of a rule below its first, where some builders put them anywhere."""
    column = 0
    shift: int | None = None
    aligned: list[str] = []
    for line in lines:
        if "::= " in line:
            column, shift = line.index("::= ") + len("::= "), None
        elif column and line:
            shift = column - _indent(line) if shift is None else shift
            aligned.append(" " * max(_indent(line) + shift, 0) + line.lstrip())
            continue
        aligned.append(line)
    return aligned


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether the first paragraph reads as a sentence: it opens and closes like one and, outside quotes, is no code."""
    if not lines:
        return False
    text = joined(_dedented(lines)[: _paragraph(_dedented(lines), 0)])
    if _ASIDE.match(text) or _VERSION.match(text):
        return True
    plain = re.sub(r'"[^"]*"', "x", text)
    words = re.findall(r"(?<![\w.])[a-z]+(?![\w(.=])", plain)
    opens_and_closes = (re.match(r'[A-Z"\u201c\u2018*]', text) and text[-1] in '.:)"') or _PLAIN.fullmatch(text)
    return bool(opens_and_closes and words and not _CODE_SIGNS.search(plain))


def _table(lines: Sequence[str]) -> Table:
    """A table drawn with + - | and, below its head, =. In the reference its columns go all the way down."""
    edges = [i for i, sign in enumerate(lines[0]) if sign == "+"]
    head: list[tuple[tuple[str, ...], ...]] = []
    rows: list[tuple[tuple[str, ...], ...]] = []
    columns: list[list[str]] = [[] for _ in edges[1:]]
    for line in lines[1:]:
        if set(line) <= set("+-|="):
            rows.append(tuple(_cell(column) for column in columns))
            columns = [[] for _ in edges[1:]]
            if "=" in line:
                head, rows = rows, []
            continue
        for column, left, right in zip(columns, edges, edges[1:], strict=False):
            column.append(line[left + 1 : right].strip())
    return Table(tuple(head), tuple(rows))


def _cell(lines: Sequence[str]) -> tuple[str, ...]:
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return tuple(joined(paragraph.split("\n")) for paragraph in paragraphs if paragraph)
