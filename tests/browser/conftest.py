"""What tests in a real browser share: Debian's Chromium, a real server with a worker, and people who are signed in.

Tests here are plain functions: Playwright's synchronous interface keeps an event loop in the thread of the tests, so the browser is
started for each module and ended with it, and no asynchronous test may stand in a module of this folder.

    def test_something(server: Host, person: People) -> None:
        ann = person()                                  # a browser profile of her own, signed in; nobody else has her name
        job_id = server.submit(ann.name)                # its tasks wait until the test says server.open(job_id, "Text")
        page = ann.open(server.page(f'<outlast-job href="{MOUNT}/v1/jobs/{job_id}"></outlast-job>'))
        expect(page.locator("outlast-job")).to_contain_text("In progress")

Wait for conditions, with Playwright's `expect` or with `until`; never for a time. A module that imports Playwright at its top does so by
`pytest.importorskip("playwright.sync_api", reason=MISSING)`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from browser.host import Host
from browser.person import CHROMIUM, MISSING, PATIENCE, People, Person

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
        pytest.skip(MISSING)
    if not Path(CHROMIUM).exists():
        pytest.skip(f"NOT TESTED IN A BROWSER: there is no {CHROMIUM} (apt-get install chromium, or name another in OUTLAST_CHROMIUM)")
    expect.set_options(timeout=PATIENCE * 1000)
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


@pytest.fixture
def person(chromium: Browser, server: Host) -> Iterator[People]:
    """People with fresh profiles, by default each with a name that nobody else has; closed after the test.

    What their consoles said must be empty by then: `one.said.clear()` where a test wants an error.
    """
    made: list[Person] = []

    def make(name: str = "", /, **options: Any) -> Person:
        one = Person(name or f"acme:{uuid.uuid4().hex[:12]}", chromium.new_context(**options))
        one.context.set_default_timeout(PATIENCE * 1000)
        one.context.add_init_script(_SPY)
        one.sign_in(server.url, one.name)
        made.append(one)
        return one

    yield make
    for one in made:
        one.context.close()
    assert [text for one in made for text in one.said] == []
