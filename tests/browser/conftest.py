"""What tests in a real browser share: Debian's Chromium, a real server with a worker, and people who are signed in.

Tests here are plain functions: Playwright's synchronous interface keeps an event loop in the thread of the tests, so the browser is
started for each module and ended with it, and no asynchronous test may stand in a module of this folder.

    def test_something(server: Host, person: People) -> None:
        ann = person()                                  # a browser profile of her own, signed in; nobody else has her name
        job_id = server.submit(ann.name)                # its tasks wait until the test says server.open(job_id, "Text")
        page = ann.open(server.page(f'<outlast-job href="{MOUNT}/v1/jobs/{job_id}"></outlast-job>'))
        expect(page.locator("outlast-job")).to_contain_text("In progress")

Wait for conditions, with Playwright's `expect` or with `until`; never for a time.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pytest

from browser.host import Host
from outlast.http.development import COOKIE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

T = TypeVar("T")

CHROMIUM: Final = os.environ.get("OUTLAST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
_PATIENCE: Final = 30.0
_SPY: Final = """addEventListener("securitypolicyviolation", (event) =>
    console.error(`policy violated: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`))"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it starts a browser, and waits for what people wait for."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(120))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, for the tests of one module."""
    try:
        from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - skipped where it is missing
    except ModuleNotFoundError:
        pytest.skip("NOT TESTED IN A BROWSER: Playwright is not installed (pip install playwright; it needs no download of browsers)")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"NOT TESTED IN A BROWSER: there is no {CHROMIUM} (apt-get install chromium, or name another in OUTLAST_CHROMIUM)")
    expect.set_options(timeout=_PATIENCE * 1000)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-background-networking", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def _host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("host"))
    host.start()
    yield host
    host.stop()


@pytest.fixture
def server(_host: Host) -> Iterator[Host]:
    """The host application with Outlast mounted at MOUNT, and a worker; one for the whole run, without what other tests left there."""
    yield _host
    _host.clear()


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


@pytest.fixture
def person(chromium: Browser, server: Host) -> Iterator[People]:
    """People with fresh profiles, by default each with a name that nobody else has; closed after the test.

    What their consoles said must be empty by then: `one.said.clear()` where a test wants an error.
    """
    made: list[Person] = []

    def make(name: str = "", /, **options: Any) -> Person:
        one = Person(name or f"acme:{uuid.uuid4().hex[:12]}", chromium.new_context(**options))
        one.context.set_default_timeout(_PATIENCE * 1000)
        one.context.add_init_script(_SPY)
        one.sign_in(server.url, one.name)
        made.append(one)
        return one

    yield make
    for one in made:
        one.context.close()
    assert [text for one in made for text in one.said] == []


def until(page: Page, reached: Callable[[], T], seconds: float = _PATIENCE) -> T:
    """What `reached` gives as soon as that is true of it; the page goes on meanwhile."""
    limit = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < limit, f"not reached: {found!r}"
        page.wait_for_timeout(50)
    return found
