"""The page of the example shops, on a telephone: an order is asked for, watched and confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser.person import MISSING
from web.served import Process

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
expect = pytest.importorskip("playwright.sync_api", reason=MISSING).expect


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("shop")
    command = ["-W", "ignore", "-m", "examples.fastapi", "--port", "0", "--db", str(folder / "shop.db")]
    with Process(folder, command, PYTHONPATH=str(ROOT), SHOP_PACE="0.3") as process:
        yield f"http://127.0.0.1:{process.port}"
        process.process.terminate()
        process.process.wait(20)


def test_an_order_is_watched_until_it_is_confirmed(shop: str, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(shop)
    page.get_by_role("button", name="Ann").click()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()

    page.get_by_label("What would you like?").fill("<b>a chair</b>")
    page.get_by_role("button", name="Order", exact=True).click()
    expect(page.locator("#said")).to_contain_text("Accepted.")
    expect(page.get_by_text("Nothing yet.")).to_be_hidden()
    expect(page.locator("outlast-jobs")).to_contain_text("Completed")
    expect(page.locator("#orders li")).to_have_text(["<b>a chair</b>confirmed"])

    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert said == []
    context.close()
