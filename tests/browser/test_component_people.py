"""Who is signed in: what one person saw is never shown to the next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from browser.host import MOUNT, Host
from browser.person import MISSING, People, until
from browser.test_component import LOG, events, job, order, shown
from browser.test_component_following import SPY

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason=MISSING).expect

LIST = f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>'


def everything(page: Page) -> str:
    """All that stands in the document and in shadow roots, shown or not."""
    script = """() => {
        const all = (root) => [...root.querySelectorAll("*")].flatMap((one) => [
            ...[...one.attributes].map((attribute) => attribute.value),
            ...[...one.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE).map((child) => child.data),
            ...(one.shadowRoot ? all(one.shadowRoot) : []),
        ]);
        return all(document).join("\\n");
    }"""
    text: str = page.evaluate(script)
    return text


def test_signing_out_removes_what_was_shown_in_all_tabs(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "question")
    server.until(ann.name, job_id, lambda now: now["state"] == "needs_attention")
    first, second = ann.open("about:blank"), ann.open(server.page(job(job_id) + LIST, LOG))
    first.clock.install()
    first.goto(server.page(job(job_id) + LIST, LOG))
    for page in (first, second):
        until(page, lambda page=page: order(page) == [job_id])
        assert "A question" in everything(page)
    ann.sign_out()
    first.evaluate("dispatchEvent(new Event('online'))")
    for page in (first, second):
        expect(page.locator("outlast-job")).to_have_count(1)
        expect(page.locator("outlast-job")).to_have_text("Signed out. Sign in to see this.")
        expect(page.locator("outlast-jobs")).to_have_text("Signed out. Sign in to see this.")
        for word in ("A question", "Which colour", "Colour", "Needs you"):
            assert word not in everything(page)
        assert page.evaluate("[document.querySelector('outlast-job').job, document.querySelector('outlast-jobs').jobs]") == [None, []]
        assert events(page).count(["signed-out", None]) == 2  # one for each element
    asked = len(server.requests)
    first.clock.run_for(700_000)
    first.wait_for_load_state("networkidle")
    assert len(server.requests) == asked  # everything stopped


def test_who_signs_in_again_sees_it_again(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("0 of 3: Text")
    ann.sign_out()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(shown(page)).to_contain_text("Signed out")
    ann.sign_in(server.url, ann.name)
    other = ann.open(server.page(job(job_id)))
    for one in (page, other):
        expect(shown(one)).to_contain_text("0 of 3: Text")
    server.open(job_id)
    for one in (page, other):
        expect(shown(one)).to_contain_text("Completed")


def test_the_host_says_that_somebody_signed_out(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page, other = ann.open(server.page(job(job_id))), ann.open(server.page(job(job_id)))
    for one in (page, other):
        expect(shown(one)).to_contain_text("0 of 3: Text")
    page.evaluate("import('/a/jobs/component.js').then((component) => component.signedOut())")
    for one in (page, other):
        expect(shown(one)).to_have_text("Signed out. Sign in to see this.")


def test_the_next_person_sees_nothing_of_the_one_before(server: Host, person: People) -> None:
    ann = person()
    name, bob = ann.name, f"{ann.name}-bob"
    hers = server.submit(name)
    old = ann.open(server.page(job(hers) + LIST))
    until(old, lambda: order(old) == [hers])
    until(old, lambda: [one.open for one in server.seen("GET", "/v1/events", ann.name)] == [True])
    ann.sign_in(server.url, bob)  # without a request of anybody that said 401
    his = server.submit(bob)
    new = ann.open(server.page(job(his) + LIST, SPY))
    until(new, lambda: order(new) == [his])
    # The tab of before shows nothing of hers, and the stream is his: he learns of what is new.
    until(old, lambda: order(old) == [his])
    expect(shown(old).first).to_have_text("This job is gone, or it is not yours to see.")
    until(new, lambda: sum(one.open for one in server.seen("GET", "/v1/events", bob)) == 1)
    assert not any(one.open for one in server.seen("GET", "/v1/events", name))
    another = server.submit(bob)
    until(new, lambda: order(new) == [another, his])
    server.open(his)
    expect(shown(new).first).to_contain_text("Completed")
    for page in (old, new):
        assert hers not in everything(page).replace(f"{MOUNT}/v1/jobs/{hers}", "")
    # What tabs tell each other names jobs, and says nothing about them.
    heard: list[dict[str, Any]] = new.evaluate("heard")
    assert {key for message in heard for key in message} <= {"type", "ids", "arrived", "id", "tag", "live"}
    assert "letter" not in json.dumps(heard)


def test_hints_alone_show_nothing(server: Host, person: People) -> None:
    """Who may not see a job learns nothing of it, whatever other pages of the browser say."""
    ann, bob = person(), person()
    hers = server.submit(ann.name)
    leader = bob.open(server.page(LIST))
    until(leader, lambda: [one.open for one in server.seen("GET", "/v1/events", bob.name)] == [True])
    page = bob.open(server.page(job(hers) + LIST))
    expect(shown(page)).to_have_text("This job is gone, or it is not yours to see.")
    other = bob.open(server.page("another"))
    other.evaluate(
        f"""([id, tag]) => {{ const to = new BroadcastChannel(`outlast ${{location.origin}}{MOUNT}`);
            to.postMessage({{ type: "live", live: true }}); to.postMessage({{ type: "news", id, tag }}); }}""",
        [hers, "99.completed"],
    )
    until(page, lambda: len(server.seen("GET", f"/v1/jobs/{hers}", bob.name)) == 2)
    expect(shown(page)).to_have_count(1)
    expect(shown(page)).to_have_text("This job is gone, or it is not yours to see.")


def test_a_host_that_authenticates_by_header(server: Host, person: People) -> None:
    ann = person()
    ann.sign_out()
    job_id = server.submit(ann.name)
    script = f"""const shown = document.createElement("outlast-job");
        shown.headers = async () => ({{ Authorization: "Bearer dev:{ann.name}" }});
        shown.href = "{MOUNT}/v1/jobs/{job_id}";
        document.body.append(shown);"""
    page = ann.open(server.page("", script))
    expect(shown(page)).to_contain_text("0 of 3: Text")
    until(page, lambda: any(one.open for one in server.seen("GET", "/v1/events")))
    server.open(job_id, "Text")
    expect(shown(page)).to_contain_text("1 of 3: Layout")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(shown(page)).to_contain_text("Cancelled")
    assert [one for one in server.requests if "/v1/" in one.path and one.who != ann.name] == []
    use = "(token) => { document.querySelector('outlast-job').headers = { Authorization: `Bearer ${token}` }; }"
    page.evaluate(use, f"dev:{ann.name}-bob")
    expect(shown(page)).to_have_text("This job is gone, or it is not yours to see.")
    page.evaluate(use, f"dev:{ann.name}")
    expect(shown(page)).to_contain_text("Cancelled")
    page.evaluate(use, "nonsense")
    expect(shown(page)).to_have_text("Signed out. Sign in to see this.")
    page.evaluate(use, f"dev:{ann.name}")
    expect(shown(page)).to_contain_text("Cancelled")


def test_header_fields_may_come_after_the_element(server: Host, person: People) -> None:
    ann = person()
    ann.sign_out()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_have_text("Signed out. Sign in to see this.")
    page.evaluate(f"document.querySelector('outlast-job').headers = () => ({{ Authorization: 'Bearer dev:{ann.name}' }})")
    expect(shown(page)).to_contain_text("0 of 3: Text")
    # Not even the answer that is on its way may undo them.
    body = "<outlast-job></outlast-job>"
    with server.fault("GET", "/v1/.*", "buffered"):
        page = ann.open(server.page(body))
        page.evaluate(f"""document.querySelector("outlast-job").href = "{MOUNT}/v1/jobs/{job_id}";
            setTimeout(() => document.querySelector("outlast-job").headers = {{ Authorization: "Bearer dev:{ann.name}" }}, 0)""")
        expect(shown(page)).to_contain_text("0 of 3: Text")


def test_a_redirect_to_a_sign_in_is_no_answer(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("0 of 3: Text")
    with server.fault("GET", "/v1/.*", "answer", status=302, headers={"Location": "/sign-in"}):
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(shown(page)).to_have_text("Signed out. Sign in to see this.")


def test_what_is_no_answer_of_the_api_is_not_shown(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    with server.fault("GET", f"/v1/jobs/{job_id}", "answer", status=200, body=b"<html>", headers={"Content-Type": "text/html"}):
        page = ann.open(server.page(job(job_id)))
        expect(shown(page)).to_have_text("Not connected. This appears as soon as the server answers.")
    expect(shown(page)).to_contain_text("0 of 3: Text")
