"""The whole idea, with real processes and a real browser: ask, go away, come back from elsewhere. With JavaScript, and without.

A person submits and closes the browser at once; the worker is killed in the middle; from another browser, after a new sign-in, they
find the job, see it finish and open its result; they cancel another one from a page that is out of date, and answer a question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlast.store.open import migrate
from web.served import Client, serve, until, work

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

Device = Callable[[], "BrowserContext"]


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def scripts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def device(chromium: Browser, scripts: bool) -> Iterator[Device]:
    """Makes browser profiles that know nothing of each other."""
    made: list[BrowserContext] = []

    def fresh() -> BrowserContext:
        context = chromium.new_context(java_script_enabled=scripts, timezone_id="Asia/Tokyo", locale="en-GB")
        context.set_default_timeout(30_000)
        made.append(context)
        return context

    yield fresh
    for context in made:
        context.close()


def sign_in(context: BrowserContext, url: str, subject: str = "ann") -> Page:
    """A page of somebody who has just signed in by the form."""
    page = context.new_page()
    page.goto(url)
    page.fill("#tenant", "acme")
    page.fill("#subject", subject)
    page.click("#sign-in")
    page.wait_for_selector("h1:has-text('Your work')")
    return page


def ask_for(page: Page, url: str, tasks: list[dict[str, Any]], key: str) -> None:
    """A submit by the host's own page: its browser sends the request, and nobody waits for the answer's body."""
    body = {"kind": "rehearsal", "input": {"tasks": tasks}}
    answer = page.context.request.post(
        f"{url}/v1/jobs", data=json.dumps(body), headers={"Idempotency-Key": key, "Content-Type": "application/json"}
    )
    assert answer.status == 202


def stored_steps(client: Client, job_id: str) -> int:
    return sum(one["stored"] for one in client.ask("GET", f"/v1/jobs/{job_id}/recovery")[2]["steps"])


def seen(page: Page, text: str, *, scripts: bool) -> None:
    """Waits until the page shows it: by itself with JavaScript, by looking again without."""
    from playwright.sync_api import expect  # noqa: PLC0415 - skipped where it is missing

    if scripts:
        expect(page.locator("#state")).to_contain_text(text)
        return

    def again() -> bool:
        page.click("#look-again")
        return text in (page.text_content("#state") or "")

    until(again, text, timeout=40)


@pytest.mark.timeout(170)
def test_ask_go_away_and_come_back(tmp_path: Path, device: Device, scripts: bool) -> None:  # noqa: PLR0915 - it is one story
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(store)
    with serve(tmp_path, store) as server, work(tmp_path, store, "--lease", "2") as first:
        url = f"http://127.0.0.1:{server.port}"
        first.line("worker ")

        # Ask, and close the browser at once.
        desk = device()
        page = sign_in(desk, url)
        ask_for(
            page,
            url,
            [{"label": "Chapters", "steps": 12, "seconds": 0.25, "usable": True}, {"label": "Index", "after": ["Chapters"]}],
            "book",
        )
        desk.close()

        # The worker dies in the middle; another one comes.
        with Client(server.port) as client:
            (job,) = client.ask("GET", "/v1/jobs")[2]["items"]
            until(lambda: stored_steps(client, job["id"]) >= 3, "some chapters are stored")
            first.process.kill()
            first.process.wait()
            assert client.ask("GET", f"/v1/jobs/{job['id']}")[2]["state"] == "running"

        # Another device, another sign-in: the job is there, and goes on.
        phone = device()
        page = sign_in(phone, url)
        page.click(f"#job-{job['id']}")
        assert "In progress" in (page.text_content("#state") or "")
        assert page.get_attribute("[data-task='0']", "data-state") == "running"
        with work(tmp_path, store, "--lease", "2") as second:
            second.line("worker ")
            seen(page, "Completed", scripts=scripts)
            lines = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
            stored = [line["step"] for line in lines if line["event"] == "step"]
            assert len(set(stored)) == 12
            assert len(stored) <= 13, "what was stored was not done again"
            page.click("#result")
            assert '"label": "Chapters"' in (page.text_content("#output") or "")
            page.go_back()

            # A stranger sees nothing.
            stranger = sign_in(device(), url, "bob")
            answer = stranger.goto(f"{url}/jobs/{job['id']}")
            assert answer is not None
            assert answer.status == 404
            assert "Rehearsal" not in (stranger.text_content("body") or "")

            # Cancel another one, from a page that is out of date: nothing is done, and it says why.
            ask_for(page, url, [{"label": "One", "seconds": 0.1}, {"label": "Two", "after": ["One"], "seconds": 60}], "long")
            with Client(server.port) as client:
                other = client.ask("GET", "/v1/jobs")[2]["items"][0]
                until(lambda: client.ask("GET", f"/v1/jobs/{other['id']}")[2]["progress"]["done"] == 1, "the first task has ended")
                page.goto(f"{url}/jobs/{other['id']}")
                outdated(page)
                page.click("#cancel")
                page.wait_for_selector("#notice")
                assert "the job had changed" in (page.text_content("#notice") or "")
                assert client.ask("GET", f"/v1/jobs/{other['id']}")[2]["state"] == "running"
                page.click("#cancel")
                page.wait_for_selector("#state:has-text('Cancelled')")
                assert client.ask("GET", f"/v1/jobs/{other['id']}")[2]["outcome"] == "user"
                assert page.query_selector("#cancel") is None, "there is nothing left to stop"

                # Answer a question.
                ask_for(page, url, [{"label": "Cover", "ask": {"code": "which_colour", "actions": ["answer"]}}], "cover")
                asked = client.ask("GET", "/v1/jobs")[2]["items"][0]
                until(lambda: client.ask("GET", f"/v1/jobs/{asked['id']}")[2]["state"] == "needs_attention", "it asks")
                page.goto(url)
                assert "Needs you" in (page.text_content(f"[data-job='{asked['id']}']") or "")
                page.click(f"#job-{asked['id']}")
                page.fill("#answer-1", "green, please")
                page.click("#do-answer-1")
                seen(page, "Completed", scripts=scripts)
                page.click("#result")
                assert "green, please" in (page.text_content("#output") or "")


def outdated(page: Page) -> None:
    """From here on the page's form is sent as it was before the job's last change."""
    version = int(page.get_attribute("#cancel-form input[name=version]", "value") or "0")
    sent: list[str] = []

    def once(route: Route) -> None:
        data = route.request.post_data or ""
        assert f"version={version}" in data
        sent.append(data)
        route.continue_(post_data=data.replace(f"version={version}", f"version={version - 1}") if len(sent) == 1 else data)

    page.route("**/cancel", once)
