from __future__ import annotations

import zipfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from outlast.demo.edition import Edition
from outlast.demo.epub import write_epub
from outlast.demo.epub_check import check_epub
from outlast.demo.topics import Chapter
from outlast.demo.word_index import IndexEntry, index_words

PNG = b"\x89PNG\r\n\x1a\n and so on"


def test_the_whole_book_passes_the_check(tmp_path: Path, reference_book: tuple[Chapter, ...]) -> None:
    size = write_epub(reference_book, tmp_path / "book.epub", index=index_words(reference_book))
    report = check_epub(tmp_path / "book.epub")
    assert report.chapters == len(reference_book)
    assert report.words > 40_000
    assert report.size == size
    assert report.links > 1_000
    assert not report.has_cover


def test_the_report_tells_what_was_asked_for(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    edition = Edition(title="Tom & <Jerry>", subtitle="Sub")
    modified = datetime(2024, 5, 6, 9, 8, 7, 654321, tzinfo=timezone(timedelta(hours=2)))
    index = (IndexEntry("name", 3, (1, 2)),)
    write_epub(chapters, tmp_path / "book.epub", PNG, edition=edition, modified=modified, index=index)
    report = check_epub(tmp_path / "book.epub")
    assert (report.title, report.language, report.chapters) == ("Tom & <Jerry>", "en", 2)
    assert report.modified == "2024-05-06T07:08:07Z"
    assert report.identifier == edition.identifier
    assert report.identifier.startswith("urn:uuid:")
    assert report.has_cover
    assert report.files == 11


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    modified = datetime(2024, 1, 1, tzinfo=UTC)
    for name in ("one", "two"):
        write_epub(chapters, tmp_path / name, PNG, modified=modified)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    write_epub(chapters, tmp_path / "later", PNG, modified=modified + timedelta(seconds=1))
    assert (tmp_path / "later").read_bytes() != (tmp_path / "one").read_bytes()


def test_the_type_can_be_read_off_the_file(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    write_epub(chapters, tmp_path / "book.epub")
    assert (tmp_path / "book.epub").read_bytes()[30:58] == b"mimetypeapplication/epub+zip"


@pytest.mark.parametrize(("cover", "name"), [(PNG, "EPUB/cover.png"), (b"\xff\xd8\xff and so on", "EPUB/cover.jpg")])
def test_covers_are_stored_as_they_are(tmp_path: Path, chapters: tuple[Chapter, ...], cover: bytes, name: str) -> None:
    write_epub(chapters, tmp_path / "book.epub", cover)
    with zipfile.ZipFile(tmp_path / "book.epub") as archive:
        assert archive.read(name) == cover
        assert archive.getinfo(name).compress_type == zipfile.ZIP_STORED


def test_what_makes_no_book_is_refused_before_anything_is_written(tmp_path: Path, chapters: tuple[Chapter, ...]) -> None:
    with pytest.raises(ValueError, match="neither a PNG nor a JPEG"):
        write_epub(chapters, tmp_path / "book.epub", b"GIF89a")
    with pytest.raises(ValueError, match="time zone"):
        write_epub(chapters, tmp_path / "book.epub", modified=datetime(2024, 1, 1))  # noqa: DTZ001 - a naive time is what is refused
    assert not list(tmp_path.iterdir())
