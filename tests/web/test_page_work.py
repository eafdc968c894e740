"""The list of all work: its order, its pages, and what it says when there is nothing."""

from __future__ import annotations

import pytest

from outlast.http.page import work
from web.reading import Node, Visitor
from web.site import BOB, OPS, Site, final


def rows(page: Node, section: str) -> list[str]:
    return [row.attrs["data-job"] for row in page.one("section", id=f"section-{section}").all("li", class_="row")]


async def test_nothing_is_said_in_words(small: Site) -> None:
    page = await Visitor(small).get("/")
    assert page.one("title").text == "Your work · Outlast"
    assert "There is no work of yours here yet." in page.one("main").text
    assert not page.has("noscript")


async def test_what_needs_you_stands_first_then_what_goes_on_then_what_has_ended(site: Site) -> None:
    old, asks = await site.submit(), await site.submit("question")
    async with site.working():
        await site.until(old["id"], final)
        await site.until(asks["id"], lambda j: j["state"] == "needs_attention")
    waits, given_up = await site.submit(), await site.submit()
    await site.call("POST", f"/v1/jobs/{given_up['id']}/cancel", headers={"If-Match": "*"})
    await site.submit(who=BOB)
    page = await Visitor(site).get("/")
    assert [one.attrs["id"] for one in page.all("section")] == ["section-needs", "section-going", "section-done"]
    assert [one.text for one in page.all("h2")] == ["Needs you 1", "Goes on 1", "Ended 2"]
    assert [rows(page, name) for name in ("needs", "going", "done")] == [[asks["id"]], [waits["id"]], [given_up["id"], old["id"]]]
    (asked,) = page.all("li", data_job=asks["id"])
    assert asked.one("p", class_="excerpt").text == "Which colour should it be?"
    assert asked.attrs["data-announce"] == "A question: Needs you. 0 of 1 task ended."
    (ended,) = page.all("li", data_job=old["id"])
    assert ended.one("a", id=f"open-{old['id']}").attrs["href"] == f"/jobs/{old['id']}/result"
    assert ended.one("a", class_="title").attrs["href"] == f"/jobs/{old['id']}"
    assert int(page.one("head").one("noscript").one("meta").attrs["content"]) >= 5


async def test_sections_without_anything_say_so(small: Site) -> None:
    await small.submit()
    page = await Visitor(small).get("/")
    assert "Nothing needs you." in page.one(id="section-needs").text
    assert "Nothing has ended yet." in page.one(id="section-done").text


async def test_an_operator_finds_their_own_work_here(small: Site) -> None:
    await small.submit()
    assert "There is no work of yours here yet." in (await Visitor(small, OPS).get("/")).text


async def test_what_has_ended_is_read_page_by_page_and_no_job_is_missed(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(work._SECTIONS, "done", work._Section(None, lambda job: job.final, 3))
    ended: list[str] = []
    for number in range(8):
        job = await small.submit()
        if number % 4:  # those between stay open
            await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
            ended.insert(0, job["id"])
    visitor = Visitor(small)
    page = await visitor.get("/")
    found = rows(page, "done")
    assert found == ended[:3]
    page = await visitor.get(page.one("a", id="more-done").attrs["href"])
    assert page.one("h1").text == "Your work: Ended, older"
    assert "data-outlast-page" not in page.one("main").attrs, "an older page is not kept up to date"
    found += rows(page, "done")
    while page.has("a", id="more-done"):
        page = await visitor.get(page.one("a", id="more-done").attrs["href"])
        found += rows(page, "done")
    assert found == ended


async def test_cursors_of_others_and_of_other_lists_are_refused_as_a_page(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(work._SECTIONS, "done", work._Section(None, lambda job: job.final, 1))
    for _ in range(2):
        job = await small.submit()
        await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
    visitor = Visitor(small)
    more = (await visitor.get("/")).one("a", id="more-done").attrs["href"]
    for who, path in (
        (BOB, more),
        (visitor.who, more.replace("done=", "needs=")),
        (visitor.who, "/?done=x"),
        (visitor.who, "/?done="),
        (visitor.who, f"{more}&needs=x"),
        (visitor.who, f"{more}&{more[2:]}"),
        (visitor.who, "/?page=2"),
    ):
        page = await Visitor(small, who).get(path, status=400)
        assert page.one("h1").text == "A query parameter cannot be used"
