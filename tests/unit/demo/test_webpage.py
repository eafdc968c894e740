from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from outlast.demo.edition import Edition
from outlast.demo.topics import Chapter
from outlast.demo.webpage import write_html
from outlast.demo.word_index import index_words

XHTML = "{http://www.w3.org/1999/xhtml}"


def page(path: Path) -> ET.Element:
    return ET.fromstring(path.read_bytes())


def test_the_whole_book_is_one_well_formed_page_whose_links_arrive(tmp_path: Path, reference_book: tuple[Chapter, ...]) -> None:
    size = write_html(reference_book, tmp_path / "book.html", index=index_words(reference_book))
    assert size == (tmp_path / "book.html").stat().st_size > 300_000
    root = page(tmp_path / "book.html")
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    links = [link.get("href", "") for link in root.iter(f"{XHTML}a")]
    assert len(ids) == len(set(ids))
    assert {link[0] for link in links} == {"#"}
    assert {link[1:] for link in links} <= set(ids)
    assert len(root.findall(f".//{XHTML}h2[@class='chapter-title']")) == len(reference_book)


def test_nothing_is_loaded(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    write_html(chapters, tmp_path / "book.html")
    html = (tmp_path / "book.html").read_text("utf-8")
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import|<script|<link|<iframe", html)
    assert "prefers-color-scheme: dark" in html
    assert '<meta charset="utf-8"/>' in html


def test_contents_name_chapters_and_sections(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    write_html(chapters, tmp_path / "book.html", edition=Edition(title="A < B", subtitle="Sub"))
    root = page(tmp_path / "book.html")
    contents = root.find(f".//{XHTML}nav")
    assert contents is not None
    assert " ".join("".join(contents.itertext()).split()) == "Contents 1Loops & More The while statement 2Names Naming"
    assert root.findtext(f".//{XHTML}title") == "A < B"


def test_the_same_chapters_give_the_same_bytes(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    write_html(chapters, tmp_path / "one.html")
    write_html(list(chapters), tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_no_chapters_make_an_empty_book(tmp_path: Path) -> None:
    write_html([], tmp_path / "book.html")
    page(tmp_path / "book.html")
