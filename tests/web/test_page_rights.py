"""What the page says of rights and data of now, and of what an answer looks like."""

from __future__ import annotations

from typing import Any

import pytest

from web.reading import Node, Visitor, action_form, read
from web.site import Site, final


async def asking(site: Site, kind: str, text: str = "hello") -> dict[str, Any]:
    sent = {"kind": kind, "input": {"text": text}}
    job = (await site.call("POST", "/v1/jobs", json_body=sent, headers={"Idempotency-Key": "k"})).json
    async with site.working():
        return await site.until(job["id"], lambda j: j["state"] == "needs_attention")


def question(page: Node) -> Node:
    return page.one("article", id="question-1")


async def test_a_right_that_has_ended_is_said_in_words(small: Site) -> None:
    job = await asking(small, "revoked")
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    assert "You may no longer have this done" in question(page).one("p", class_="message").text
    assert "The right to have this done has ended since it was asked for." in page.one("main").text
    assert "You may no longer have this done" in (await Visitor(small).get("/")).one("main").text


@pytest.mark.parametrize(("text", "said"), [("The invoice was deleted.", "The invoice was deleted."), (" ", "is no longer there")])
async def test_a_reference_that_has_vanished_is_said_in_words(small: Site, text: str, said: str) -> None:
    """In the handler's own, or, where it has none, in ours."""
    job = await asking(small, "vanish", text)
    page = await Visitor(small).get(f"/jobs/{job['id']}")
    assert said in question(page).one("p", class_="message").text
    assert "What it was to work on is no longer there." in page.one("main").text
    assert said in (await Visitor(small).get("/")).one("main").text


async def test_a_question_says_what_its_answer_looks_like(small: Site) -> None:
    job = await asking(small, "question")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert "JSON, an object with colour." in question(page).text
    answer = await visitor.send(page, action_form(page, "answer"), input='{"colour": 7, "shade": 1}')
    assert answer.status == 422
    refused = read(answer)
    assert "/colour: is a whole number, not text" in refused.one(id="wrong-1").text
    assert "/shade: not a known member" in refused.one(id="wrong-1").text
    assert "shade" in refused.one("textarea").text, "what was typed is kept"
    await visitor.follow(await visitor.send(refused, action_form(refused, "answer"), input='{"colour": "red"}'))


@pytest.mark.parametrize("typed", ["Anna", "5", "true", "null", '"quoted"', "[1, 2]"])
async def test_a_text_that_is_json_by_accident_is_the_text(small: Site, typed: str) -> None:
    job = await asking(small, "name")
    visitor = Visitor(small)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert "Plain text." in question(page).text
    await visitor.follow(await visitor.send(page, action_form(page, "answer"), input=typed))
    async with small.working():
        await small.until(job["id"], final)
    assert (await small.call("GET", f"/v1/jobs/{job['id']}/result")).json == typed
