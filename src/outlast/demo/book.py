"""Making a book of the language reference that every Python carries: all that the demo's tasks call.

    specs = chapter_plan()                       19 small values, one a chapter
    chapters = [collect(spec) for spec in specs] the text, 6 to 65 kB a chapter as JSON
    index = index_words(chapters)
    write_html(chapters, "book.html", index=index)
    write_epub(chapters, "book.epub", draw_cover(edition.title, edition.subtitle), index=index)
    check_epub("book.epub")

Everything is a function of its arguments, and files appear whole or not at all, so that any of it may be repeated at
any time.
"""

from __future__ import annotations

from outlast.demo.atomic import write_whole
from outlast.demo.cover import draw_cover
from outlast.demo.edition import Edition
from outlast.demo.epub import UNDATED, write_epub
from outlast.demo.epub_check import EpubReport, check_epub
from outlast.demo.topics import Chapter, ChapterSpec, Section, chapter_plan, collect, words
from outlast.demo.webpage import write_html
from outlast.demo.word_index import IndexEntry, index_words, write_index

__all__ = [
    "UNDATED",
    "Chapter",
    "ChapterSpec",
    "Edition",
    "EpubReport",
    "IndexEntry",
    "Section",
    "chapter_plan",
    "check_epub",
    "collect",
    "draw_cover",
    "index_words",
    "words",
    "write_epub",
    "write_html",
    "write_index",
    "write_whole",
]
