"""The page's forms from end to end: what they do, twice, too late, with a wrong token, and with what is not theirs."""

from __future__ import annotations

from typing import Any

import pytest

from web.reading import FORM, Node, Visitor, action_form, read
from web.site import BOB, OPS, Answer, Site, final


async def asking(site: Site, kind: str) -> dict[str, Any]:
    job = await site.submit(kind)
    async with site.working():
        return await site.until(job["id"], lambda j: j["state"] == "needs_attention")


async def job_of(site: Site, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = (await site.call("GET", f"/v1/jobs/{job_id}")).json
    return job


def notice(answer: Answer) -> tuple[int, str]:
    return answer.status, read(answer).one("h2", id="notice-title").text


async def test_cancel_and_the_same_form_again(site: Site) -> None:
    job = await site.submit()
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    first = await visitor.send(page, "cancel-form")
    again = await visitor.send(page, "cancel-form")
    assert (first.status, first.headers["location"]) == (again.status, again.headers["location"]) == (303, f"/jobs/{job['id']}")
    assert (await visitor.follow(first)).one("section", id="state").one("p", class_="state").text == "Cancelled"
    assert (await job_of(site, job["id"]))["version"] == 2


async def test_a_stale_cancel_is_explained_on_the_page_as_it_stands_now(site: Site) -> None:
    job = await site.submit("print")
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    async with site.working():
        await site.until(job["id"], lambda j: j["state"] == "needs_attention")
    elsewhere = await site.submit()
    answer = await visitor.send(await visitor.get(f"/jobs/{elsewhere['id']}"), "cancel-form", version="7")
    assert notice(answer)[0] == 412
    assert not read(answer).has("noscript"), "an answer to a form has no address to look at again"
    answer = await visitor.send(page, "cancel-form")
    assert notice(answer) == (412, "Not done: the job had changed")
    now = read(answer)
    assert "nothing was done" in now.one("section", id="notice").text
    assert now.one("title").text.startswith("Not done")
    assert now.one(id="state").one("p", class_="state").text.startswith("Needs you")
    assert now.one("main").attrs["data-outlast-page"] == f"/jobs/{job['id']}"
    assert (await job_of(site, job["id"]))["state"] == "needs_attention"
    await visitor.follow(await visitor.send(now, "cancel-form"))
    assert (await job_of(site, job["id"]))["state"] == "cancelled"


async def test_a_cancel_of_what_had_completed_is_explained(site: Site) -> None:
    job = await site.submit()
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    async with site.working():
        await site.until(job["id"], final)
    answer = await visitor.send(page, "cancel-form")
    assert notice(answer) == (409, "Not cancelled: the job had completed before")
    assert read(answer).has(id="rerun-form")


@pytest.mark.parametrize("typed", ['{"colour": "red"}', '\r\n {"colour":\r\n"red"} '])
async def test_an_answer_goes_on_with_the_job_and_the_same_form_again_succeeds(site: Site, typed: str) -> None:
    job = await asking(site, "question")
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    first = await visitor.send(page, action_form(page, "answer"), input=typed)
    again = await visitor.send(page, action_form(page, "answer"), input=typed)
    assert (first.status, first.headers["location"]) == (again.status, again.headers["location"]) == (303, f"/jobs/{job['id']}")
    assert not (await visitor.follow(first)).has("article", id="question-1")
    async with site.working():
        await site.until(job["id"], lambda j: j["state"] == "completed")
    assert (await site.call("GET", f"/v1/jobs/{job['id']}/result")).json == "red"


async def test_plain_text_is_an_answer_too(small: Site) -> None:
    job = await asking(small, "name")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert (await visitor.send(page, action_form(page, "answer"), input="red, please")).status == 303
    same = {"attention_id": job["attention"]["id"], "action": "answer", "input": "red, please"}
    assert (await small.call("POST", f"/v1/jobs/{job['id']}/actions", json_body=same)).status == 200, "the same request came before"


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("", "Write an answer first."),
        (" \r\n ", "Write an answer first."),
        ('{"colour": red}', "The answer is not JSON at line 1, column 12"),
        ('[1, 1e999, "</textarea><script>alert(1)</script>"]', "NaN or infinite"),
        ("a\x00b", "NUL character"),
    ],
)
async def test_what_is_no_answer_is_explained_beside_the_field_and_kept(small: Site, typed: str, wrong: str) -> None:
    job = await asking(small, "question")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    answer = await visitor.send(page, action_form(page, "answer"), input=typed)
    assert notice(answer) == (422, "Not sent: please look at your answer")
    page = read(answer)
    field = page.one("textarea")
    assert field.raw.removeprefix("\n") == typed.replace("\r\n", "\n")
    assert field.attrs["aria-invalid"] == "true"
    assert "autofocus" in field.attrs
    (beside,) = (page.one(id=name).text for name in field.attrs["aria-describedby"].split() if name.startswith("wrong"))
    assert wrong in beside
    assert all(node.attrs.get("src") for node in page.all("script"))
    assert (await job_of(small, job["id"]))["version"] == job["version"]


async def test_an_answer_too_late_is_kept_to_copy(site: Site) -> None:
    job = await asking(site, "question")
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    await site.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    answer = await visitor.send(page, action_form(page, "answer"), input='{"colour": "<i>long</i> & thought through"}')
    assert notice(answer) == (409, "Not done: the question had been settled before")
    assert read(answer).one("pre", id="kept").raw == '{"colour": "<i>long</i> & thought through"}'


async def test_retry_skip_and_dismiss(site: Site) -> None:
    visitor = Visitor(site)
    job = await asking(site, "print")
    page = await visitor.get(f"/jobs/{job['id']}")
    page = await visitor.follow(await visitor.send(page, action_form(page, "retry")))
    assert not page.has("article", id="question-1")
    async with site.working():
        again = await site.until(job["id"], lambda j: j["attention"] is not None)
    assert again["attention"]["id"] != job["attention"]["id"]
    page = await visitor.get(f"/jobs/{job['id']}")
    await visitor.follow(await visitor.send(page, action_form(page, "dismiss")))
    assert (await job_of(site, job["id"]))["outcome"] == "abandoned"
    job = await asking(site, "extra")
    page = await visitor.get(f"/jobs/{job['id']}")
    await visitor.follow(await visitor.send(page, action_form(page, "skip")))
    assert (await job_of(site, job["id"]))["outcome"] == "succeeded_with_problems"


async def test_what_the_question_does_not_offer_is_refused_in_words(small: Site) -> None:
    job = await asking(small, "print")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    for action in ("skip", "explode"):
        answer = await visitor.send(page, action_form(page, "retry"), action=action)
        assert notice(answer) == (422, "Not done: this is not offered here")
    assert (await job_of(small, job["id"]))["version"] == job["version"]


async def test_rerun_and_the_same_form_again(site: Site) -> None:
    job = await site.submit(text="once more")
    visitor = Visitor(site)
    async with site.working():
        await site.until(job["id"], final)
    page = await visitor.get(f"/jobs/{job['id']}")
    first = await visitor.send(page, "rerun-form")
    again = await visitor.send(page, "rerun-form")
    assert first.headers["location"] == again.headers["location"] != f"/jobs/{job['id']}"
    made = await visitor.follow(first)
    assert made.one("a", id="rerun-of").attrs["href"] == f"/jobs/{job['id']}"
    other = await visitor.send(await visitor.get(f"/jobs/{job['id']}"), "rerun-form")
    assert other.headers["location"] != first.headers["location"], "a form that was shown anew asks anew"


async def test_what_has_not_ended_is_not_run_again(small: Site) -> None:
    job = await small.submit()
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    answer = await visitor.send(page, "cancel-form", version=None)
    assert answer.status == 422
    token = page.one("form", id="cancel-form").one("input", name="token").attrs["value"]
    refused = await visitor.post(f"/jobs/{job['id']}/rerun", {"token": token, "key": "k"})
    assert notice(refused) == (409, "Not run again: the job has not ended")


async def test_what_there_is_no_room_for_is_not_run_again(small: Site) -> None:
    job = await small.submit("few")
    visitor = Visitor(small)
    page = await visitor.follow(await visitor.send(await visitor.get(f"/jobs/{job['id']}"), "cancel-form"))
    for _ in range(2):
        await small.submit("few")
    refused = await visitor.send(page, "rerun-form")
    assert notice(refused) == (429, "Not run again: too much of this kind is unfinished")
    assert refused.headers["retry-after"] == "5"
    assert len((await small.call("GET", "/v1/jobs")).json["items"]) == 3


async def test_an_operator_cancels_retries_and_reruns_but_does_not_decide(site: Site) -> None:
    visitor = Visitor(site, OPS)
    job = await asking(site, "print")
    page = await visitor.get(f"/jobs/{job['id']}")
    forged = await visitor.send(page, action_form(page, "retry"), action="dismiss")
    assert forged.status == 403
    assert read(forged).one("a", id="to-job").attrs["href"] == f"/jobs/{job['id']}"
    await visitor.follow(await visitor.send(page, action_form(page, "retry")))
    page = await visitor.follow(await visitor.send(await visitor.get(f"/jobs/{job['id']}"), "cancel-form"))
    made = await visitor.send(page, "rerun-form")
    assert (await site.call("GET", f"/v1{made.headers['location']}")).json["rerun_of"] == job["id"], "it is the owner's"


FORMS = ("cancel", "actions", "rerun")


def some_form(job: dict[str, Any], name: str) -> dict[str, str]:
    return {
        "cancel": {"version": str(job["version"])},
        "actions": {"attention_id": (job["attention"] or {"id": "x"})["id"], "action": "dismiss"},
        "rerun": {"key": "some-key"},
    }[name]


@pytest.mark.parametrize("name", FORMS)
async def test_a_form_without_the_right_token_does_nothing(small: Site, name: str) -> None:
    job = await asking(small, "print")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    token = page.one("form", id="cancel-form").one("input", name="token").attrs["value"]
    fields = some_form(job, name)
    kept = dict(visitor.cookies)
    for sent, cookies in (
        (fields, kept),
        (fields | {"token": ""}, kept),
        (fields | {"token": "A" * 43}, kept),
        (fields | {"token": token[:-1]}, kept),
        (fields | {"token": token}, {}),
        (fields | {"token": ""}, {"outlast_form": ""}),
        (fields | {"token": "x"}, {"outlast_form": "x"}),
    ):
        visitor.cookies = dict(cookies)
        answer = await visitor.post(f"/jobs/{job['id']}/{name}", sent)
        assert answer.status == 403
        refused = read(answer)
        assert refused.one("section", id="refusal").attrs["data-code"] == "stale_form"
        assert "Reload the page and try again." in refused.text
    assert (await job_of(small, job["id"]))["version"] == job["version"]
    visitor.cookies = kept
    assert (await visitor.post(f"/jobs/{job['id']}/{name}", fields | {"token": token})).status == (409 if name == "rerun" else 303)


@pytest.mark.parametrize("name", FORMS)
async def test_who_may_not_see_the_job_gets_the_one_404_whatever_the_form_holds(small: Site, name: str) -> None:
    job = await asking(small, "print")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    token = page.one("form", id="cancel-form").one("input", name="token").attrs["value"]
    for sent in ({}, some_form(job, name) | {"token": token}):
        assert (await Visitor(small, BOB, cookies=dict(visitor.cookies)).post(f"/jobs/{job['id']}/{name}", sent)).status == 404
    assert (await job_of(small, job["id"]))["version"] == job["version"]


async def test_forms_of_another_shape_are_refused_before_anything_is_done(small: Site) -> None:
    job = await small.submit()
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    token = page.one("form", id="cancel-form").one("input", name="token").attrs["value"]
    path = f"/jobs/{job['id']}/cancel"
    good = f"token={token}&version=1".encode()
    for body, media_type, status in (
        (good, "text/plain", 415),
        (good, "multipart/form-data; boundary=x", 415),
        (good, "application/json", 415),
        (good, "", 415),
        (good, f"{FORM}; charset=latin-1", 415),
        (good + b"&version=1", FORM, 422),
        (good + b"&token=" + token.encode(), FORM, 422),
        (good + b"&tenant=globex", FORM, 422),
        (good.replace(b"version=1", b"version=one"), FORM, 422),
        (good.replace(b"version=1", b"version=-1"), FORM, 422),
        (good.replace(b"version=1", "version=\uff11".encode()), FORM, 400),
        (good.replace(b"version=1", b"version=%EF%BC%91"), FORM, 422),
        (good.replace(b"version=1", b"version=%C3%28"), FORM, 400),
        (good.replace(b"version=1", b"version=%zz"), FORM, 400),
        (good + b"&&x", FORM, 400),
        (good + b"&a=" * 20, FORM, 400),
        (good + b"&version=" + b"1" * 20_000, FORM, 413),
        (b"\xff\x00", FORM, 400),
    ):
        answer = await visitor.fetch("POST", path, body=body, content_type=media_type)
        assert answer.status == status, (body[:200], media_type, answer)
        assert read(answer).one("h1")
    assert (await visitor.fetch("POST", path, body=b"", content_type=FORM)).status == 403, "no token in it"
    assert (await job_of(small, job["id"]))["version"] == 1
    assert (await visitor.fetch("POST", path, body=good, content_type=f"{FORM}; charset=UTF-8")).status == 303


async def test_a_form_that_another_site_sends_is_refused_as_a_page(small: Site) -> None:
    job = await small.submit()
    headers = {"Content-Type": FORM, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example", "Accept": "text/html"}
    answer = await small.call("POST", f"/jobs/{job['id']}/cancel", body=b"version=1", headers=headers)
    assert answer.status == 403
    assert read(answer).one("section", id="refusal").attrs["data-code"] == "cross_site"


async def test_the_token_is_one_for_a_browser_and_stays(small: Site) -> None:
    job = await small.submit()
    visitor = Visitor(small)

    def token(page: Node) -> str:
        return page.one("form", id="cancel-form").one("input", name="token").attrs["value"]

    first = token(await visitor.get(f"/jobs/{job['id']}"))
    assert visitor.cookies == {"outlast_form": first}
    assert token(await visitor.get(f"/jobs/{job['id']}")) == first
    assert token(await Visitor(small).get(f"/jobs/{job['id']}")) != first
    again = await visitor.fetch("GET", f"/jobs/{job['id']}")
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize(
    ("kind", "hint", "typed", "result"),
    [
        ("name", "Plain text.", "42", "42"),
        ("name", "Plain text.", "null", "null"),
        ("name", "Plain text.", "{not json", "{not json"),
        ("count", "A whole number, such as 42.", " 42 ", 42),
        ("question", "JSON, an object with colour.", '{"colour": "42"}', "42"),
    ],
)
async def test_an_answer_is_taken_as_the_question_wants_it(small: Site, kind: str, hint: str, typed: str, result: object) -> None:
    job = await asking(small, kind)
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert page.one(id="hint-1").text == hint
    for _ in range(2):
        assert (await visitor.send(page, action_form(page, "answer"), input=typed)).status == 303
    async with small.working():
        assert (await small.until(job["id"], final))["state"] == "completed"
    assert (await small.call("GET", f"/v1/jobs/{job['id']}/result")).json == result


@pytest.mark.parametrize(
    ("kind", "typed", "wrong"),
    [
        ("count", "many", "is text, not a whole number"),
        ("count", "null", "is null, not a whole number"),
        ("count", "4.5", "is a number, not a whole number"),
        ("question", "red", "is text, not an object"),
        ("question", "{}", "/colour: missing"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_in_words(small: Site, kind: str, typed: str, wrong: str) -> None:
    job = await asking(small, kind)
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    answer = await visitor.send(page, action_form(page, "answer"), input=typed)
    assert notice(answer)[0] == 422
    assert wrong in read(answer).one(id="wrong-1").text
    assert read(answer).one("textarea").raw.removeprefix("\n") == typed
    assert (await job_of(small, job["id"]))["version"] == job["version"]


async def test_the_answer_leads(small: Site) -> None:
    job = await asking(small, "count")
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    forms = page.one("article", id="question-1").all("form")
    assert [(form.attrs["data-action"], form.one("button").attrs["class"]) for form in forms] == [
        ("answer", "main"),
        ("retry", "other"),
        ("dismiss", "danger"),
    ]


@pytest.mark.parametrize(("said", "calls"), [("happened", 1), ("happened-not", 2)])
async def test_whether_a_call_happened_is_a_button(site: Site, said: str, calls: int) -> None:
    job = await asking(site, "letter")
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert not page.one("article", id="question-1").has("textarea")
    assert (await visitor.send(page, action_form(page, said))).status == 303
    async with site.working():
        ended = await site.until(job["id"], lambda j: j["state"] == ("completed" if calls == 1 else "needs_attention"))
    assert ended["state"] == "completed" or ended["attention"]["id"] != job["attention"]["id"], "it was tried again, and is lost again"


async def test_a_call_with_an_outcome_is_a_button_only_if_it_did_not_happen(site: Site) -> None:
    job = await asking(site, "charge")
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    question = page.one("article", id="question-1")
    assert not question.has("form", data_action="happened")
    assert question.has("form", data_action="happened-not")
    assert "an object with happened, outcome (optional)" in question.text
    wrong = await visitor.send(page, action_form(page, "answer"), input='{"happened": true}')
    assert wrong.status == 422
    assert "/outcome: missing" in read(wrong).one("p", id="wrong-1").text
    assert (await visitor.send(page, action_form(page, "answer"), input='{"happened": true, "outcome": "c-7"}')).status == 303
