"""How elements learn of changes: one stream for a browser, and what is left where there is none."""

from __future__ import annotations

import itertools
import json

import pytest

from browser.host import MOUNT, Host, Kind
from browser.person import MISSING, People, Person, until
from browser.test_component import job, shown

expect = pytest.importorskip("playwright.sync_api", reason=MISSING).expect

STREAM = "/v1/events"
NO_LOCKS = "delete Navigator.prototype.locks"
SPY = f"""window.heard = []; const spy = new BroadcastChannel(`outlast ${{location.origin}}{MOUNT}`);
    spy.onmessage = ({{ data }}) => heard.push(data);"""
HIDE = """Object.defineProperty(document, "hidden", { get: () => window.away === true });
    window.hide = (away) => { window.away = away; document.dispatchEvent(new Event("visibilitychange")); };"""


def streams(server: Host, ann: Person) -> list[bool]:
    """Whether each stream that was asked for is still open."""
    return [one.open for one in server.seen("GET", STREAM, ann.name)]


def letter(server: Host, ann: Person) -> tuple[str, str]:
    """A new job, and the URL of a page that shows it."""
    job_id = server.submit(ann.name)
    return job_id, server.page(job(job_id))


def test_two_tabs_share_one_stream(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    pages = [ann.open(url), ann.open(url), ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>'))]
    for page in pages:
        expect(shown(page)).to_contain_text("0 of 3: Text")
    server.open(job_id, "Text")
    for page in pages:
        expect(shown(page)).to_contain_text("1 of 3: Layout")
    assert streams(server, ann) == [True]
    assert server.seen("GET", r".*[?&]wait=.*", ann.name) == []
    server.open(job_id)
    for page in pages:
        expect(shown(page)).to_contain_text("Completed")


def test_what_the_stream_speaks_of_is_not_asked_for_besides(server: Host, person: People) -> None:
    ann = person()
    page = ann.open("about:blank")
    page.clock.install()
    page.goto(letter(server, ann)[1])
    expect(shown(page)).to_contain_text("In progress")
    until(page, lambda: streams(server, ann) == [True])
    for _ in range(6):
        page.clock.run_for(5_000)
        page.evaluate("fetch('/a/jobs/component.js').then(() => null)")
    assert server.seen("GET", r".*\?wait=25", ann.name) == []
    assert len(server.seen("GET", ".*/jobs/.*", ann.name)) <= 4  # one, and one for each hint that came meanwhile


def test_another_tab_takes_over_when_the_leader_closes(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    leader, heir = ann.open(url), None
    until(leader, lambda: streams(server, ann) == [True])
    heir = ann.open(url)
    expect(shown(heir)).to_contain_text("0 of 3: Text")
    leader.close()
    server.open(job_id, "Text")
    expect(shown(heir)).to_contain_text("1 of 3: Layout")
    until(heir, lambda: streams(server, ann) == [False, True])
    server.open(job_id)
    expect(shown(heir)).to_contain_text("Completed")


def test_a_tab_takes_over_from_a_leader_that_says_nothing(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    holding = f"""const hold = () => {{ window.held = true; return new Promise(() => {{}}); }};
        navigator.locks.request("outlast {server.url}{MOUNT}", hold).catch(() => {{}});"""
    frozen = ann.open(server.page("frozen", holding))
    until(frozen, lambda: frozen.evaluate("window.held"))
    page = ann.open("about:blank")
    page.clock.install()
    page.goto(url)
    expect(shown(page)).to_contain_text("0 of 3: Text")
    assert streams(server, ann) == []
    page.clock.run_for(120_000)
    until(page, lambda: streams(server, ann) == [True])
    server.open(job_id)
    expect(shown(page)).to_contain_text("Completed")


def test_nothing_is_held_open_for_what_has_ended(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    page = ann.open(url)
    until(page, lambda: streams(server, ann) == [True])
    server.open(job_id)
    expect(shown(page)).to_contain_text("Completed")
    until(page, lambda: streams(server, ann) == [False])


def test_a_page_without_locks_has_a_stream_of_its_own(server: Host, person: People) -> None:
    ann = person()
    ann.context.add_init_script(NO_LOCKS)
    ann.context.add_init_script(HIDE)
    job_id, url = letter(server, ann)
    pages = [ann.open(url), ann.open(url)]
    until(pages[0], lambda: streams(server, ann) == [True, True])
    pages[1].evaluate("hide(true)")
    until(pages[0], lambda: streams(server, ann) == [True, False])
    server.open(job_id, "Text")
    expect(shown(pages[0])).to_contain_text("1 of 3: Layout")
    pages[1].evaluate("hide(false)")
    expect(shown(pages[1])).to_contain_text("1 of 3: Layout")
    until(pages[0], lambda: streams(server, ann) == [True, False, True])


def test_offline_says_when_it_was_last_known_and_catches_up(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    page = ann.open(url)
    expect(shown(page)).to_contain_text("0 of 3: Text")
    until(page, lambda: streams(server, ann) == [True])
    expect(shown(page)).not_to_contain_text("Last known")
    ann.context.set_offline(True)
    expect(shown(page)).to_contain_text("Not connected. Last known at ")
    expect(shown(page)).to_contain_text("0 of 3: Text")
    server.open(job_id)
    server.until(ann.name, job_id, lambda now: now["state"] == "completed")
    ann.context.set_offline(False)
    expect(shown(page)).to_contain_text("Completed")
    expect(shown(page)).not_to_contain_text("Last known")


def test_a_server_in_trouble_counts_as_not_connected(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    page = ann.open(url)
    expect(shown(page)).to_contain_text("0 of 3: Text")
    with server.fault("GET", "/v1/.*", "answer", status=503, headers={"Retry-After": "1"}):
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(shown(page)).to_contain_text("Not connected. Last known at ")
        other = ann.open(url)
        expect(shown(other)).to_have_text("Not connected. This appears as soon as the server answers.")
        server.open(job_id)
    expect(shown(page)).to_contain_text("Completed")
    expect(shown(other)).to_contain_text("Completed")


@pytest.mark.parametrize("kind", ["answer", "silent", "buffered"])
def test_without_a_stream_changes_are_waited_for(server: Host, person: People, kind: Kind) -> None:
    """Refused with 429; never answered; or held back by a proxy until it is complete, which it never is."""
    ann = person()
    job_id, url = letter(server, ann)
    with server.fault("GET", STREAM, kind, status=429, headers={"Retry-After": "5"}):
        page = ann.open(url)
        expect(shown(page)).to_contain_text("0 of 3: Text")
        until(page, lambda: any(one.open for one in server.seen("GET", rf"/v1/jobs/{job_id}\?wait=25", ann.name)))
        server.open(job_id, "Text")
        expect(shown(page)).to_contain_text("1 of 3: Layout")
        until(page, lambda: server.seen("GET", rf"/v1/jobs/{job_id}\?wait=25", ann.name)[-1].open)
        server.open(job_id)
        expect(shown(page)).to_contain_text("Completed")


@pytest.mark.parametrize("status", [429, 504])
def test_without_waits_it_is_asked_from_time_to_time(server: Host, person: People, status: int) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    refused = {"status": status, "headers": {"Retry-After": "1"}}
    with server.fault("GET", STREAM, "answer", **refused), server.fault("GET", r".*\?wait=25", "answer", **refused) as waits:
        page = ann.open(url)
        expect(shown(page)).to_contain_text("0 of 3: Text")
        until(page, lambda: waits.met == 1)
        asked = len(server.seen("GET", f"/v1/jobs/{job_id}", ann.name))
        until(page, lambda: len(server.seen("GET", f"/v1/jobs/{job_id}", ann.name)) >= asked + 2)
        assert waits.met == 1
        expect(shown(page)).not_to_contain_text("Last known")
        server.open(job_id)
        expect(shown(page)).to_contain_text("Completed")


def test_polls_become_rarer_while_nothing_changes(server: Host, person: People) -> None:
    ann = person()
    ann.context.add_init_script("""window.times = []; const before = fetch;
        window.fetch = (url, init) => { if (/v1.jobs.[^/?]+$/.test(url)) times.push(Date.now() / 1000); return before(url, init); };""")
    refused = {"status": 429, "headers": {"Retry-After": "3600"}}
    with server.fault("GET", STREAM, "answer", **refused), server.fault("GET", r".*\?wait=25", "answer", **refused):
        page = ann.open("about:blank")
        page.clock.install()
        page.goto(letter(server, ann)[1])
        expect(shown(page)).to_contain_text("In progress")

        def pauses() -> list[float]:
            page.clock.run_for(3_000)
            page.evaluate("fetch('/a/jobs/component.js').then(() => null)")  # meanwhile the answer arrives
            times = page.evaluate("times")
            return [later - earlier for earlier, later in itertools.pairwise(times)]

        until(page, lambda: max(pauses(), default=0) > 40, seconds=60)
        assert min(pauses()[2:6]) < 15
        assert max(pauses()) < 80


def test_a_list_without_a_stream_goes_on_too(server: Host, person: People) -> None:
    ann = person()
    with server.fault("GET", STREAM, "answer", status=429):
        page = ann.open(server.page(f'<outlast-jobs href="{MOUNT}/v1/jobs"></outlast-jobs>'))
        expect(page.locator("outlast-jobs")).to_contain_text("There is no work of yours here yet.")
        job_id = server.submit(ann.name)
        expect(shown(page)).to_contain_text("0 of 3: Text")
        server.open(job_id)
        expect(shown(page)).to_contain_text("Completed")
        assert server.seen("GET", f"/v1/jobs/{job_id}.*", ann.name) == []  # the list asks for its rows


def test_a_stream_that_breaks_is_opened_again(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    page = ann.open(url)
    until(page, lambda: streams(server, ann) == [True])
    with server.fault("GET", STREAM, "answer", status=503, headers={"Retry-After": "1"}, times=1) as refused:
        server.break_streams()
        until(page, lambda: refused.met == 1)
        server.open(job_id)  # while there is no stream
        expect(shown(page)).to_contain_text("Completed")


def test_a_new_stream_is_asked_for_after_a_break(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    page = ann.open(url)
    until(page, lambda: streams(server, ann) == [True])
    server.break_streams()
    until(page, lambda: streams(server, ann) == [False, True])
    server.open(job_id, "Text")
    expect(shown(page)).to_contain_text("1 of 3: Layout")
    assert server.seen("GET", r".*[?&]wait=.*", ann.name) == []


def test_only_newer_versions_are_shown(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    script = "window.log = []; addEventListener('outlast-change', ({ detail }) => log.push([detail.version, detail.state, detail.label]));"
    page = ann.open(server.page(job(job_id), script))
    expect(shown(page)).to_contain_text("In progress")
    said = server.job(ann.name, job_id)
    answers = [
        (50, "running", "Newer"),
        (49, "completed", "Older"),
        (50, "retrying", "Newer"),  # the same version, and another state: what is derived changes without a version
        (1, "queued", "Older"),
        (50, "running", "Newer"),
        (51, "running", "Newest"),
    ]
    for version, state, label in answers:
        body = json.dumps({**said, "version": version, "state": state, "label": label}).encode()
        with server.fault("GET", f"/v1/jobs/{job_id}.*", "answer", status=200, body=body) as fault:
            page.evaluate("dispatchEvent(new Event('online'))")
            until(page, lambda fault=fault: fault.met > 0)
    expect(shown(page)).to_contain_text("Newest")
    assert [entry for entry in page.evaluate("log") if entry[0] >= 49] == [
        [50, "running", "Newer"],
        [50, "retrying", "Newer"],
        [50, "running", "Newer"],
        [51, "running", "Newest"],
    ]
    assert not [entry for entry in page.evaluate("log") if entry[2] == "Older"]


def test_a_hint_of_something_older_is_no_reason_to_ask(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    leader = ann.open(url)
    until(leader, lambda: streams(server, ann) == [True])
    page = ann.open(url)
    expect(shown(page)).to_contain_text("In progress")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    other = ann.open(server.page("another page of the host"))
    say = f"""([id, tags]) => {{ const to = new BroadcastChannel(`outlast ${{location.origin}}{MOUNT}`);
        for (const tag of tags) to.postMessage({{ type: "news", id, tag }}); }}"""
    other.evaluate(say, [job_id, ["0.queued", "0.running"]])
    page.wait_for_timeout(500)  # not for anything to come: for the next hint not to be taken together with these
    other.evaluate(say, [job_id, ["99.running"]])
    until(page, lambda: asked)
    page.wait_for_load_state("networkidle")
    assert len(asked) == 1


def test_a_hidden_page_catches_up_when_it_is_looked_at(server: Host, person: People) -> None:
    ann = person()
    ann.context.add_init_script(HIDE)
    job_id, url = letter(server, ann)
    page = ann.open("about:blank")
    page.clock.install()
    page.goto(url)
    expect(shown(page)).to_contain_text("In progress")
    until(page, lambda: streams(server, ann) == [True])
    other = ann.open(server.page("", SPY))
    until(other, lambda: other.evaluate("window.heard"))  # the leader speaks every 10 s
    page.evaluate("hide(true)")
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))
    page.evaluate("fetch('/a/jobs/component.js')")
    asked = len(server.seen("GET", f"/v1/jobs/{job_id}", ann.name))
    server.open(job_id)
    server.until(ann.name, job_id, lambda now: now["state"] == "completed")
    until(other, lambda: any(one.get("tag", "").endswith(".completed") for one in other.evaluate("heard")))
    assert len(server.seen("GET", f"/v1/jobs/{job_id}", ann.name)) == asked
    expect(shown(page)).to_contain_text("In progress")
    page.clock.resume()
    page.evaluate("hide(false)")
    expect(shown(page)).to_contain_text("Completed")


def test_a_page_that_comes_back_from_the_cache_of_pages_follows_again(server: Host, person: People) -> None:
    ann = person()
    job_id, url = letter(server, ann)
    page = ann.open(url)
    until(page, lambda: streams(server, ann) == [True])
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    until(page, lambda: streams(server, ann) == [False])
    server.open(job_id, "Text")
    server.until(ann.name, job_id, lambda now: now["progress"]["done"] == 1)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(shown(page)).to_contain_text("1 of 3: Layout")
    until(page, lambda: streams(server, ann) == [False, True])
    server.open(job_id)
    expect(shown(page)).to_contain_text("Completed")


def test_a_job_of_somebody_else_is_followed_by_an_operator(server: Host, person: People) -> None:
    """The stream speaks of one's own jobs only."""
    ann = person()
    olga = person(f"{ann.name}-olga:operator")
    job_id, url = letter(server, ann)
    page = olga.open(url)
    expect(shown(page)).to_contain_text("0 of 3: Text")
    until(page, lambda: any(one.open for one in server.seen("GET", rf"/v1/jobs/{job_id}\?wait=25", olga.name)))
    server.open(job_id, "Text")
    expect(shown(page)).to_contain_text("1 of 3: Layout")
    server.open(job_id)
    expect(shown(page)).to_contain_text("Completed")


def test_a_host_without_elements_watches(server: Host, person: People) -> None:
    ann = person()
    job_id = server.submit(ann.name)
    script = f"""import {{ watch }} from "/a/jobs/component.js";
        window.seen = [];
        const note = ({{ status, job, jobs }}) => seen.push([status, job?.state ?? jobs?.length ?? null]);
        window.ends = [watch("{MOUNT}/v1/jobs/{job_id}", note), watch("{MOUNT}/v1/jobs", note)];
        try {{ watch("/elsewhere", note); }} catch (error) {{ window.refused = error.name; }}"""
    page = ann.open(server.page("", script))
    until(page, lambda: ["shown", "running"] in page.evaluate("seen") and ["shown", 1] in page.evaluate("seen"))
    assert page.evaluate("refused") == "TypeError"
    assert page.evaluate("seen[0]") == ["loading", None]
    server.open(job_id)
    until(page, lambda: ["shown", "completed"] in page.evaluate("seen"))
    assert streams(server, ann) == [True]
    page.evaluate("ends.forEach((end) => end())")
    until(page, lambda: streams(server, ann) == [False])
