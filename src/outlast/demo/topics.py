"""The chapters of the book: which topics of the language reference stand in each, and their text.

Python ships its reference by topic, for `help("while")`, in `pydoc_data.topics`. Topics overlap: "compound" holds the
whole of "while", "if" and others. A book says everything once, so what is a topic of its own is cut out of the wider
one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from outlast.demo.markup import FOOTNOTES, UNDERLINES, is_underline

PER_CHAPTER = 8

_THEMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Names and Literals",
        ("identifiers", "id-classes", "strings", "numbers", "integers", "floating", "imaginary"),
    ),
    ("Objects, Values and Types", ("objects", "types")),
    (
        "Further Built-in Types",
        (
            "truth",
            "typesfunctions",
            "typesmethods",
            "typesmodules",
            "bltin-code-objects",
            "bltin-type-objects",
            "bltin-null-object",
            "bltin-ellipsis-object",
        ),
    ),
    ("Sequences and Mappings", ("typesseq", "typesseq-mutable", "typesmapping")),
    ("Strings and Their Methods", ("string-methods",)),
    ("Format Strings", ("formatstrings",)),
    ("The Execution Model", ("execmodel", "naming", "dynamic-features", "exceptions")),
    ("Special Methods", ("specialnames", "customization", "attribute-access", "specialattrs")),
    (
        "Emulating Built-in Types",
        ("callable-types", "sequence-types", "numeric-types", "context-managers"),
    ),
    ("Atoms and Displays", ("atom-identifiers", "atom-literals", "lists", "dict", "exprlists")),
    ("Primaries", ("attribute-references", "subscriptions", "slicings", "calls", "await")),
    ("Operators", ("conversions", "power", "unary", "binary", "shifting", "bitwise")),
    (
        "Comparisons and Conditions",
        ("comparisons", "in", "booleans", "lambda", "operator-summary"),
    ),
    ("Binding and Checking", ("assignment", "augassign", "del", "assert", "pass")),
    ("Leaving and Yielding", ("return", "yield", "raise", "break", "continue")),
    ("Imports and Scopes", ("import", "global", "nonlocal")),
    ("Compound Statements", ("compound", "if", "while", "for", "try", "with")),
    ("Functions, Classes and Coroutines", ("function", "class", "async")),
    ("The Debugger", ("debugger",)),
)
_REST = "Further Topics"

# Where the footnotes stand that a topic cites: those of a page of the reference came with its last topic.
_NOTES_OF = {
    "binary": "operator-summary",
    "comparisons": "operator-summary",
    "try": "compound",
    "with": "compound",
    "function": "compound",
    "class": "compound",
    "naming": "execmodel",
    "dynamic-features": "execmodel",
}

_CITED = re.compile(r"""(?<=[\w.,)"\u201d*])\s+\[(\d+)\]""")


@dataclass(frozen=True, slots=True)
class ChapterSpec:
    """One chapter to make: its number from 1, its title, and the names of its topics in reading order."""

    number: int
    title: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One topic: its name in pydoc, its title and its text below the title, both with their inline marks."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """The text of one chapter; as JSON it takes some 6 to 65 kB."""

    number: int
    title: str
    sections: tuple[Section, ...]


def reference() -> Mapping[str, str]:
    """The topics of the Python that runs, by name."""
    # Half a megabyte of strings, wanted by those who make a book only.
    from pydoc_data.topics import topics

    return topics


def chapter_plan(per_chapter: int = PER_CHAPTER, *, source: Mapping[str, str] | None = None) -> tuple[ChapterSpec, ...]:
    """All topics by theme, 19 chapters in reading order, the same for every call.

    A theme of more than `per_chapter` topics becomes several chapters. Topics that this library does not know, as a
    newer Python may have, come last.
    """
    if per_chapter < 1:
        raise ValueError(f"A chapter needs room for at least one topic, and per_chapter is {per_chapter}.")
    topics = reference() if source is None else source
    plan: list[ChapterSpec] = []
    for title, names in (*_THEMES, (_REST, _others(topics))):
        known = [name for name in names if name in topics]
        parts = [tuple(known[at : at + per_chapter]) for at in range(0, len(known), per_chapter)]
        for part, members in enumerate(parts, 1):
            suffix = f" ({part} of {len(parts)})" if len(parts) > 1 else ""
            plan.append(ChapterSpec(len(plan) + 1, title + suffix, members))
    return tuple(plan)


def collect(spec: ChapterSpec, *, source: Mapping[str, str] | None = None) -> Chapter:
    """The chapter's text, without what other topics say and with the footnotes that it cites.

    KeyError if this Python has no such topic.
    """
    topics = reference() if source is None else source
    return Chapter(spec.number, spec.title, tuple(_section(name, topics) for name in spec.topics))


def words(text: str) -> int:
    """How many words a text has, for counts shown to readers."""
    return len(re.findall(r"\w+(?:['\u2019.-]\w+)*", text))


def _others(topics: Mapping[str, str]) -> tuple[str, ...]:
    """Topics without a theme, except twins of one that has its place: "else" is "if" under another name."""
    placed = {name for _, names in _THEMES for name in names}
    said = {_gist(topics[name]) for name in placed if name in topics}
    return tuple(name for name in sorted(topics) if name not in placed and _gist(topics[name]) not in said)


@lru_cache(maxsize=512)
def _gist(text: str) -> str:
    """The words of a topic or of a part of one, whatever its titles are underlined with, without its footnotes."""
    lines = text.partition(FOOTNOTES)[0].split("\n")
    return " ".join(" ".join(line for line in lines if not re.fullmatch(r"([*=~^-])\1*", line)).split())


def _section(name: str, topics: Mapping[str, str]) -> Section:
    title, body = _titled(topics[name], fallback=name)
    elsewhere = frozenset(_gist(text) for other, text in topics.items() if other != name) - {_gist(topics[name])}
    body, _, notes = body.partition(FOOTNOTES)
    body = _without(body, elsewhere)
    if name in _NOTES_OF:
        notes = topics.get(_NOTES_OF[name], "").partition(FOOTNOTES)[2]
    cited = set(_CITED.findall(body))
    kept = [note.rstrip() for number, note in _notes(notes) if number in cited]
    return Section(name, title, "\n\n".join([body.strip("\n"), *([FOOTNOTES, *kept] if kept else [])]))


def _titled(text: str, *, fallback: str) -> tuple[str, str]:
    title, _, rest = text.lstrip("\n").partition("\n")
    underline, _, body = rest.partition("\n")
    return (title, body) if is_underline(underline, title) else (fallback, text)


def _without(body: str, elsewhere: frozenset[str]) -> str:
    """The body less each titled part, with the parts below it, that is a whole topic elsewhere."""
    lines = body.split("\n")
    heads = [
        (at, UNDERLINES.index(lines[at + 1][0]))
        for at in range(len(lines) - 1)
        if lines[at] and not lines[at][0].isspace() and is_underline(lines[at + 1], lines[at])
    ]
    kept: list[str] = []
    done = 0
    for place, (start, level) in enumerate(heads):
        end = next((at for at, other in heads[place + 1 :] if other <= level), len(lines))
        if start >= done and _gist("\n".join(lines[start:end])) in elsewhere:
            kept += lines[done:start]
            done = end
    return "\n".join(kept + lines[done:])


def _notes(text: str) -> Sequence[tuple[str, str]]:
    """Footnotes by number, each with its mark."""
    parts = re.split(r"^(?=\[(\d+)\] )", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))
