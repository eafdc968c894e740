"""submit() and resume(): a request is not lost with its page, and not done twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from browser.host import MOUNT, Host, Seen
from browser.person import MISSING, People, Person, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("playwright.sync_api", reason=MISSING)

HREF = f"{MOUNT}/v1/jobs"
BODY = {"kind": "letter", "input": {"gate": "open"}}
SUBMIT = """async ([href, body, options]) => {
    const { submit } = await import("/a/jobs/component.js");
    try { return await submit(href, body, options ?? {}); }
    catch (error) { return { refused: error.name, status: error.status, code: error.code, kept: error.kept }; }
}"""
RESUME = """async ([href, options]) => {
    const { resume } = await import("/a/jobs/component.js");
    const found = await resume(href, options ?? {});
    return found.map(({ key, name, submitted, error }) => ({ key, name, submitted, error: error && error.code }));
}"""
BEGIN = SUBMIT.replace("async (", "(", 1).replace("=> {", "=> { window.answer = (async () => {", 1) + ")(); return null; }"


def submit(page: Page, body: Any = BODY, **options: Any) -> Any:
    return page.evaluate(SUBMIT, [HREF, body, options])


def begin(page: Page, body: Any = BODY, **options: Any) -> None:
    """Submits without waiting for the answer, which is window.answer."""
    page.evaluate(BEGIN, [HREF, body, options])


def resume(page: Page, **options: Any) -> Any:
    return page.evaluate(RESUME, [HREF, options])


def stored(page: Page) -> list[dict[str, Any]]:
    """What waits in the browser's storage."""
    items: list[str] = page.evaluate("Object.values({ ...localStorage })")
    return [json.loads(item) for item in items]


def posts(server: Host, ann: Person) -> list[Seen]:
    return server.seen("POST", "/v1/jobs", ann.name)


def keys(server: Host, ann: Person) -> set[str]:
    return {one.headers["idempotency-key"] for one in posts(server, ann)}


def test_a_request_is_stored_before_it_is_sent_and_forgotten_with_its_answer(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "silent"):
        begin(page, name="the letter", owner="ann")
        until(page, lambda: posts(server, ann))
        [entry] = stored(page)
        assert entry["key"] == posts(server, ann)[0].headers["idempotency-key"]
        assert json.loads(entry["body"]) == BODY
    answer = page.evaluate("answer")
    [found] = server.jobs_of(ann.name)
    assert (answer["job"]["id"], answer["href"], answer["stored"]) == (found["id"], f"{HREF}/{found['id']}", True)
    assert answer["key"] == entry["key"]
    assert stored(page) == []


def test_credentials_are_not_stored(server: Host, person: People) -> None:
    ann = person()
    ann.sign_out()
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "silent"):
        begin(page, headers={"Authorization": f"Bearer dev:{ann.name}"})
        until(page, lambda: server.seen("POST", "/v1/jobs"))
        assert "Bearer" not in page.evaluate("JSON.stringify({ ...localStorage })")
    assert page.evaluate("answer")["job"]["id"] == server.jobs_of(ann.name)[0]["id"]


def test_a_lost_answer_and_a_reload_make_one_job(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "lost"):
        begin(page, name="the letter")
        until(page, lambda: server.jobs_of(ann.name))
        page.reload()
        assert len(stored(page)) == 1
    [again] = resume(page)
    [found] = server.jobs_of(ann.name)
    assert (again["name"], again["error"], again["submitted"]["job"]["id"]) == ("the letter", None, found["id"])
    assert again["submitted"]["replayed"] is True
    assert len(keys(server, ann)) == 1
    assert stored(page) == []
    assert resume(page) == []


def test_a_lost_answer_is_asked_for_again(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "lost", times=2):
        answer = submit(page)
    assert len(posts(server, ann)) == 3
    assert len(keys(server, ann)) == 1
    [found] = server.jobs_of(ann.name)
    assert answer["job"]["id"] == found["id"]
    assert answer["replayed"] is True


@pytest.mark.parametrize(
    ("status", "code"),
    [(503, "outcome_unknown"), (429, "too_many"), (409, "still_admitting"), (502, ""), (504, ""), (408, "request_timeout")],
)
def test_what_may_succeed_later_is_repeated(server: Host, person: People, status: int, code: str) -> None:
    ann = person()
    page = ann.open(server.page(""))
    body = json.dumps({"code": code}).encode()
    with server.fault("POST", "/v1/jobs", "answer", status=status, body=body, headers={"Retry-After": "1"}, times=2):
        answer = submit(page)
    assert [one.status for one in posts(server, ann)] == [status, status, 202]
    assert len(keys(server, ann)) == 1
    assert {one.body for one in posts(server, ann)[2:]} == {json.dumps(BODY, separators=(",", ":")).encode()}
    assert answer["job"]["id"] == server.jobs_of(ann.name)[0]["id"]
    assert stored(page) == []


def test_a_request_made_offline_goes_out_as_soon_as_it_can(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    page.evaluate("import('/a/jobs/component.js')")
    ann.context.set_offline(True)
    begin(page)
    until(page, lambda: stored(page))
    ann.context.set_offline(False)
    assert page.evaluate("answer")["job"]["id"] == server.jobs_of(ann.name)[0]["id"]


def test_a_refusal_is_forgotten(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    assert submit(page, {"kind": "letter", "input": {"gate": 7}}) == {
        "refused": "SubmitRefused",
        "status": 422,
        "code": "invalid",
        "kept": False,
    }
    assert submit(page, {"kind": "nothing", "input": {}})["code"] == "not_registered"
    assert submit(page, key="two words")["code"] == "invalid_key"
    assert stored(page) == []
    assert len(posts(server, ann)) == 3
    assert server.jobs_of(ann.name) == []


def test_a_quota_that_is_used_up_is_said_and_not_waited_for(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    body = json.dumps({"code": "quota_exceeded", "retryable": True}).encode()
    with server.fault("POST", "/v1/jobs", "answer", status=429, body=body, headers={"Retry-After": "1"}):
        refused = submit(page)
    assert refused == {"refused": "SubmitRefused", "status": 429, "code": "quota_exceeded", "kept": False}
    assert stored(page) == []
    assert submit(page)["job"]["id"] == server.jobs_of(ann.name)[0]["id"]


def test_a_missing_sign_in_refuses_for_now_only(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    ann.sign_out()
    assert submit(page, name="the letter") == {"refused": "SubmitRefused", "status": 401, "code": "unauthenticated", "kept": True}
    assert len(stored(page)) == 1
    ann.sign_in(server.url, ann.name)
    [again] = resume(page)
    assert again["submitted"]["job"]["id"] == server.jobs_of(ann.name)[0]["id"]
    assert stored(page) == []


def test_a_defect_of_the_server_keeps_the_request(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "answer", status=500, body=b'{"code": "internal"}'):
        assert submit(page) == {"refused": "SubmitRefused", "status": 500, "code": "internal", "kept": True}
    assert len(resume(page)) == 1
    assert len(server.jobs_of(ann.name)) == 1


def test_two_tabs_that_resume_at_once_make_one_job(server: Host, person: People) -> None:
    ann = person()
    first = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "silent"):
        begin(first)
        until(first, lambda: posts(server, ann))
        first.reload()
    second = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "answer", status=503, times=1):  # one of the two meets it
        for page in (first, second):
            page.evaluate(f"(given) => {{ window.resumed = ({RESUME})(given); return null; }}", [HREF])
        answers = [page.evaluate("resumed") for page in (first, second)]
    [found] = server.jobs_of(ann.name)
    assert {one["submitted"]["job"]["id"] for answer in answers for one in answer} == {found["id"]}
    assert len(keys(server, ann)) == 1
    assert stored(first) == []


def test_the_same_request_under_the_same_name_is_one(server: Host, person: People) -> None:
    """A double click, and a form that is sent again after a reload."""
    ann = person()
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "silent"):
        begin(page, name="the letter")
        until(page, lambda: posts(server, ann))
        page.reload()
        begin(page, name="the letter")
        until(page, lambda: len(posts(server, ann)) == 2)
        assert len(stored(page)) == 1
    page.evaluate("answer")
    other = submit(page, {"kind": "letter", "input": {"gate": "open", "words": "other"}}, name="the letter")
    assert len(server.jobs_of(ann.name)) == 2
    assert len(keys(server, ann)) == 2
    assert other["replayed"] is False


def test_what_one_person_asked_for_is_not_repeated_by_the_next(server: Host, person: People) -> None:
    ann = person()
    bob = f"{ann.name}-bob"
    page = ann.open(server.page(""))
    with server.fault("POST", "/v1/jobs", "silent"):
        begin(page, owner="ann")
        until(page, lambda: posts(server, ann))
        ann.sign_in(server.url, bob)
        page.reload()
    assert resume(page, owner="bob") == []
    assert resume(page) == []
    assert server.jobs_of(bob) == []
    assert len(stored(page)) == 1


def test_the_caller_ends_the_repeating_and_nothing_is_lost(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    script = """async ([href, body]) => {
        const { submit } = await import("/a/jobs/component.js");
        const ending = new AbortController();
        window.stop = () => ending.abort(new Error("enough"));
        window.answer = submit(href, body, { signal: ending.signal }).catch((error) => error.message);
    }"""
    with server.fault("POST", "/v1/jobs", "answer", status=503, headers={"Retry-After": "3600"}) as refused:
        page.evaluate(script, [HREF, BODY])
        until(page, lambda: refused.met == 1)
        page.evaluate("stop()")
        assert page.evaluate("answer") == "enough"
    assert len(stored(page)) == 1
    assert len(resume(page)) == 1
    assert len(server.jobs_of(ann.name)) == 1


@pytest.mark.parametrize(
    "broken",
    [
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError'); } })",
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }",
    ],
)
def test_a_storage_that_is_blocked_or_full_stops_nobody(server: Host, person: People, broken: str) -> None:
    ann = person()
    ann.context.add_init_script(broken)
    page = ann.open(server.page(""))
    answer = submit(page)
    assert answer["stored"] is False
    assert answer["job"]["id"] == server.jobs_of(ann.name)[0]["id"]
    assert resume(page) == []


def test_what_is_too_old_is_said_and_not_done(server: Host, person: People) -> None:
    ann = person()
    page = ann.open(server.page(""))
    old = {"url": f"{server.url}{HREF}", "key": "old", "name": "the letter", "owner": "", "body": json.dumps(BODY), "at": 1_000_000_000}
    page.evaluate("(old) => { localStorage['outlast submit old'] = JSON.stringify(old); localStorage['outlast submit x'] = '{'; }", old)
    assert resume(page) == [{"key": "old", "name": "the letter", "submitted": None, "error": "expired"}]
    assert posts(server, ann) == []
    assert resume(page) == []


def test_a_page_without_a_secure_context_makes_keys_too(server: Host, person: People) -> None:
    ann = person()
    ann.context.add_init_script("delete Crypto.prototype.randomUUID")
    page = ann.open(server.page(""))
    assert len(submit(page)["key"]) == 32


def test_an_element_shows_what_was_submitted(server: Host, person: People) -> None:
    ann = person()
    script = f"""import {{ submit }} from "/a/jobs/component.js";
        const {{ href }} = await submit("{HREF}", {json.dumps(BODY)});
        const shown = document.createElement("outlast-job");
        shown.href = href;
        document.body.append(shown);"""
    page = ann.open(server.page("", script))
    page.locator("outlast-job").get_by_text("A letter").wait_for()
