"""People in browser profiles of their own, and waiting for what they see."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from outlast.http.development import COOKIE

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Page

T = TypeVar("T")

CHROMIUM: Final = os.environ.get("OUTLAST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
MISSING: Final = "NOT TESTED IN A BROWSER: Playwright is not installed (pip install playwright; it needs no browser of its own)"
PATIENCE: Final = 30.0
"""Seconds that the slowest machine may take."""


@dataclass
class Person:
    """Somebody in a browser profile of their own. `name` is tenant:subject."""

    name: str
    context: BrowserContext
    said: list[str] = field(default_factory=list[str])
    """Errors and policy violations in the consoles of all pages, except for answers of the server that are errors."""

    def open(self, url: str) -> Page:
        """A new tab."""
        page = self.context.new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.said.append(f"uncaught: {error}"))
        page.goto(url)
        return page

    def sign_in(self, url: str, name: str) -> None:
        """From now on this profile is somebody else."""
        self.name = name
        self.context.add_cookies([{"name": COOKIE, "value": f"dev:{name}", "url": url}])

    def sign_out(self) -> None:
        """Drops the cookie: the next request is nobody's."""
        self.context.clear_cookies()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.said.append(message.text)


class People(Protocol):
    """Makes people: person(), or person("acme:ann", color_scheme="dark", viewport=...) with options of a browser context."""

    def __call__(self, name: str = "", /, **options: Any) -> Person: ...


def until(page: Page, reached: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What `reached` gives as soon as that is true of it; the page goes on meanwhile."""
    limit = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < limit, f"not reached: {found!r}"
        page.wait_for_timeout(50)
    return found
