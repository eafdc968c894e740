"""What must hold for every page: headers, nothing inline, texts of users only as text, links that lead somewhere, refusals as pages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from outlast import Context, Outlast, Permanent, Plan
from outlast.domain.errors import StoreUnavailable
from outlast.http.app import build
from outlast.http.development import identify
from outlast.http.page.assets import assets
from outlast.http.page.references import reference_of
from outlast.http.problems import CATALOGUE
from outlast.http.routes import ROUTES
from outlast.store.open import migrate
from outlast.worker.completion import Completion
from web.reading import Node, Visitor, links, path_of, read
from web.shop import Note, make
from web.site import Answer, Site, final
from web.world import NOBODYS

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}${7*7}",
    "</title></textarea></pre>",
    "\u05d0\u05d1\u05d2 (abc)",
    "x" * 480,
)


def register(jobs: Outlast, name: str, text: str) -> None:
    """A kind that bears this text wherever a user's text can stand."""

    @jobs.task(name=f"refer_{name}")
    async def refer(ctx: Context, note: Note) -> Completion[dict[str, str]]:
        ctx.progress(text)
        return ctx.complete({text: text}).at(text)

    @jobs.task(name=f"fail_{name}", max_attempts=1)
    async def fail(ctx: Context, note: Note) -> None:
        raise Permanent("evil", text)

    @jobs.kind(name, label=text, success=text, cancel_note=text)
    def evil(plan: Plan[Note], input: Note) -> None:
        first = plan.task(refer, label=f"1 {text}"[:500], usable=True)
        plan.task(fail, label=f"2 {text}"[:500], after=[first])


@pytest.fixture
async def hostile(tmp_path: Path) -> AsyncIterator[Site]:
    """An application whose kinds, tasks and questions have such names."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    jobs = make(url)
    for number, text in enumerate(EVIL):
        register(jobs, f"evil_{number}", text)
    site = Site(jobs)
    yield site
    site.app.stop()
    await jobs.close()


def check_head(answer: Answer) -> None:
    """The headers that every page has."""
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def check_sound(page: Node) -> None:
    """Nothing that the policy would have to allow, and nothing of third parties."""
    for node in page.all():
        assert node.tag not in ("style", "iframe", "object", "embed", "base", "svg", "img"), node
        assert not any(name.startswith("on") or name == "style" for name in node.attrs), node
        if node.tag == "script":
            assert node.attrs["src"].startswith("/"), node
            assert not node.children
    for link in links(page):
        assert re.match(r"/(?!/)", link), link


async def visited(site: Site) -> dict[str, Answer]:
    """An answer of each kind of page."""
    done, asks, waits = await site.submit(), await site.submit("question"), await site.submit()
    async with site.working():
        await site.until(done["id"], final)
        await site.until(asks["id"], lambda j: j["state"] == "needs_attention")
    waits = await site.submit()
    visitor = Visitor(site)
    page = await visitor.get(f"/jobs/{asks['id']}")
    found = {
        path: await visitor.fetch("GET", path)
        for path in (
            "/",
            f"/jobs/{done['id']}",
            f"/jobs/{asks['id']}",
            f"/jobs/{waits['id']}",
            f"/jobs/{done['id']}/result",
            f"/jobs/{done['id']}/result/1",
            f"/jobs/{waits['id']}/result",
            f"/jobs/{NOBODYS}",
            "/problems",
            "/sign-in",
            "/nowhere",
            "/?x=1",
        )
    }
    form = page.one("form", id="cancel-form")
    return found | {
        "stale": await visitor.send(page, form, version="1"),
        "no token": await visitor.send(page, form, token=None),
        "no answer": await visitor.send(page, page.one("article", id="question-1").one("form", data_action="answer"), input="{"),
        "nobody": await Visitor(site, None).fetch("GET", "/"),
        "405": await visitor.fetch("POST", "/", body=b""),
    }


async def test_every_page_has_its_headers_and_nothing_inline(small: Site) -> None:
    answers = await visited(small)
    assert {answer.status for answer in answers.values()} == {200, 400, 401, 403, 404, 405, 409, 412, 422}
    for answer in answers.values():
        check_head(answer)
        page = read(answer)
        check_sound(page)
        assert page.one("html").attrs["lang"] == "en"
        assert page.one("a", class_="skip").attrs["href"] == f"#{page.one('main').attrs['id']}"
        assert page.has("p", id="announcements", role="status")
        assert answer.body.startswith(b"<!doctype html>")


async def test_in_development_too(small: Site) -> None:
    site = Site(small.jobs, build(small.jobs.desk, identify, development=True))
    visitor = Visitor(site)
    for path in ("/sign-in", "/"):
        answer = await visitor.fetch("GET", path)
        check_head(answer)
        check_sound(read(answer))


@pytest.mark.parametrize("number", range(len(EVIL)))
async def test_texts_of_users_stand_there_as_text_only(hostile: Site, number: int) -> None:
    text = EVIL[number]
    job = await hostile.submit(f"evil_{number}")
    visitor = Visitor(hostile)
    waiting = await visitor.get(f"/jobs/{job['id']}")
    assert waiting.one(id="about-cancel").one("bdi").raw == text
    assert [one.raw for one in waiting.one("ol", id="tasks").all("bdi")] == [f"1 {text}", f"2 {text}"]
    async with hostile.working():
        await hostile.until(job["id"], lambda j: j["state"] == "needs_attention")
    for path in ("/", f"/jobs/{job['id']}", f"/jobs/{job['id']}/result", f"/jobs/{job['id']}/result/0"):
        page = await visitor.get(path)
        check_sound(page)
        assert all(node.attrs.get("src") for node in page.all("script"))
    page = await visitor.get(f"/jobs/{job['id']}")
    assert page.one("h1").one("bdi").raw == text
    assert page.one("title").raw == f"Needs you: {text} · Outlast"
    assert page.one("p", class_="message").raw == text
    assert page.one("p", class_="message").attrs["dir"] == "auto"
    assert not page.has("a", id="usable"), "such a reference is no link"
    assert page.one("section", id="open").one("span", class_="reference").one("bdi").raw == text
    result = await visitor.get(f"/jobs/{job['id']}/result")
    assert text.replace('"', '\\"') in result.one("pre", id="output").raw


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("/documents/7", True),
        ("/döcs/7?x=1#y", True),
        ("https://files.example.com/a", True),
        ("http://files.example.com:8080/a", True),
        ("HTTPS://files.example.com", True),
        ("//evil.example/a", False),
        ("/\\evil.example", False),
        ("\\\\evil.example", False),
        ("/\t/evil.example", False),
        ("/a b", False),
        (" /a", False),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("data:text/html,x", False),
        ("vbscript:x", False),
        ("file:///etc/passwd", False),
        ("https:evil.example", False),
        ("https:///evil.example", False),
        ("https://", False),
        ("https://user:secret@files.example.com/", False),
        ("https://good.example@evil.example/", False),
        ("https://[::1", False),
        ("https://x:port/", False),
        ("https://x/\u202egpj.exe", False),
        ("/\u200b/evil.example", False),
        ("documents/7", False),
        ("", False),
        ("#x", False),
    ],
)
def test_only_safe_references_are_links(text: str, href: bool) -> None:
    found = reference_of(text)
    assert found.text == text
    assert found.href == (text if href else None)
    assert bool(found.host) == (href and not text.startswith("/"))


async def test_a_reference_elsewhere_names_its_host_and_tells_it_nothing(small: Site) -> None:
    register(small.jobs, "elsewhere", "https://files.example.com/report.pdf")
    job = await small.submit("elsewhere")
    async with small.working():
        await small.until(job["id"], lambda j: j["state"] == "needs_attention")
    link = (await Visitor(small).get(f"/jobs/{job['id']}")).one("a", id="usable")
    assert link.text == "Open the result (files.example.com)"
    assert {"noopener", "noreferrer"} <= {*link.attrs["rel"].split()}


@pytest.mark.parametrize("root", ["", "/jobs", "/a/b"])
async def test_every_link_stays_under_the_mount_and_leads_somewhere(small: Site, root: str) -> None:
    done, asks = await small.submit(), await small.submit("question")
    async with small.working():
        await small.until(done["id"], final)
        await small.until(asks["id"], lambda j: j["state"] == "needs_attention")
    site = Site(small.jobs, build(small.jobs.desk, identify, development=True))
    visitor = Visitor(site, root=root)
    seen: set[str] = set()
    waiting = ["/", "/sign-in", "/problems", f"/jobs/{NOBODYS}"]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = await visitor.fetch("GET", path)
        if not answer.headers["content-type"].startswith("text/html"):
            assert answer.status == 200, path
            continue
        page = read(answer)
        assert answer.status == (404 if NOBODYS in path else 200), path
        actions = [form.attrs["action"] for form in page.all("form")]
        for link in links(page):
            inside = path_of(link, root)
            if link in actions:
                assert (await visitor.post(inside, {})).status in (403, 422), "a route, which wants its token"
            elif "{id}" not in link:
                waiting.append(inside)
    assert {f"/jobs/{done['id']}/result/1", f"/v1/jobs/{done['id']}/result/1", f"/v1/jobs/{asks['id']}", "/v1/jobs"} <= seen


async def test_a_mount_is_answered_with_and_without_the_slash(small: Site) -> None:
    job = await small.submit()
    for path in ("", "/"):
        answer = await small.call("GET", path, root="/jobs")
        assert answer.status == 200
        assert read(answer).one("a", id=f"job-{job['id']}").attrs["href"] == f"/jobs/jobs/{job['id']}"
    assert (await small.call("POST", "", root="/jobs")).status == 405
    assert (await small.call("GET", "/jobs//")).status == 404


async def test_where_the_application_says_where_it_is_links_and_cookies_follow(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    site = Site(make(url, base_url="https://example.org/our%20work/"))
    job = await site.submit()
    answer = await site.call("GET", f"/jobs/{job['id']}")
    cookie = answer.headers["set-cookie"].split("; ")
    assert {"Path=/our%20work", "Secure", "HttpOnly", "SameSite=Strict"} <= {*cookie}
    assert all(link.startswith("/our%20work/") for link in links(read(answer)))
    await site.jobs.close()


async def test_files_are_named_by_their_content_and_kept_for_ever(small: Site) -> None:
    page = await Visitor(small).get("/")
    script = page.one("script").attrs["src"]
    style = page.one("link", rel="stylesheet").attrs["href"]
    for path, kind in ((script, "text/javascript; charset=utf-8"), (style, "text/css; charset=utf-8")):
        assert re.fullmatch(r"/static/page\.[0-9a-f]{16}\.(js|css)", path)
        answer = await small.call("GET", path, None)
        assert (answer.status, answer.headers["content-type"]) == (200, kind)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"innerHTML" not in answer.body
        assert b"http://" not in answer.body
        assert b"https://" not in answer.body
    imported = re.findall(rb'import\("\./([^"]+)"\)', (await small.call("GET", script, None)).body)
    assert [one.decode() for one in imported] == [assets()["component.js"].name]
    assert (await small.call("GET", f"/static/{imported[0].decode()}", None)).status == 200
    for never in ("page.css", "page.0000000000000000.css", "..%2Fmessages.py", "component.d.ts", "", "%00"):
        assert (await small.call("GET", f"/static/{never}", None)).status in (400, 404)


async def test_the_component_has_names_that_stay(small: Site) -> None:
    for path in ("/component.js", "/component.d.ts"):
        answer = await small.call("GET", path, None)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-cache")
        again = await small.call("GET", path, None, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", answer.headers["etag"])
        assert (await small.call("GET", path, None, headers={"If-None-Match": '"other"'})).status == 200


async def test_problem_documents_point_into_the_catalogue(small: Site) -> None:
    page = await Visitor(small, None).get("/problems")
    assert {row.attrs["id"] for row in page.all("tr") if "id" in row.attrs} == {*CATALOGUE}
    for row in page.one("tbody").all("tr"):
        entry = CATALOGUE[row.attrs["id"]]
        assert row.text == f"{row.attrs['id']} {entry.status} {entry.title} {'yes' if entry.retryable else 'no'}"
    refused = await small.call("GET", f"/v1/jobs/{NOBODYS}")
    path, _, code = refused.json["type"].partition("#")
    assert (path, code) == ("/problems", "not_found")


async def test_refusals_are_pages_for_people_and_documents_for_programs(small: Site) -> None:
    for path, accept, page in (
        ("/nowhere", "text/html,*/*;q=0.8", True),
        ("/nowhere", "*/*", False),
        ("/v1/nowhere", "text/html", False),
        ("/v1/jobs?x=1", "text/html", False),
        ("/jobs/17", "application/json", True),
        ("/?x=1", "*/*", True),
    ):
        answer = await small.call("GET", path, headers={"Accept": accept, "X-Request-Id": "found-again"})
        if page:
            assert "For support: found-again" in read(answer).text
        else:
            assert answer.json["correlation_id"] == "found-again"
    answer = await small.call("DELETE", f"/jobs/{NOBODYS}")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert read(answer).one("h1").text == CATALOGUE["method_not_allowed"].title


async def test_a_defect_and_a_store_that_does_not_answer_are_pages_too(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret-canary")

    async def unavailable(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("secret-canary")

    monkeypatch.setattr("outlast.http.page.work.pace", broken)
    answer = await small.call("GET", "/")
    assert answer.status == 500
    assert read(answer).one("h1").text == "Something went wrong here"
    assert b"secret-canary" not in answer.body
    monkeypatch.setattr(small.jobs.desk, "drive", unavailable)
    answer = await small.call("GET", f"/jobs/{NOBODYS}")
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    page = read(answer)
    assert page.one("a", id="to-job").attrs["href"] == f"/jobs/{NOBODYS}"
    assert b"secret-canary" not in answer.body


def test_the_page_is_no_part_of_the_documented_api() -> None:
    assert {route.page for route in ROUTES if not route.path.startswith(("/v1", "/healthz", "/readyz", "/openapi"))} == {True}
