"""The EPUB 3 edition: one archive for any reading device."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from outlast.demo.atomic import write_whole
from outlast.demo.edition import Edition
from outlast.demo.render import chapter_html, section_id, text, title_html
from outlast.demo.styles import EPUB_BOOK
from outlast.demo.topics import Chapter
from outlast.demo.word_index import IndexEntry, index_html

MIMETYPE = "application/epub+zip"
UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of modification of a book of which nobody said one."""

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_XHTML = "application/xhtml+xml"
_CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles>
<rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>
"""


@dataclass(frozen=True, slots=True)
class _Item:
    """A file of the book, as the manifest lists it."""

    id: str
    name: str
    media_type: str
    data: bytes
    properties: str = ""
    in_spine: bool = False


def write_epub(
    chapters: Sequence[Chapter],
    path: str | os.PathLike[str],
    cover: bytes | None = None,
    *,
    edition: Edition | None = None,
    modified: datetime = UNDATED,
    index: Sequence[IndexEntry] = (),
) -> int:
    """Write the book whole and return its size. The same arguments give the same bytes, whenever it is written.

    The cover is a PNG or JPEG image. ValueError if it is neither, or if `modified` has no time zone.
    """
    return write_whole(path, epub_bytes(chapters, cover, edition=edition, modified=modified, index=index))


def epub_bytes(
    chapters: Sequence[Chapter],
    cover: bytes | None = None,
    *,
    edition: Edition | None = None,
    modified: datetime = UNDATED,
    index: Sequence[IndexEntry] = (),
) -> bytes:
    """The archive that `write_epub` writes."""
    if modified.tzinfo is None:
        raise ValueError("The time of modification needs a time zone.")
    about = edition or Edition()
    items = [
        *_cover_items(cover),
        _Item("title", "title.xhtml", _XHTML, _page(about.title, _title_page(about)), in_spine=True),
        _Item("nav", "nav.xhtml", _XHTML, _nav(chapters, has_index=bool(index)), "nav", in_spine=True),
        *(_chapter_item(chapter) for chapter in chapters),
        *_index_items(index),
        _Item("style", "style.css", "text/css", EPUB_BOOK.encode()),
    ]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        # First and not compressed, so that the type can be read off the file at a fixed place.
        _add(archive, "mimetype", MIMETYPE.encode(), zipfile.ZIP_STORED)
        _add(archive, "META-INF/container.xml", _CONTAINER.encode())
        _add(archive, "EPUB/package.opf", _package(items, about, modified))
        for item in items:
            is_image = item.media_type.startswith("image/")
            _add(archive, f"EPUB/{item.name}", item.data, zipfile.ZIP_STORED if is_image else zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def chapter_file(number: int) -> str:
    """The name of a chapter's file within the book."""
    return f"chapter-{number:02}.xhtml"


def _add(archive: zipfile.ZipFile, name: str, data: bytes, method: int = zipfile.ZIP_DEFLATED) -> None:
    """Add a file with a fixed date, system and mode, which would otherwise be those of this machine."""
    info = zipfile.ZipInfo(name, _ZIP_EPOCH)
    info.compress_type = method
    info.create_system = 3
    info.external_attr = 0o100644 << 16
    archive.writestr(info, data, compresslevel=9 if method == zipfile.ZIP_DEFLATED else None)


def _page(title: str, body: str, *, body_class: str = "") -> bytes:
    attribute = f' class="{body_class}"' if body_class else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head>
<meta charset="utf-8"/>
<title>{text(title)}</title>
<link rel="stylesheet" type="text/css" href="style.css"/>
</head>
<body{attribute}>
{body}
</body>
</html>
""".encode()


def _cover_items(cover: bytes | None) -> list[_Item]:
    if cover is None:
        return []
    if cover.startswith(b"\x89PNG\r\n\x1a\n"):
        name, media_type = "cover.png", "image/png"
    elif cover.startswith(b"\xff\xd8\xff"):
        name, media_type = "cover.jpg", "image/jpeg"
    else:
        raise ValueError("The cover is neither a PNG nor a JPEG image.")
    page = _page("Cover", f'<div epub:type="cover"><img src="{name}" alt="The cover of the book"/></div>', body_class="cover")
    return [
        _Item("cover-image", name, media_type, cover, "cover-image"),
        _Item("cover", "cover.xhtml", _XHTML, page, in_spine=True),
    ]


def _title_page(about: Edition) -> str:
    return (
        f'<section class="title-page" epub:type="titlepage">\n<h1>{text(about.title)}</h1>\n'
        f"<p>{text(about.subtitle)}</p>\n<p>{text(about.creator)}</p>\n<p>{text(about.rights)}</p>\n</section>"
    )


def _chapter_item(chapter: Chapter) -> _Item:
    body = chapter_html(chapter, level=1).replace("<section ", '<section epub:type="chapter" ', 1)
    return _Item(
        f"chapter-{chapter.number:02}",
        chapter_file(chapter.number),
        _XHTML,
        _page(f"{chapter.number}. {chapter.title}", body),
        in_spine=True,
    )


def _index_items(index: Sequence[IndexEntry]) -> list[_Item]:
    if not index:
        return []
    body = f'<section epub:type="index" id="index">\n<h1>Index</h1>\n{index_html(index, chapter_file)}\n</section>'
    return [_Item("index", "index.xhtml", _XHTML, _page("Index", body), in_spine=True)]


def _nav(chapters: Sequence[Chapter], *, has_index: bool) -> bytes:
    lines = ['<nav epub:type="toc" id="toc">', "<h1>Contents</h1>", "<ol>"]
    for chapter in chapters:
        name = chapter_file(chapter.number)
        lines.append(f'<li><a href="{name}">{chapter.number}. {text(chapter.title)}</a>')
        if chapter.sections:
            lines.append("<ol>")
            lines += [f'<li><a href="{name}#{section_id(section)}">{title_html(section)}</a></li>' for section in chapter.sections]
            lines.append("</ol>")
        lines.append("</li>")
    if has_index:
        lines.append('<li><a href="index.xhtml">Index</a></li>')
    return _page("Contents", "\n".join([*lines, "</ol>", "</nav>"]))


def _package(items: Sequence[_Item], about: Edition, modified: datetime) -> bytes:
    manifest: list[str] = []
    for item in items:
        properties = f' properties="{item.properties}"' if item.properties else ""
        manifest.append(f'<item id="{item.id}" href="{item.name}" media-type="{item.media_type}"{properties}/>')
    spine = [f'<itemref idref="{item.id}"/>' for item in items if item.in_spine]
    lines = "\n".join(manifest)
    order = "\n".join(spine)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="book-id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="book-id">{about.identifier}</dc:identifier>
<dc:title>{text(about.title)}</dc:title>
<dc:language>en</dc:language>
<dc:creator>{text(about.creator)}</dc:creator>
<dc:description>{text(about.subtitle)}</dc:description>
<dc:rights>{text(about.rights)}</dc:rights>
<meta property="dcterms:modified">{modified.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}</meta>
</metadata>
<manifest>
{lines}
</manifest>
<spine>
{order}
</spine>
</package>
""".encode()
