"""The index at the back of the book: telling words, how often they occur, and in which chapters."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from outlast.demo.atomic import write_whole
from outlast.demo.common_words import COMMON_WORDS
from outlast.demo.markup import Block, Entry, Heading, Items, Literal, Paragraph, Table, parse
from outlast.demo.render import text
from outlast.demo.styles import INDEX, WEB
from outlast.demo.topics import Chapter

TOP = 300

_WORD = re.compile(r"[A-Za-z_][\w]*(?:[.-][A-Za-z_]\w*)*")
_LEAST = 3
# A word of nearly every chapter tells nothing, unless there are only a few of them.
_EVERYWHERE = 0.8
_FEW = 4


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A word, how often the book's prose has it, and the numbers of the chapters with it."""

    word: str
    count: int
    chapters: tuple[int, ...]


def index_words(chapters: Sequence[Chapter], *, top: int = TOP) -> tuple[IndexEntry, ...]:
    """The `top` most telling words in alphabetical order: frequent ones, less so the more chapters have them.

    Spellings that differ in capitals, and plurals, count as one word. Examples of code are left out.
    """
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    places: defaultdict[str, set[int]] = defaultdict(set)
    for chapter in chapters:
        for section in chapter.sections:
            for line in itertools.chain((section.title,), _prose(parse(section.text))):
                for word in _WORD.findall(line):
                    key = word.lower()
                    if len(key) >= _LEAST and key not in COMMON_WORDS:
                        spellings[key][word] += 1
                        places[key].add(chapter.number)
    _fold_plurals(spellings, places)
    found = [
        IndexEntry(_spelling(written), written.total(), tuple(sorted(places[key])))
        for key, written in spellings.items()
        if written.total() >= _LEAST and len(places[key]) <= max(_FEW, _EVERYWHERE * len(chapters))
    ]
    telling = sorted(found, key=lambda entry: (-_weight(entry, len(chapters)), entry.word))[: max(top, 0)]
    return tuple(sorted(telling, key=_alphabetical))


def index_html(entries: Iterable[IndexEntry], href: Callable[[int], str]) -> str:
    """The entries by initial letter, each with links to its chapters."""
    lines = ['<div class="entries">']
    for initial, group in itertools.groupby(entries, _initial):
        lines += [f"<h3>{initial}</h3>", "<ul>"]
        for entry in group:
            links = ", ".join(f'<a href="{text(href(number))}">{number}</a>' for number in entry.chapters)
            lines.append(f"<li>{text(entry.word)} <span>({entry.count})</span> {links}</li>")
        lines.append("</ul>")
    return "\n".join([*lines, "</div>"])


def write_index(entries: Sequence[IndexEntry], path: str | os.PathLike[str], *, book: str = "book.html") -> int:
    """Write the index whole and return its size: JSON if the name ends so, else an HTML page with links into `book`."""
    if Path(path).suffix == ".json":
        return write_whole(path, (json.dumps([asdict(entry) for entry in entries], indent=1) + "\n").encode())
    body = index_html(entries, lambda number: f"{book}#chapter-{number}")
    page = f"""<!DOCTYPE html>
<html lang="en" xml:lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>Index</title>
<style>
{WEB}{INDEX}</style>
</head>
<body>
<main>
<section class="index" id="index">
<h2>Index</h2>
<p>Numbers in brackets count the occurrences; the others are chapters.</p>
{body}
</section>
</main>
</body>
</html>
"""
    return write_whole(path, page.encode())


def _prose(blocks: Iterable[Block]) -> Iterator[str]:
    """All lines of prose and signatures, without blocks of code."""
    for block in blocks:
        match block:
            case Heading() | Paragraph():
                yield block.text
            case Literal():
                pass
            case Entry():
                yield from block.terms
                yield from _prose(block.body)
            case Items():
                for item in block.items:
                    yield from _prose(item)
            case Table():
                for cells in block.rows:
                    yield from itertools.chain.from_iterable(cells)
            case _:
                yield from _prose(block.body)


def _fold_plurals(spellings: dict[str, Counter[str]], places: dict[str, set[int]]) -> None:
    """Count "objects" with "object", wherever the singular occurs too."""
    for key in sorted(spellings):
        for ending, instead in (("sses", "ss"), ("ies", "y"), ("s", "")):
            singular = key.removesuffix(ending) + instead
            if key.endswith(ending) and not key.endswith("ss") and len(singular) >= _LEAST and singular in spellings:
                written = spellings.pop(key)
                for word, count in written.items():
                    spellings[singular][word[: -len(ending)] + instead] += count
                places[singular] |= places.pop(key)
                break


def _spelling(written: Counter[str]) -> str:
    """The commonest spelling, in lower case if that occurs at least half as often as another."""
    word, count = min(written.items(), key=lambda item: (-item[1], item[0]))
    return word.lower() if written[word.lower()] * 2 >= count else word


def _weight(entry: IndexEntry, chapters: int) -> float:
    return entry.count * math.log((chapters + 1) / len(entry.chapters))


def _initial(entry: IndexEntry) -> str:
    return entry.word.lstrip("_.")[:1].upper()


def _alphabetical(entry: IndexEntry) -> tuple[str, str]:
    return (entry.word.lstrip("_.").lower(), entry.word)
