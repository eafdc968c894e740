"""Chapters as XHTML that both editions share: well-formed, everything escaped, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import assert_never

from outlast.demo.inline import plain, spans
from outlast.demo.markup import Aside, Block, Entry, Heading, Items, Literal, Note, Paragraph, Quote, Table, parse
from outlast.demo.topics import Chapter, Section

# What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VERSION = re.compile(r"(?:New|Added|Changed|Deprecated|Removed)\b[^.:]{0,60}\bversion \d[\d.]*\b[^:.]{0,40}[:.]")
_IN_CODE = re.compile(r"(?<=[\\xuU{])\*(\w+)\*")
_SPLIT_DEFAULT = re.compile(r"=- (?=\d)")
_ROMAN = re.compile(r"[IVX]+")
_LAST_LEVEL = 6


def text(value: str) -> str:
    """A value as character data or as an attribute in double quotes."""
    return escape(_FORBIDDEN.sub("\ufffd", value))


def chapter_id(number: int) -> str:
    """The anchor of a chapter."""
    return f"chapter-{number}"


def section_id(section: Section) -> str:
    """The anchor of a section."""
    return "topic-" + re.sub(r"[^A-Za-z0-9_-]", "-", section.name)


def title_text(section: Section) -> str:
    """The section's title without markup and not escaped."""
    return plain(section.title)


def title_html(section: Section) -> str:
    """The section's title with its code marked."""
    return _inline(section.title, _Citations(""))


def chapter_html(chapter: Chapter, *, level: int) -> str:
    """The chapter as one `section`, its title a heading of that level and its sections one below."""
    body = "\n".join(section_html(section, level=level + 1) for section in chapter.sections)
    title = f'<span class="number">Chapter {chapter.number}</span> {text(chapter.title)}'
    return (
        f'<section class="chapter" id="{chapter_id(chapter.number)}">\n'
        f'<h{level} class="chapter-title">{title}</h{level}>\n'
        f"{body}\n</section>"
    )


def section_html(section: Section, *, level: int) -> str:
    """The section with its footnotes at its end."""
    blocks = parse(section.text)
    notes = [block for block in blocks if isinstance(block, Note)]
    anchor = section_id(section)
    citations = _Citations(anchor, {note.number: place for place, note in enumerate(notes, 1)})
    inner = _blocks([block for block in blocks if not isinstance(block, Note)], citations, level)
    html = f'<section class="topic" id="{anchor}">\n<h{level}>{title_html(section)}</h{level}>\n{inner}'
    if notes:
        html += f'\n<aside class="notes">\n{_notes(notes, citations, level)}\n</aside>'
    return html + "\n</section>"


@dataclass(slots=True)
class _Citations:
    """The footnotes of one section: the numbers they are cited with, and those shown, which run from 1."""

    anchor: str
    shown: Mapping[str, int] = field(default_factory=dict[str, int])
    cited: set[str] = field(default_factory=set[str])

    def link(self, number: str) -> str:
        """The mark of a citation; nothing if the reference left the note on another page."""
        if number not in self.shown:
            return ""
        place = self.shown[number]
        # An id stands once in a document, and one way back is enough.
        own = "" if number in self.cited else f' id="{self.anchor}-cite-{place}"'
        self.cited.add(number)
        return f'<sup><a class="cite"{own} href="#{self.anchor}-note-{place}">{place}</a></sup>'


def _notes(notes: Iterable[Note], citations: _Citations, level: int) -> str:
    lines = ["<ol>"]
    for note in notes:
        place = citations.shown[note.number]
        body = _blocks(note.body, citations, level)
        back = f' <a class="back" href="#{citations.anchor}-cite-{place}">back</a>' if note.number in citations.cited else ""
        lines.append(f'<li id="{citations.anchor}-note-{place}">{body}{back}</li>')
    return "\n".join([*lines, "</ol>"])


def _blocks(blocks: Iterable[Block], citations: _Citations, level: int) -> str:
    """The blocks one after another, entries that follow each other in one list."""
    parts: list[str] = []
    in_list = False
    for block in blocks:
        if isinstance(block, Entry) != in_list:
            parts.append("</dl>" if in_list else "<dl>")
            in_list = not in_list
        parts.append(_block(block, citations, level))
    return "\n".join([*parts, "</dl>"] if in_list else parts)


def _block(block: Block, citations: _Citations, level: int) -> str:
    match block:
        case Heading():
            depth = min(level + block.level, _LAST_LEVEL)
            return f"<h{depth}>{_inline(block.text, citations)}</h{depth}>"
        case Paragraph():
            return _paragraph(block.text, citations)
        case Literal():
            return f"<pre><code>{text(block.text)}</code></pre>"
        case Items():
            return _items(block, citations, level)
        case Entry():
            return _entry(block, citations, level)
        case Aside():
            kind = "see" if block.kind == "See also" else block.kind.lower()
            body = _blocks(block.body, citations, level)
            return f'<aside class="{kind}">\n<p class="kind">{block.kind}</p>\n{body}\n</aside>'
        case Table():
            return _table(block, citations)
        case Note():
            return _blocks(block.body, citations, level)
        case Quote():
            inner = _blocks(block.body, citations, level)
            # A table or list in an indent is one for the text builder's sake only.
            return inner if isinstance(block.body[0], Table | Items | Aside) else f"<blockquote>\n{inner}\n</blockquote>"
        case _:
            assert_never(block)


def _paragraph(line: str, citations: _Citations) -> str:
    if match := _VERSION.match(line):
        return f'<p class="version"><em>{_inline(match[0], citations)}</em>{_inline(line[match.end() :], citations)}</p>'
    return f"<p>{_inline(line, citations)}</p>"


def _items(block: Items, citations: _Citations, level: int) -> str:
    lines: list[str] = []
    for item in block.items:
        if len(item) == 1 and isinstance(item[0], Paragraph):
            lines.append(f"<li>{_inline(item[0].text, citations)}</li>")
        else:
            lines.append(f"<li>{_blocks(item, citations, level)}</li>")
    inner = "\n".join(lines)
    if block.marker == "*":
        return f"<ul>\n{inner}\n</ul>"
    if block.marker.isdigit():
        start = f' start="{block.marker}"' if block.marker != "1" else ""
        return f"<ol{start}>\n{inner}\n</ol>"
    # Romans occur in two lists, which begin at I or go on at II after an interruption.
    kind = "I" if _ROMAN.fullmatch(block.marker) else "a"
    start = f' start="{len(block.marker)}"' if kind == "I" and set(block.marker) == {"I"} and block.marker != "I" else ""
    return f'<ol type="{kind}"{start}>\n{inner}\n</ol>'


def _entry(block: Entry, citations: _Citations, level: int) -> str:
    if block.is_code:
        # Old builders wrote a default of -1 as "=- 1".
        terms = [f"<dt><code>{text(_SPLIT_DEFAULT.sub('=-', term))}</code></dt>" for term in block.terms]
    else:
        terms = [f"<dt>{_inline(term, citations)}</dt>" for term in block.terms]
    return "\n".join([*terms, f"<dd>{_blocks(block.body, citations, level)}</dd>"])


def _table(block: Table, citations: _Citations) -> str:
    def row(cells: Sequence[Sequence[str]], tag: str) -> str:
        shown = ("<br/>".join(_inline(paragraph, citations) for paragraph in cell) for cell in cells)
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in shown) + "</tr>"

    head = ["<thead>", *(row(cells, "th") for cells in block.head), "</thead>"] if block.head else []
    body = ["<tbody>", *(row(cells, "td") for cells in block.rows), "</tbody>"]
    return "\n".join(['<div class="table"><table>', *head, *body, "</table></div>"])


def _inline(line: str, citations: _Citations) -> str:
    parts: list[str] = []
    for span in spans(line):
        if span.kind == "note":
            parts.append(citations.link(span.text))
        elif span.kind == "code":
            code = _IN_CODE.sub(r"<em>\1</em>", text(span.text))
            parts.append(f"<code>{code}</code>")
        else:
            # Two spaces after a full stop were for the terminal.
            inner = re.sub(r"\s+", " ", text(span.text))
            parts.append(inner if span.kind == "text" else f"<{span.kind}>{inner}</{span.kind}>")
    return "".join(parts)
