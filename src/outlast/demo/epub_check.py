"""Our own check of an EPUB: enough to vouch for the books made here, without a tool beyond the standard library."""

from __future__ import annotations

import os
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from outlast.demo.epub import MIMETYPE
from outlast.demo.topics import words

_CONTAINER = "META-INF/container.xml"
_NAMES = {
    "c": "urn:oasis:names:tc:opendocument:xmlns:container",
    "opf": "http://www.idpf.org/2007/opf",
    "dc": "http://purl.org/dc/elements/1.1/",
    "x": "http://www.w3.org/1999/xhtml",
}
_EPUB_TYPE = "{http://www.idpf.org/2007/ops}type"
_XHTML = "application/xhtml+xml"
_MODIFIED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True)
class EpubReport:
    """What a book that passed the check holds. `words` counts those of its pages, the contents and index among them."""

    title: str
    identifier: str
    language: str
    modified: str
    chapters: int
    words: int
    files: int
    links: int
    size: int
    has_cover: bool


def check_epub(path: str | os.PathLike[str]) -> EpubReport:
    """What the book holds; ValueError, saying in one sentence what is wrong, if it is no sound EPUB 3.

    Checked are the archive and its checksums, the mimetype, the way from container to package to every file and back,
    that the pages are well-formed, and that every link within the book arrives and nothing is loaded from outside.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            files = _files(archive)
    except zipfile.BadZipFile as error:
        raise ValueError(f"The book is not a sound zip archive: {error}.") from error
    package_name = _package_name(files)
    package = _xml(files, package_name)
    manifest = _manifest(package, package_name, files)
    pages = {name: _xml(files, name) for name, item in manifest.items() if item.get("media-type") == _XHTML}
    spine = _spine(package, manifest)
    _check_navigation(manifest, pages)
    return EpubReport(
        title=_text(package, "dc:title"),
        identifier=_text(package, "dc:identifier"),
        language=_text(package, "dc:language"),
        modified=_modified(package),
        chapters=sum(_is_chapter(pages[name]) for name in spine),
        words=sum(_words(name, pages[name]) for name in spine),
        files=len(files),
        links=_links(files, pages),
        size=Path(path).stat().st_size,
        has_cover=any("cover-image" in item.get("properties", "").split() for item in manifest.values()),
    )


def _files(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """All files, whose checksums reading them has proved."""
    entries = archive.infolist()
    if not entries or entries[0].filename != "mimetype":
        raise ValueError("The first file of the archive is not the mimetype.")
    if entries[0].compress_type != zipfile.ZIP_STORED or entries[0].extra:
        raise ValueError("The mimetype is compressed or has extra fields, and must have neither.")
    double = [name for name, count in Counter(entry.filename for entry in entries).items() if count > 1]
    if double:
        raise ValueError(f"The archive holds {double[0]} more than once.")
    files = {entry.filename: archive.read(entry) for entry in entries if not entry.is_dir()}
    if files["mimetype"] != MIMETYPE.encode():
        raise ValueError(f"The mimetype is {files['mimetype'][:60]!r} instead of {MIMETYPE}.")
    return files


def _xml(files: Mapping[str, bytes], name: str) -> Element:
    if name not in files:
        raise ValueError(f"The book lacks {name}.")
    try:
        return ET.fromstring(files[name])
    except ET.ParseError as error:
        raise ValueError(f"{name} is not well-formed XML: {error}.") from error


def _package_name(files: Mapping[str, bytes]) -> str:
    root = _xml(files, _CONTAINER).find("c:rootfiles/c:rootfile", _NAMES)
    name = root.get("full-path") if root is not None else None
    if not name:
        raise ValueError(f"{_CONTAINER} names no package.")
    return name


def _manifest(package: Element, package_name: str, files: Mapping[str, bytes]) -> dict[str, Element]:
    """The items by the name of their file; each has one, and each file is an item."""
    items: dict[str, Element] = {}
    for item in package.iterfind("opf:manifest/opf:item", _NAMES):
        name = _resolved(package_name, item.get("href", ""))
        if name not in files:
            raise ValueError(f"The manifest lists {name}, which the book lacks.")
        if name in items:
            raise ValueError(f"The manifest lists {name} more than once.")
        items[name] = item
    unlisted = [name for name in files if name not in items and name not in ("mimetype", package_name) and not name.startswith("META-INF/")]
    if unlisted:
        raise ValueError(f"The book holds {unlisted[0]}, which the manifest does not list.")
    return items


def _spine(package: Element, manifest: Mapping[str, Element]) -> list[str]:
    """The pages in reading order."""
    names = {item.get("id"): name for name, item in manifest.items()}
    order: list[str] = []
    for reference in package.iterfind("opf:spine/opf:itemref", _NAMES):
        name = names.get(reference.get("idref"))
        if name is None or manifest[name].get("media-type") != _XHTML:
            raise ValueError(f"The spine refers to {reference.get('idref')}, which is no page of the manifest.")
        order.append(name)
    if not order:
        raise ValueError("The spine is empty.")
    return order


def _check_navigation(manifest: Mapping[str, Element], pages: Mapping[str, Element]) -> None:
    names = [name for name, item in manifest.items() if "nav" in item.get("properties", "").split()]
    if len(names) != 1 or names[0] not in pages:
        raise ValueError(f"The manifest has {len(names)} navigation pages instead of one.")
    tables = [nav for nav in pages[names[0]].iterfind(".//x:nav", _NAMES) if nav.get(_EPUB_TYPE) == "toc"]
    if not any(table.find(".//x:a", _NAMES) is not None for table in tables):
        raise ValueError(f"{names[0]} has no table of contents.")


def _links(files: Mapping[str, bytes], pages: Mapping[str, Element]) -> int:
    """How many links stay within the book; each of them arrives."""
    anchors = {name: _anchors(name, page) for name, page in pages.items()}
    count = 0
    for name, page in pages.items():
        for tag, address in _addresses(page):
            if urlsplit(address).scheme or address.startswith("//"):
                if tag != "a":
                    raise ValueError(f"{name} loads {address} from outside the book.")
                continue
            target, fragment = urldefrag(address)
            other = _resolved(name, target) if target else name
            if other not in files:
                raise ValueError(f"{name} links to {other}, which the book lacks.")
            if fragment and unquote(fragment) not in anchors.get(other, ()):
                raise ValueError(f"{name} links to #{fragment} in {other}, which has no such place.")
            count += 1
    return count


def _anchors(name: str, page: Element) -> frozenset[str]:
    counts = Counter(element.get("id", "") for element in page.iter())
    double = [anchor for anchor, count in counts.items() if anchor and count > 1]
    if double:
        raise ValueError(f"{name} has two places called {double[0]}.")
    return frozenset(counts)


def _addresses(page: Element) -> Iterator[tuple[str, str]]:
    """What a page links to or loads, with the tag that does."""
    for element in page.iter():
        tag = element.tag.rpartition("}")[2]
        for attribute in ("href", "src"):
            if (address := element.get(attribute)) is not None:
                yield tag, address


def _resolved(base: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(address)))


def _text(package: Element, name: str) -> str:
    value = package.findtext(f"opf:metadata/{name}", "", _NAMES).strip()
    if not value:
        raise ValueError(f"The package has no {name}.")
    return value


def _modified(package: Element) -> str:
    metas = package.iterfind("opf:metadata/opf:meta", _NAMES)
    value = next((meta.text or "" for meta in metas if meta.get("property") == "dcterms:modified"), "")
    if not _MODIFIED.fullmatch(value):
        raise ValueError("The package does not say when the book was modified.")
    return value


def _is_chapter(page: Element) -> bool:
    return any("chapter" in section.get(_EPUB_TYPE, "").split() for section in page.iterfind(".//x:section", _NAMES))


def _words(name: str, page: Element) -> int:
    body = page.find("x:body", _NAMES)
    if body is None:
        raise ValueError(f"{name} has no body.")
    return words(" ".join(body.itertext()))
