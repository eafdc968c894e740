"""Where a result is found, as a link only where following it is safe."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Reference:
    """What a task says about where its result is. `href` is None for what is no address; `host` is empty within the application."""

    text: str
    href: str | None
    host: str


def reference_of(text: str) -> Reference:
    """A link for http(s) and for what begins with a single slash, and plain text for everything else."""
    # Browsers drop blanks and controls, and turn backslashes; the address would then be another one than it seems.
    if not text.isprintable() or " " in text or "\\" in text:
        return Reference(text, None, "")
    if text.startswith("/") and not text.startswith("//"):
        return Reference(text, text, "")
    host = _host(text)
    return Reference(text, text if host else None, host)


def _host(text: str) -> str:
    """The host of an http(s) address without a user in it; else empty."""
    if not text.lower().startswith(("http://", "https://")):
        return ""
    try:
        parts = urlsplit(text)
        _ = parts.port  # refuses one that is no number
    except ValueError:
        return ""
    return "" if "@" in parts.netloc else parts.hostname or ""
