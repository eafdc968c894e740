"""A sound book, spoilt in one way at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from outlast.demo.epub import write_epub
from outlast.demo.epub_check import check_epub
from outlast.demo.topics import Chapter

Files = dict[str, bytes]
NAV, OPF, PAGE = "EPUB/nav.xhtml", "EPUB/package.opf", "EPUB/chapter-01.xhtml"


@pytest.fixture
def sound(tmp_path: Path, chapters: tuple[Chapter, ...]) -> Path:
    write_epub(chapters, tmp_path / "sound.epub")
    return tmp_path / "sound.epub"


def files_of(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path: Path, files: Files, *, mimetype_method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data, mimetype_method if name == "mimetype" else None)
    return path


def swapped(name: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return spoil


def without(name: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        del files[name]

    return spoil


def added(name: str, data: bytes = b"") -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        files[name] = data

    return spoil


def moved_last(name: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        files[name] = files.pop(name)

    return spoil


def test_a_sound_book_passes_packed_anew(sound: Path, tmp_path: Path) -> None:
    again = check_epub(packed(tmp_path / "again.epub", files_of(sound)))
    assert (again.chapters, again.files) == (2, 8)
    assert again.words > 40


ITEM = b'<item id="style" href="style.css" media-type="text/css"/>'


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (swapped("mimetype", b"epub", b"book"), "mimetype is b'application/book"),
        (moved_last("mimetype"), "first file"),
        (without("META-INF/container.xml"), "lacks META-INF/container.xml"),
        (swapped("META-INF/container.xml", b"rootfile ", b"otherfile "), "names no package"),
        (swapped("META-INF/container.xml", b"package.opf", b"other.opf"), "lacks EPUB/other.opf"),
        (swapped(OPF, b"</package>", b""), "package.opf is not well-formed"),
        (without(PAGE), "lists EPUB/chapter-01.xhtml, which the book lacks"),
        (without("EPUB/style.css"), "lists EPUB/style.css, which the book lacks"),
        (added("EPUB/stray.txt"), "holds EPUB/stray.txt, which the manifest does not list"),
        (swapped(OPF, ITEM, ITEM * 2), "lists EPUB/style.css more than once"),
        (swapped(OPF, b'idref="chapter-02"', b'idref="chapter-99"'), "spine refers to chapter-99"),
        (swapped(OPF, b'idref="chapter-02"', b'idref="style"'), "spine refers to style"),
        (swapped(OPF, b"<itemref", b"<otherref"), "spine is empty"),
        (swapped(OPF, b' properties="nav"', b""), "0 navigation pages"),
        (swapped(OPF, b"dc:title>", b"dc:name>"), "no dc:title"),
        (swapped(OPF, b"dcterms:modified", b"dcterms:created"), "when the book was modified"),
        (swapped(PAGE, b"</p>", b"<p>"), "chapter-01.xhtml is not well-formed"),
        (swapped(PAGE, b"body>", b"div>"), "well-formed|no body"),
        (swapped(PAGE, b'id="topic-while"', b'id="chapter-1"'), "two places called chapter-1"),
        (swapped(PAGE, b"style.css", b"https://example.org/style.css"), "from outside"),
        (swapped(NAV, b'epub:type="toc"', b'epub:type="landmarks"'), "no table of contents"),
        (swapped(NAV, b"chapter-02.xhtml#", b"chapter-03.xhtml#"), "links to EPUB/chapter-03.xhtml"),
        (swapped(NAV, b"#topic-naming", b"#topic-nothing"), "links to #topic-nothing"),
    ],
)
def test_a_spoilt_book_is_refused(sound: Path, tmp_path: Path, spoil: Callable[[Files], None], message: str) -> None:
    files = files_of(sound)
    spoil(files)
    with pytest.raises(ValueError, match=message):
        check_epub(packed(tmp_path / "spoilt.epub", files))


def test_a_compressed_mimetype_is_refused(sound: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "spoilt.epub", files_of(sound), mimetype_method=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="mimetype is compressed"):
        check_epub(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_held_twice_is_refused(sound: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "spoilt.epub", files_of(sound))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(PAGE, b"other")
    with pytest.raises(ValueError, match=r"chapter-01.xhtml more than once"):
        check_epub(path)


def test_a_damaged_byte_is_found(sound: Path, tmp_path: Path) -> None:
    data = bytearray(sound.read_bytes())
    at = data.index(b"application/epub+zip")
    data[at] ^= 1
    (tmp_path / "spoilt.epub").write_bytes(data)
    with pytest.raises(ValueError, match="CRC"):
        check_epub(tmp_path / "spoilt.epub")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_half_a_book_is_refused(sound: Path, tmp_path: Path, share: float) -> None:
    data = sound.read_bytes()
    (tmp_path / "half.epub").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match="zip"):
        check_epub(tmp_path / "half.epub")
