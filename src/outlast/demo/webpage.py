"""The HTML edition: the whole book in one page that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence

from outlast.demo.atomic import write_whole
from outlast.demo.edition import Edition
from outlast.demo.render import chapter_html, chapter_id, section_id, text, title_html
from outlast.demo.styles import WEB_BOOK
from outlast.demo.topics import Chapter
from outlast.demo.word_index import IndexEntry, index_html


def write_html(
    chapters: Sequence[Chapter],
    path: str | os.PathLike[str],
    *,
    edition: Edition | None = None,
    index: Sequence[IndexEntry] = (),
) -> int:
    """Write the book whole and return its size. The same chapters give the same bytes."""
    return write_whole(path, html_page(chapters, edition=edition, index=index).encode())


def html_page(chapters: Sequence[Chapter], *, edition: Edition | None = None, index: Sequence[IndexEntry] = ()) -> str:
    """The book as well-formed HTML, light or dark as the reader prefers."""
    about = edition or Edition()
    body = "\n".join(chapter_html(chapter, level=2) for chapter in chapters)
    if index:
        entries = index_html(index, lambda number: f"#{chapter_id(number)}")
        body += f'\n<section class="index" id="index">\n<h2>Index</h2>\n{entries}\n</section>'
    return f"""<!DOCTYPE html>
<html lang="en" xml:lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>{text(about.title)}</title>
<style>
{WEB_BOOK}</style>
</head>
<body>
<header class="title">
<h1>{text(about.title)}</h1>
<p>{text(about.subtitle)}</p>
<p>{text(about.creator)}</p>
</header>
<div class="columns">
<nav id="contents" aria-label="Contents">
<h2>Contents</h2>
{_contents(chapters, has_index=bool(index))}
</nav>
<main>
{body}
</main>
</div>
<footer>{text(about.rights)}</footer>
</body>
</html>
"""


def _contents(chapters: Sequence[Chapter], *, has_index: bool) -> str:
    lines = ["<ol>"]
    for chapter in chapters:
        number = f'<span class="number">{chapter.number}</span>'
        lines.append(f'<li><a href="#{chapter_id(chapter.number)}">{number}{text(chapter.title)}</a>')
        lines.append("<ol>")
        lines += [f'<li><a href="#{section_id(section)}">{title_html(section)}</a></li>' for section in chapter.sections]
        lines.append("</ol></li>")
    if has_index:
        lines.append('<li><a href="#index">Index</a></li>')
    return "\n".join([*lines, "</ol>"])
