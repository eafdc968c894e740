"""<outlast-job> and <outlast-jobs> as people see and use them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from browser.host import MOUNT, Host
from browser.person import MISSING, People, until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

expect = pytest.importorskip("playwright.sync_api", reason=MISSING).expect

LOG = """
    window.log = [];
    for (const name of ["change", "usable", "attention", "final", "error", "signed-out"])
        addEventListener(`outlast-${name}`, ({ detail }) => log.push([name, detail?.state ?? detail?.code ?? null]));
"""


def job(job_id: str, attributes: str = "") -> str:
    return f'<outlast-job href="{MOUNT}/v1/jobs/{job_id}" {attributes}></outlast-job>'


def shown(page: Page) -> Locator:
    return page.locator("outlast-job")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def events(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate("log")
    return found


def test_a_job_is_followed_to_its_end(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id), LOG))
    expect(shown(page)).to_contain_text("A letter")
    expect(shown(page)).to_contain_text("In progress")
    expect(shown(page)).to_contain_text("0 of 3: Text")
    expect(page.get_by_role("link", name="Open")).to_be_hidden()
    server.open(job_id, "Text")
    expect(shown(page)).to_contain_text("1 of 3: Layout")
    expect(shown(page)).to_contain_text("The first result can be opened now. The rest goes on by itself.")
    server.open(job_id, "Layout")
    expect(shown(page)).to_contain_text("2 of 3: Polish")
    expect(button(page, "Cancel")).to_be_visible()
    server.open(job_id)
    expect(shown(page)).to_contain_text("Completed")
    expect(button(page, "Cancel")).to_be_hidden()
    assert [name for name, _ in events(page) if name != "change"] == ["usable", "final"]
    assert [state for name, state in events(page) if name == "change"][-1] == "completed"
    assert page.evaluate("document.querySelector('outlast-job').job.progress") == {"done": 3, "total": 3, "label": None}


def test_the_result_opens_as_soon_as_it_is_usable(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "letter", words="Dear reader")
    server.open(job_id, "Text", "Layout")
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("2 of 3: Polish")
    page.get_by_role("link", name="Open").click()
    page.wait_for_url(f"**/v1/jobs/{job_id}/result")
    assert "Dear reader" in page.content()
    assert server.job(ann.name, job_id)["state"] == "running"


def test_a_reference_of_the_host_is_opened_and_a_dangerous_one_never(server: Host, person: People) -> None:
    ann = person()
    dangerous = ("javascript:alert(1)", "//evil.example/x", "/\\evil.example", "https://evil.example@host/", "data:text/html,x", "report 7")
    good = {"/pages/report": f"{server.url}/pages/report", "https://docs.example/7?a=b#c": "https://docs.example/7?a=b#c"}
    ids = {ref: server.submit(ann.name, "page", ref=ref) for ref in (*good, *dangerous)}
    for job_id in ids.values():
        server.open(job_id)
    page = ann.open(server.page("".join(job(job_id) for job_id in ids.values())))
    for ref, job_id in ids.items():
        link = page.locator(f'outlast-job[href$="{job_id}"]').get_by_role("link", name="Open")
        expect(link).to_be_visible()
        assert link.evaluate("link => link.href") == good.get(ref, f"{server.url}{MOUNT}/v1/jobs/{job_id}/result")


def test_the_host_may_open_results_itself(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    server.open(job_id)
    script = "addEventListener('outlast-open', (event) => { event.preventDefault(); window.opened = event.detail.url; });"
    page = ann.open(server.page(job(job_id), script))
    page.get_by_role("link", name="Open").click()
    assert page.evaluate("opened").endswith(f"/v1/jobs/{job_id}/result")
    assert "/pages/" in page.url


def test_a_cancel_is_confirmed_and_says_what_it_cannot_undo(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("In progress")
    button(page, "Cancel").click()
    expect(shown(page)).to_contain_text("What was printed stays printed.")
    expect(button(page, "No, keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button(page, "Yes, cancel it")).to_be_hidden()
    button(page, "Cancel").click()
    button(page, "No, keep it").click()
    expect(button(page, "Cancel")).to_be_visible()
    assert server.seen("POST", ".*", ann.name) == []
    tag = f'"{server.job(ann.name, job_id)["version"]}.running"'
    button(page, "Cancel").click()
    button(page, "Yes, cancel it").click()
    expect(shown(page)).to_contain_text("Cancelled")
    [sent] = server.seen("POST", ".*", ann.name)
    assert (sent.path.removeprefix(MOUNT), sent.headers["if-match"]) == (f"/v1/jobs/{job_id}/cancel", tag)
    assert server.job(ann.name, job_id)["outcome"] == "user"


def test_a_cancelled_job_says_that_it_is_still_stopping(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "stubborn")
    server.until(ann.name, job_id, lambda now: now["state"] == "running")
    page = ann.open(server.page(job(job_id)))
    button(page, "Cancel").click()
    button(page, "Yes, cancel it").click()
    expect(shown(page)).to_contain_text("Cancelled")
    expect(shown(page)).to_contain_text("still winding down")
    server.open(job_id)


def test_a_stale_cancel_is_explained_with_the_new_state(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id), LOG))
    expect(shown(page)).to_contain_text("0 of 3: Text")
    with server.fault("GET", f"/v1/jobs/{job_id}.*", "silent"):
        server.open(job_id, "Text")
        server.until(ann.name, job_id, lambda now: now["progress"]["done"] == 1)
        button(page, "Cancel").click()
        button(page, "Yes, cancel it").click()
        expect(shown(page)).to_contain_text("Not cancelled: the job had changed meanwhile. It is now: In progress, 1 of 3: Layout.")
        expect(shown(page).locator("[role=status]")).to_contain_text("Not cancelled")
        expect(page.get_by_role("link", name="Open")).to_be_visible()
    assert server.job(ann.name, job_id)["state"] == "running"
    assert ["error", "stale_version"] in events(page)
    button(page, "Cancel").click()
    button(page, "Yes, cancel it").click()
    expect(shown(page)).to_contain_text("Cancelled")
    expect(shown(page)).not_to_contain_text("Not cancelled")


def test_a_cancel_that_comes_too_late_is_explained(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("0 of 3: Text")
    with server.fault("GET", f"/v1/jobs/{job_id}.*", "silent"):
        server.open(job_id)
        server.until(ann.name, job_id, lambda now: now["state"] == "completed")
        button(page, "Cancel").click()
        button(page, "Yes, cancel it").click()
        expect(shown(page)).to_contain_text("Not cancelled: the job had completed before.")
        expect(shown(page)).to_contain_text("Completed")


def test_a_cancel_without_an_answer_is_not_called_done(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("In progress")  # before nothing is heard of it any more
    button(page, "Cancel").click()
    with server.fault("POST", ".*/cancel", "lost"), server.fault("GET", f"/v1/jobs/{job_id}.*", "silent"):
        button(page, "Yes, cancel it").click()
        expect(shown(page)).to_contain_text("Not known to be done: the server did not answer.")
        expect(shown(page)).to_contain_text("In progress")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(shown(page)).to_contain_text("Cancelled")


def test_retry(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "print")
    server.open(job_id)
    page = ann.open(server.page(job(job_id), LOG))
    expect(shown(page)).to_contain_text("Needs you")
    expect(shown(page)).to_contain_text("The printer has no paper.")
    expect(page.get_by_role("link", name="Open")).to_be_visible()
    button(page, "Try again").click()
    expect(shown(page)).to_contain_text("Completed")
    assert [name for name, _ in events(page)].count("attention") == 1
    assert [name for name, _ in events(page)].count("usable") == 1


def test_skip(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "extra")
    server.open(job_id)
    page = ann.open(server.page(job(job_id)))
    button(page, "Go on without it").click()
    expect(shown(page)).to_contain_text("Completed, parts missing")


def test_giving_up_is_confirmed(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "question")
    page = ann.open(server.page(job(job_id)))
    button(page, "Give up this job").click()
    expect(shown(page)).to_contain_text("It ends, and nothing more is done.")
    assert server.seen("POST", ".*", ann.name) == []
    button(page, "Yes, give it up").click()
    expect(shown(page)).to_contain_text("Given up")


def test_an_answer_is_the_hosts(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "question")
    script = """addEventListener("outlast-answer", async (event) => {
        event.preventDefault();
        window.question = event.detail.attention.message;
        window.done = await event.target.act("answer", { colour: "red" });
    });"""
    page = ann.open(server.page(job(job_id, 'page-href="/pages/elsewhere"'), script))
    page.get_by_role("link", name="Answer").click()
    expect(shown(page)).to_contain_text("Completed")
    assert page.evaluate("[question, done]") == ["Which colour should it be?", True]
    assert server.ask(ann.name, "GET", f"/v1/jobs/{job_id}/result/0") == "red"


def test_an_answer_that_no_host_takes_leads_to_the_jobs_page(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "question")
    page = ann.open(server.page(job(job_id)))
    button(page, "Answer").click()
    expect(shown(page)).to_contain_text("This question is answered on the job's own page.")
    elsewhere = server.page("the job's own page")
    page = ann.open(server.page(job(job_id, f'page-href="{elsewhere}#{{id}}"')))
    page.get_by_role("link", name="Answer").click()
    page.wait_for_url(f"{elsewhere}#{job_id}")


def test_a_question_settled_elsewhere_is_explained(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "extra")
    server.open(job_id)
    page = ann.open(server.page(job(job_id)))
    expect(button(page, "Try again")).to_be_visible()
    with server.fault("GET", f"/v1/jobs/{job_id}.*", "silent"):
        question = server.job(ann.name, job_id)["attention"]["id"]
        server.ask(ann.name, "POST", f"/v1/jobs/{job_id}/actions", {"attention_id": question, "action": "skip"})
        button(page, "Try again").click()
        expect(shown(page)).to_contain_text("Not done: this had been decided elsewhere meanwhile.")
        expect(shown(page)).to_contain_text("Completed, parts missing")
    expect(button(page, "Try again")).to_be_hidden()


def test_a_host_may_take_cancel_and_actions_away(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name, "question")
    page = ann.open(server.page(job(job_id, "no-cancel no-actions")))
    expect(shown(page)).to_contain_text("Which colour should it be?")
    expect(shown(page).get_by_role("button")).to_have_count(0)
    page.evaluate("document.querySelector('outlast-job').removeAttribute('no-cancel')")
    expect(button(page, "Cancel")).to_be_visible()


def test_only_a_change_of_the_state_is_announced(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    server.until(ann.name, job_id, lambda now: now["state"] == "running")
    page = ann.open(server.page(job(job_id)))
    status = shown(page).locator("[role=status]")
    expect(shown(page)).to_contain_text("0 of 3: Text")
    server.open(job_id, "Text")
    expect(shown(page)).to_contain_text("1 of 3: Layout")
    expect(status).to_have_text("")
    server.open(job_id)
    expect(status).to_have_text("A letter: Completed")


def test_the_focus_is_not_lost_when_a_button_goes(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    button(page, "Cancel").focus()
    page.keyboard.press("Enter")
    expect(button(page, "No, keep it")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(shown(page)).to_contain_text("Cancelled")
    assert page.evaluate("document.activeElement.localName") == "outlast-job"


def test_what_is_not_there_or_not_yours_is_gone(server: Host, person: People) -> None:
    ann, bob = person(), person()
    foreign = server.submit(bob.name)
    unknown = "01890000-0000-7000-8000-000000000000"
    body = job(foreign) + job(unknown) + '<outlast-job href="/elsewhere"></outlast-job><outlast-job></outlast-job>'
    page = ann.open(server.page(body, LOG))
    for place in range(4):
        expect(shown(page).nth(place)).to_have_text("This job is gone, or it is not yours to see.")
    assert events(page) == [["error", "not_found"], ["error", "not_found"]]  # an address that is none is the host's own mistake


def test_another_address_is_another_job(server: Host, person: People) -> None:
    ann = person()
    first, second = server.submit(ann.name), server.submit(ann.name, "question")
    page = ann.open(server.page(job(first), LOG))
    expect(shown(page)).to_contain_text("A letter")
    page.evaluate("href => document.querySelector('outlast-job').href = href", f"{MOUNT}/v1/jobs/{second}")
    expect(shown(page)).to_contain_text("A question")
    expect(shown(page)).not_to_contain_text("A letter")
    until(page, lambda: [name for name, _ in events(page)].count("attention") == 1)


def test_a_page_that_goes_cancels_nothing(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(job(job_id)))
    expect(shown(page)).to_contain_text("In progress")
    page.evaluate("document.querySelector('outlast-job').remove()")
    page.reload()
    expect(shown(page)).to_contain_text("In progress")
    page.goto("about:blank")
    again = ann.open(server.page(job(job_id)))
    expect(shown(again)).to_contain_text("In progress")
    again.close(run_before_unload=True)
    last = ann.open(server.page(job(job_id)))
    expect(shown(last)).to_contain_text("In progress")
    assert {one.method for one in server.requests} == {"GET"}
    assert server.job(ann.name, job_id)["state"] == "running"


def test_the_list_has_first_what_needs_its_owner(server: Host, person: People) -> None:
    ann = person()
    done, asking, going = server.submit(ann.name), server.submit(ann.name, "question"), server.submit(ann.name)
    server.open(done)
    server.until(ann.name, done, lambda now: now["state"] == "completed")
    server.until(ann.name, asking, lambda now: now["state"] == "needs_attention")
    page = ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>'))
    expect(page.get_by_role("heading")).to_have_text(["Needs you", "Goes on", "Ended"])
    assert order(page) == [asking, going, done]
    new = server.submit(ann.name)
    until(page, lambda: order(page) == [asking, new, going, done])
    server.open(going)
    until(page, lambda: order(page) == [asking, new, going, done] and "Completed" in row(page, going))
    button(page, "Give up this job").click()
    button(page, "Yes, give it up").click()
    until(page, lambda: order(page) == [new, going, asking, done])
    expect(page.get_by_role("heading")).to_have_text(["Goes on", "Ended"])


def order(page: Page) -> list[str]:
    return [href.rpartition("/")[2] for href in page.locator("outlast-jobs outlast-job").evaluate_all("all => all.map(one => one.href)")]


def row(page: Page, job_id: str) -> str:
    return page.locator(f'outlast-jobs outlast-job[href$="{job_id}"]').locator("article").inner_text()


def test_an_old_job_that_needs_its_owner_is_not_hidden_behind_new_ones(server: Host, person: People) -> None:
    ann = person()
    asking = server.submit(ann.name, "question")
    server.until(ann.name, asking, lambda now: now["state"] == "needs_attention")
    for _ in range(4):
        job_id = server.submit(ann.name)
        server.open(job_id)
        server.until(ann.name, job_id, lambda now: now["state"] == "completed")
    page = ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs" limit="2" page-href="/pages/{{id}}"></outlast-jobs>'))
    expect(page.get_by_role("heading")).to_have_text(["Needs you", "Ended"])
    assert len(order(page)) == 2
    assert order(page)[0] == asking
    expect(page.locator("outlast-jobs")).to_contain_text("There are older ones that are not shown here.")
    expect(page.get_by_role("link", name="A question")).to_have_attribute("href", f"/pages/{asking}")


def test_an_empty_list_says_so_and_fills(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>'))
    expect(page.locator("outlast-jobs")).to_contain_text("There is no work of yours here yet.")
    job_id = server.submit(ann.name)
    until(page, lambda: order(page) == [job_id])
    expect(page.locator("outlast-jobs")).not_to_contain_text("There is no work of yours here yet.")


def test_what_a_host_shows_for_an_empty_list_goes_when_it_fills(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs"><b slot="empty">Ask for something.</b></outlast-jobs>'))
    expect(page.get_by_text("Ask for something.")).to_be_visible()
    job_id = server.submit(ann.name)
    until(page, lambda: order(page) == [job_id])
    expect(page.get_by_text("Ask for something.")).to_be_hidden()


def test_a_job_of_a_list_tells_its_host(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>', LOG))
    until(page, lambda: order(page) == [job_id])
    server.open(job_id)
    until(page, lambda: ["final", "completed"] in events(page))
    assert [name for name, _ in events(page)].count("final") == 1
    assert [one["state"] for one in page.evaluate("document.querySelector('outlast-jobs').jobs")] == ["completed"]


def test_the_host_decides_how_it_looks(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    style = """
        outlast-job, outlast-jobs { --outlast-surface: rgb(1, 2, 3); --outlast-radius: 0; }
        ::part(label) { color: rgb(4, 5, 6); }
        ::part(job running) { border-color: rgb(7, 8, 9); }
    """
    body = job(job_id) + f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>'
    page = ann.open(server.page(body, style=style))
    until(page, lambda: order(page) == [job_id])
    expect(page.locator("article.running")).to_have_count(2)
    for place in range(2):
        expect(page.locator(".label").nth(place)).to_have_css("color", "rgb(4, 5, 6)")
        expect(page.locator("article").nth(place)).to_have_css("background-color", "rgb(1, 2, 3)")
        expect(page.locator("article").nth(place)).to_have_css("border-top-color", "rgb(7, 8, 9)")


def test_light_and_dark_follow_the_hosts_page(server: Host, person: People) -> None:
    light, dark = person(color_scheme="light"), person(color_scheme="dark")
    seen: set[str] = set()
    for one in (light, dark):
        job_id = server.submit(one.name)
        page = one.open(server.page(job(job_id)))
        expect(shown(page)).to_contain_text("A letter")
        seen.add(page.locator("article").evaluate("node => getComputedStyle(node).backgroundColor"))
    assert len(seen) == 2


def test_the_words_are_the_hosts(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    script = """import { words } from "/a/jobs/component.js";
        Object.assign(words, { running: "Läuft", progress_now: "{label}: {done} von {total}" });
        document.querySelector("outlast-job").toggleAttribute("no-cancel");"""
    page = ann.open(server.page(job(job_id), script))
    expect(shown(page)).to_contain_text("Läuft")
    expect(shown(page)).to_contain_text("Text: 0 von 3")


def test_text_of_the_server_is_text(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    said = server.job(ann.name, job_id)
    said["label"] = said["cancel_note"] = said["progress"]["label"] = "<img src=x onerror=alert(1)>"
    page = ann.open("about:blank")
    with server.fault("GET", f"/v1/jobs/{job_id}", "answer", status=200, body=json.dumps(said).encode()):
        page.goto(server.page(job(job_id)))
        expect(shown(page)).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.evaluate("document.querySelector('outlast-job').shadowRoot.querySelectorAll('img').length") == 0


def test_a_violated_policy_is_noticed_here(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page("<p onclick='1'>text</p>", "document.body.innerHTML = '<b>text</b>';"))
    until(page, lambda: any("policy violated: script-src-attr" in text for text in ann.said))
    until(page, lambda: any("policy violated: require-trusted-types-for" in text for text in ann.said))
    until(page, lambda: any("uncaught" in text for text in ann.said))
    ann.said.clear()
