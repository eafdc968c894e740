from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from outlast.demo.topics import Chapter, Section
from outlast.demo.word_index import IndexEntry, index_words, write_index


def chapter(number: int, text: str) -> Chapter:
    return Chapter(number, f"Chapter {number}", (Section(f"s{number}", "", text),))


def test_counts_words_with_their_chapters() -> None:
    book = [chapter(1, 'A "__dict__" of iterators.\nIterators iterate.'), chapter(2, "Another ITERATOR, __dict__!")]
    assert index_words([*book, chapter(3, 'The "__dict__" only.')]) == (
        IndexEntry("__dict__", 3, (1, 2, 3)),
        IndexEntry("iterator", 3, (1, 2)),
    )


def test_plurals_and_capitals_are_one_word() -> None:
    text = "classes class Class Dictionaries dictionary dictionary TypeError TypeErrors TypeError pass pass pass"
    words = {entry.word: entry.count for entry in index_words([chapter(1, text)])}
    assert words == {"class": 3, "dictionary": 3, "TypeError": 3, "pass": 3}


def test_code_blocks_and_common_words_do_not_count() -> None:
    text = "Spam this:\n\n   spam = spam + spam\n\nThe the the which which which and so x x x."
    assert index_words([chapter(1, text)]) == ()


def test_prose_is_read_wherever_it_stands() -> None:
    text = "* zeta\n\nNote:\n\n  zeta\n\n+------+\n| zeta |\n+------+\n\nzeta(a)\n\n   Zeta it is."
    assert index_words([chapter(1, text)]) == (IndexEntry("zeta", 5, (1,)),)


def test_what_is_everywhere_tells_nothing() -> None:
    book = [chapter(number, "apple apple banana" if number == 1 else "apple apple") for number in range(1, 7)]
    book.append(chapter(7, "banana banana"))
    assert [entry.word for entry in index_words(book)] == ["banana"]


def test_the_most_telling_words_in_alphabetical_order() -> None:
    book = [chapter(1, "pear " * 9 + "fig " * 5 + "kiwi " * 3)]
    assert [entry.word for entry in index_words(book, top=2)] == ["fig", "pear"]
    assert index_words(book, top=0) == ()
    assert index_words([]) == ()


def test_the_reference_has_an_index_worth_printing(reference_book: tuple[Chapter, ...]) -> None:
    entries = index_words(reference_book, top=300)
    assert len(entries) == 300
    assert {"coroutine", "descriptor", "iterator", "metaclass", "TypeError"} <= {entry.word for entry in entries}
    assert not {"the", "object", "self", "e.g"} & {entry.word for entry in entries}


def test_writes_json_or_a_page(tmp_path: Path) -> None:
    entries = (IndexEntry("__add__", 3, (2,)), IndexEntry("binary", 4, (1, 2)))
    write_index(entries, tmp_path / "index.json")
    assert json.loads((tmp_path / "index.json").read_text()) == [
        {"word": "__add__", "count": 3, "chapters": [2]},
        {"word": "binary", "count": 4, "chapters": [1, 2]},
    ]
    size = write_index(entries, tmp_path / "index.html", book="the book.html")
    page = (tmp_path / "index.html").read_bytes()
    assert len(page) == size
    ET.fromstring(page)
    assert b"<h3>A</h3>" in page
    assert b'<a href="the book.html#chapter-2">2</a>' in page
