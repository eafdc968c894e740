"""A job's page in each state: what it says, what it offers, and to whom."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from outlast import Ask, Context, Plan
from outlast.http.page.results import readable
from outlast.worker.runtime import Options
from web.reading import Node, Visitor, action_form, read
from web.shop import Note
from web.site import ANN, BOB, OPS, OTHER, OTHER_OPS, Site, final
from web.world import NOBODYS


async def until(site: Site, kind: str, state: str, **given: Any) -> dict[str, Any]:
    job = await site.submit(kind, **given)
    async with site.working():
        return await site.until(job["id"], lambda j: j["state"] == state)


def state_of(page: Node) -> str:
    return page.one("section", id="state").one("p", class_="state").text


async def test_what_is_accepted_is_said_to_be_stored_and_not_done(small: Site) -> None:
    job = await small.submit()
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    assert state_of(page) == "Waiting to start"
    assert page.one("title").text == "Waiting to start: A note · Outlast"
    state = page.one(id="state").text
    assert "The request is stored and waits for a free worker." in state
    assert "0 of 2 tasks ended" in state
    assert "Success means: The note is written and can be read." in state
    bar = page.one("progress")
    assert (bar.attrs["value"], bar.attrs["max"], bar.attrs["aria-label"]) == ("0", "2", "Progress")
    assert "Accepted and stored" in page.one(id="facts").text
    assert "Results stored none yet" in page.one(id="facts").text
    assert "Nothing yet." in page.one(id="open").text
    assert [task.text for task in page.all("li", class_="task queued")] == ["Text first result Waits for a worker"]
    assert [task.text for task in page.all("li", class_="task blocked")] == ["Polish optional Waits for an earlier task"]
    assert page.one(id="support").text == f"For support: {job['correlation_id']}"
    for never in ("done", "Completed", "Ended"):
        assert never not in page.one("main").text
    moment = page.one(id="facts").one("time")
    assert moment.attrs["datetime"] == job["accepted_at"][:19] + "Z"
    assert moment.text.endswith(" UTC")


async def test_a_cancel_says_before_what_it_cannot_undo(small: Site) -> None:
    job = await small.submit()
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    form = page.one("form", id="cancel-form")
    about = page.one(id=form.one("button").attrs["aria-describedby"]).text
    assert "Results that are stored stay" in about
    assert "A cancel cannot undo: Printed copies stay printed." in about
    assert not page.has(id="rerun-form")


def hold(site: Site) -> asyncio.Event:
    """Registers a kind whose second task goes on, whatever it is told, until the event is set."""
    go = asyncio.Event()

    @site.jobs.task
    async def first(ctx: Context, note: Note) -> str:
        return note.text

    @site.jobs.task
    async def stubborn(ctx: Context, note: Note) -> None:
        ctx.progress("page 3 of 7")
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()

    @site.jobs.kind("held", label="Held")
    def held(plan: Plan[Note], input: Note) -> None:
        plan.task(stubborn, label="Second", after=[plan.task(first, label="First", usable=True)])

    return go


async def test_what_runs_can_be_opened_in_part_and_then_winds_down(small: Site) -> None:
    go = hold(small)
    job = await small.submit("held")
    visitor = Visitor(small)
    async with small.working(Options(lease=60)):
        await small.until(job["id"], lambda j: j["progress"]["done"] == 1 and j["state"] == "running")
        page = await visitor.get(f"/jobs/{job['id']}")
        assert state_of(page) == "In progress can be opened"
        assert "The first result can be opened now." in page.one(id="state").text
        assert "1 of 2 tasks ended. Now: Second" in page.one(id="state").text
        assert page.one("a", id="result").attrs["href"] == f"/jobs/{job['id']}/result"
        page = await visitor.follow(await visitor.send(page, "cancel-form"))
        assert state_of(page) == "Cancelled still stopping"
        assert "A worker is still winding down." in page.one(id="state").text
        assert "What could be opened before can still be opened." in page.one(id="state").text
        assert page.one("main").attrs["data-tag"].endswith(".cancelled.stopping")
        assert "data-pace" in page.one("main").attrs
        go.set()
        await small.until(job["id"], lambda j: not j["stopping"])
    assert state_of(await visitor.get(f"/jobs/{job['id']}")) == "Cancelled"


async def test_what_completed_says_the_kinds_own_sentence_and_offers_no_cancel(site: Site) -> None:
    job = await until(site, "note", "completed")
    page = await Visitor(site).get(f"/jobs/{job['id']}")
    assert page.one(id="state").one("p", class_="lead").text == "The note is written and can be read."
    assert "Success means" not in page.one("main").text
    assert not page.has(id="cancel-form")
    assert page.has(id="rerun-form")
    assert "Results stored 2 of 2 tasks" in page.one(id="facts").text
    assert page.one("a", id="task-read-1").attrs["href"] == f"/jobs/{job['id']}/result/1"
    assert "data-pace" not in page.one("main").attrs
    assert not page.has("meta", http_equiv="refresh")
    rows = [row.text for row in page.one("details", id="past-details").one("tbody").all("tr")]
    assert [row.split(" completed ")[0] for row in rows] == ["Text 1", "Polish 1"]


async def test_what_needs_somebody_asks_and_offers_exactly_what_the_question_offers(site: Site) -> None:
    for kind, message, actions in (
        ("question", "Which colour should it be?", ["answer", "dismiss"]),
        ("extra", "Go on without the extra?", ["retry", "skip", "dismiss"]),
        ("print", "The printer has no paper.", ["retry", "dismiss"]),
    ):
        job = await until(site, kind, "needs_attention")
        page = await Visitor(site).get(f"/jobs/{job['id']}")
        question = page.one("article", id="question-1")
        assert question.one("p", class_="message").text == message
        assert [form.attrs["data-action"] for form in question.all("form")] == actions
        assert [form.one("button").text for form in question.all("form")] == [offered["label"] for offered in job["attention"]["actions"]]
        ends = "this optional part is left out" if kind == "extra" else "the job is given up"
        assert ends in question.text
        for form in question.all("form"):
            assert form.one("input", name="attention_id").attrs["value"] == job["attention"]["id"]
        assert not page.has("meta", http_equiv="refresh"), "a form in use would be lost"
        assert state_of(page).startswith("Needs you")


async def test_a_page_looks_again_by_itself_while_something_goes_on(small: Site) -> None:
    job = await small.submit()
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    meta = page.one("head").one("noscript").one("meta")
    assert meta.attrs["http-equiv"] == "refresh"
    assert int(meta.attrs["content"]) >= 5
    assert meta.attrs["content"] == page.one("main").attrs["data-pace"]
    assert page.one("a", id="look-again").attrs["href"] == f"/jobs/{job['id']}"


async def test_what_is_cancelled_says_so_and_what_stays(small: Site) -> None:
    job = await small.submit()
    await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    assert state_of(page) == "Cancelled"
    assert "A cancel cannot undo: Printed copies stay printed." in page.one(id="state").text
    assert "Nothing: it ended before a first result was stored." in page.one(id="open").text
    assert not page.has(id="cancel-form")
    assert page.has(id="rerun-form")


async def test_what_was_given_up_and_what_lacks_parts(site: Site) -> None:
    job = await until(site, "extra", "needs_attention")
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{job['id']}")
    async with site.working():
        await visitor.follow(await visitor.send(page, action_form(page, "skip")))
        await site.until(job["id"], final)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert state_of(page) == "Completed, parts missing"
    assert [task.text for task in page.all("li", data_state="skipped")] == ["Extra optional Left out unsure"]
    other = await until(site, "extra", "needs_attention")
    page = await visitor.get(f"/jobs/{other['id']}")
    page = await visitor.follow(await visitor.send(page, action_form(page, "dismiss")))
    assert state_of(page) == "Given up"


async def test_an_operator_sees_the_job_and_may_control_it_but_sees_no_content(site: Site) -> None:
    for kind, offered in (("print", ["retry"]), ("question", [])):
        job = await until(site, kind, "needs_attention")
        page = await Visitor(site, OPS).get(f"/jobs/{job['id']}")
        assert "You see this job as an operator." in page.one("main").text
        assert state_of(page).startswith("Needs its owner")
        assert [form.attrs["data-action"] for form in page.one("article", id="question-1").all("form")] == offered
        assert page.has(id="cancel-form")
        assert not page.has("details")
        assert not any("/result" in link.attrs["href"] for link in page.all("a"))
    done = await until(site, "note", "completed")
    page = await Visitor(site, OPS).get(f"/jobs/{done['id']}")
    assert "Only its owner can open it." in page.one(id="open").text
    assert page.has(id="rerun-form")
    assert not any("/result" in link.attrs["href"] for link in page.all("a"))
    assert "hello" not in page.text
    for path in ("result", "result/0"):
        refused = await Visitor(site, OPS).get(f"/jobs/{done['id']}/{path}", status=403)
        assert refused.one("h1").text == "You may not do this"


@pytest.mark.parametrize("path", ["", "/result", "/result/0"])
async def test_unknown_and_foreign_are_one_page(small: Site, path: str) -> None:
    job = await until(small, "note", "completed")
    bodies: set[bytes] = set()
    for who, named in ((BOB, job["id"]), (OTHER, job["id"]), (OTHER_OPS, job["id"]), (ANN, NOBODYS), (ANN, "17"), (ANN, "x" * 200)):
        answer = await small.call("GET", f"/jobs/{named}{path}", who, headers={"X-Request-Id": "one"})
        assert answer.status == 404
        assert read(answer).one("h1").text == "Nothing is here for you"
        bodies.add(answer.body)
    assert len(bodies) == 1


async def test_of_many_questions_the_oldest_are_shown_and_the_others_counted(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlast.http.page.portrait.MOST_QUESTIONS", 2)

    @small.jobs.task
    async def unsure(ctx: Context, note: Note) -> None:
        raise Ask("unsure", "Go on?")

    @small.jobs.kind("many")
    def many(plan: Plan[Note], input: Note) -> None:
        for number in range(3):
            plan.task(unsure, label=f"Question {number}")

    job = await small.submit("many")
    async with small.working():
        await small.until(job["id"], lambda j: j["attention_count"] == 3)
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    assert len([*page.all("article")]) == 2
    assert "In all: 3." in page.one(id="questions").text


async def test_results_are_readable_as_text_or_as_json(small: Site) -> None:
    job = await until(small, "note", "completed", text="First line\n  <b>second</b> \u05d0\u05d1")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}/result")
    output = page.one("pre", id="output")
    assert output.raw == "\nFirst line\n  <b>second</b> \u05d0\u05d1"
    assert output.attrs["dir"] == "auto"
    assert page.one("a", id="raw").attrs["href"] == f"/v1/jobs/{job['id']}/result"
    page = await visitor.get(f"/jobs/{job['id']}/result/1")
    assert page.one("h1").text == "Result of Polish"
    assert page.one("a", id="raw").attrs["href"] == f"/v1/jobs/{job['id']}/result/1"
    for named in ("7", "x", "-1", "1e3", "9" * 30):
        assert (await visitor.get(f"/jobs/{job['id']}/result/{named}", status=404)).one("h1")


def test_what_turns_the_text_around_it_is_written_out_in_json() -> None:
    shown = readable('{"a": "x\u202ey", "b": "\u05d0\u200b"}')
    assert (shown.plain, shown.text) == (False, '{\n  "a": "x\\u202ey",\n  "b": "\u05d0\\u200b"\n}')
    assert readable('"x\u202ey"').text == "x\u202ey", "a text is shown as it is"
    assert [readable(body).empty for body in ("null", '" "', "0", "[]")] == [True, True, False, False]


async def test_a_result_that_is_not_there_is_explained(small: Site) -> None:
    job = await small.submit()
    page = await Visitor(small).get(f"/jobs/{job['id']}/result", status=409)
    assert page.one("h1").text == "There is no result yet"
    assert page.one("a", id="to-job").attrs["href"] == f"/jobs/{job['id']}"
