"""Signing in and out in development; and who is nobody, in development and elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from outlast.http.app import build
from outlast.http.development import COOKIE, identify
from web.reading import Visitor, links, read
from web.site import ANN, Site
from web.world import NOBODYS


@pytest.fixture
async def open_site(small: Site) -> AsyncIterator[Site]:
    """The same application, for development."""
    site = Site(small.jobs, build(small.jobs.desk, identify, development=True))
    yield site
    site.app.stop()


async def test_without_development_there_is_no_sign_in(small: Site) -> None:
    visitor = Visitor(small, None)
    for method, path in (("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out")):
        answer = await visitor.fetch(method, path, body=b"x=1" if method == "POST" else None)
        assert answer.status == 404
        assert read(answer).one("h1").text == "Nothing is here for you"
        assert not visitor.cookies


@pytest.mark.parametrize("path", ["/", "", f"/jobs/{NOBODYS}", f"/jobs/{NOBODYS}/result", "/jobs/17"])
async def test_nobody_is_told_to_sign_in_at_the_application(small: Site, path: str) -> None:
    root = "/x" if not path else ""
    answer = await small.call("GET", path, None, headers={"Accept": "text/html"}, root=root)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="outlast"'
    page = read(answer)
    assert page.one("h1").text == "Sign in first"
    assert "Sign in at the application that this page belongs to" in page.text
    assert not page.has("p", data_development="")


async def test_nobody_is_led_to_the_sign_in_and_from_there_on(open_site: Site) -> None:
    job = await open_site.submit()
    visitor = Visitor(open_site, None, root="/a/b")
    answer = await visitor.fetch("GET", f"/jobs/{job['id']}/result/0?x=1")
    assert (answer.status, answer.headers["location"]) == (303, "/a/b/sign-in?next=%2F"), "an address that the page does not make"
    answer = await visitor.fetch("GET", f"/jobs/{job['id']}")
    assert answer.status == 303
    page = await visitor.follow(answer)
    assert "anybody is whoever they say" in page.one("p", data_development="").text
    sent = await visitor.send(page, "sign-in-form", tenant="acme", subject="ann")
    assert sent.headers["location"] == f"/a/b/jobs/{job['id']}"
    page = await visitor.follow(sent)
    assert page.one("h1").text == "A note"
    assert visitor.cookies[COOKIE] == "dev:acme:ann"
    assert "Signed in as ann (acme)" in page.one("header").text
    out = await visitor.send(page, next(form for form in page.all("form") if form.attrs["action"].endswith("/sign-out")))
    assert (out.status, out.headers["location"]) == (303, "/a/b/sign-in")
    assert COOKIE not in visitor.cookies
    assert (await visitor.fetch("GET", f"/jobs/{job['id']}")).status == 303


async def test_who_signs_in_as_operator_or_under_any_name_is_that(open_site: Site) -> None:
    for tenant, subject, operator in (("acme", "olga", True), ("g\u00f6 & co;", "a b:c%41=\u05d0\U0001f600", False)):
        visitor = Visitor(open_site, None)
        page = await visitor.get("/sign-in")
        extra = {"operator": "yes"} if operator else {}
        page = await visitor.follow(await visitor.send(page, "sign-in-form", tenant=tenant, subject=subject, **extra))
        assert f"Signed in as {subject} ({tenant}{', operator' if operator else ''})" in page.one("header").text


@pytest.mark.parametrize(
    ("tenant", "subject", "wrong"),
    [
        ("", "ann", "tenant"),
        ("acme", " ", "subject"),
        ("a:b", "ann", "tenant"),
        ("acme", "x:operator", "subject"),
        ("a\nb", "c", "tenant"),
        ("a" * 201, "b", "tenant"),
    ],
)
async def test_names_that_cannot_be_are_explained_beside_the_field(open_site: Site, tenant: str, subject: str, wrong: str) -> None:
    visitor = Visitor(open_site, None)
    page = await visitor.get("/sign-in")
    answer = await visitor.send(page, "sign-in-form", tenant=tenant, subject=subject, next=f"/jobs/{NOBODYS}")
    assert answer.status == 422
    page = read(answer)
    field = page.one("input", id=wrong)
    assert field.attrs["aria-invalid"] == "true"
    assert page.one(id=field.attrs["aria-describedby"]).text
    assert page.one("input", id="tenant").attrs["value"] == tenant
    assert page.one("input", name="next").attrs["value"] == f"/jobs/{NOBODYS}"
    assert COOKIE not in visitor.cookies


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/%5cevil.example",
        "/\t/evil.example",
        "/..//evil.example",
        "/jobs/../../admin",
        "/jobs/%2e%2e/%2e%2e/admin",
        "javascript:alert(1)",
        "jobs/1",
        "/sign-in",
        "/sign-out",
        "/v1/jobs",
        f"/jobs/{NOBODYS}/cancel",
        f"/jobs/{NOBODYS}\r\nSet-Cookie: a=b",
        f"/jobs/{NOBODYS}?next=x",
        f"/jobs/{NOBODYS}\n",
        "",
    ],
)
async def test_the_sign_in_leads_nowhere_else(open_site: Site, wanted: str) -> None:
    visitor = Visitor(open_site, None, root="/a/b")
    page = await visitor.get(f"/sign-in?next={quote(wanted)}")
    assert page.one("input", name="next").attrs["value"] == "/"
    answer = await visitor.send(page, "sign-in-form", tenant="acme", subject="ann", next=wanted)
    assert (answer.status, answer.headers["location"]) == (303, "/a/b/")


@pytest.mark.parametrize(
    "wanted", ["/", "/?done=abc_-1", f"/jobs/{NOBODYS}", f"/jobs/{NOBODYS}/result", f"/jobs/{NOBODYS}/result/3", "/problems"]
)
async def test_the_sign_in_leads_to_where_somebody_wanted_to_be(open_site: Site, wanted: str) -> None:
    visitor = Visitor(open_site, None, root="/a/b")
    page = await visitor.get(f"/sign-in?next={quote(wanted)}")
    answer = await visitor.send(page, "sign-in-form", tenant="acme", subject="ann")
    assert answer.headers["location"] == f"/a/b{wanted}"


async def test_a_form_sent_by_nobody_leads_to_its_job_after_the_sign_in(open_site: Site) -> None:
    job = await open_site.submit()
    visitor = Visitor(open_site)
    page = await visitor.get(f"/jobs/{job['id']}")
    visitor.who = None
    answer = await visitor.send(page, "cancel-form")
    assert answer.status == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query) == {"next": [f"/jobs/{job['id']}"]}
    assert (await open_site.call("GET", f"/v1/jobs/{job['id']}")).json["state"] == "queued"


async def test_signing_in_and_out_need_the_forms_token(open_site: Site) -> None:
    visitor = Visitor(open_site, None)
    page = await visitor.get("/sign-in")
    answer = await visitor.send(page, "sign-in-form", tenant="acme", subject="ann", token="A" * 43)
    assert (answer.status, COOKIE in visitor.cookies) == (403, False)
    assert (await visitor.post("/sign-out", {})).status == 403
    assert (await visitor.fetch("GET", "/sign-out")).status == 405


async def test_the_api_says_401_to_nobody_in_development_too(open_site: Site) -> None:
    answer = await open_site.call("GET", "/v1/jobs", None, headers={"Accept": "text/html"})
    assert (answer.status, answer.code) == (401, "unauthenticated")


async def test_pages_for_nobody_do_not_name_anybody(open_site: Site) -> None:
    page = await Visitor(open_site, ANN).get("/problems")
    assert "Signed in as" not in page.text
    assert "/sign-out" not in links(page)
