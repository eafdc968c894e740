"""What a host and its proxies bring along: its own address, bodies that nobody asked for, parameters that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from outlast import Invalid, Outlast
from web.shop import make
from web.site import Site, scope_of


async def test_an_address_of_its_own_is_no_other_site(small: Site) -> None:
    """Behind a proxy that passes no Host on, base_url says what people's browsers name; and a scheme's own port is none."""
    jobs = make(small.jobs.url, base_url="https://Shop.example/jobs")
    jobs.adopt(small.jobs.store)
    site = Site(jobs)
    job = await small.submit()
    for origin, host, status in (
        ("https://shop.example", "127.0.0.1:8000", 200),
        ("https://shop.example:443", "127.0.0.1:8000", 200),
        ("http://testserver:80", "testserver", 200),
        ("http://testserver", "TestServer:80", 200),
        ("https://shop.example:444", "127.0.0.1:8000", 403),
        ("https://shop.example.evil", "127.0.0.1:8000", 403),
        ("https://evil.example/https://shop.example", "127.0.0.1:8000", 403),
        ("null", "127.0.0.1:8000", 403),
        ("", "", 403),
        ("https://", "127.0.0.1:8000", 403),
    ):
        pairs = [("host", host), ("authorization", "Bearer dev:acme:ann"), ("origin", origin), ("if-match", "*")]
        scope = scope_of("POST", f"/v1/jobs/{job['id']}/cancel", [(name.encode(), value.encode()) for name, value in pairs])
        assert (await site.raw(scope, [b""])).status == status, origin


async def test_a_body_that_nobody_reads_ends_its_connection(small: Site) -> None:
    job = await small.submit()
    pairs = [(b"host", b"testserver"), (b"authorization", b"Bearer dev:acme:ann"), (b"if-match", b"*")]
    for more, expected in (
        ((b"transfer-encoding", b"chunked"), "close"),
        ((b"content-length", b"1000"), "close"),
        ((b"content-length", b"0"), None),
        (None, None),
    ):
        scope = scope_of("POST", f"/v1/jobs/{job['id']}/cancel", [*pairs, *([] if more is None else [more])])
        answer = await small.raw(scope, [b"x"] * 2)
        assert (answer.status, answer.headers.get("connection")) == (200, expected)
    second = await small.raw({**scope_of("POST", "/nowhere", [*pairs, (b"content-length", b"9")]), "http_version": "2"}, [b"x"] * 2)
    assert (second.status, second.headers.get("connection")) == (404, None), "in HTTP/2 there is no such header"


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/jobs"), ("GET", "/v1/events"), ("GET", "/v1/jobs/{id}/events")])
async def test_a_parameter_that_is_not_known_is_said(small: Site, method: str, path: str) -> None:
    job = await small.submit()
    body = {"kind": "note", "input": {"text": "x"}} if method == "POST" else None
    answer = await small.call(method, f"{path.format(id=job['id'])}?x=1", json_body=body, headers={"Idempotency-Key": "other"})
    assert (answer.status, answer.code) == (400, "invalid_query")


@pytest.mark.parametrize(
    "wrong",
    [
        "jobs",
        "/jobs?x=1",
        "/jobs#f",
        "//evil.example/jobs",
        "ftp://x/y",
        "/jobs/../x",
        "http://",
        "http://x:y/",
        "http://a@b/",
        "/a b",
        "/\n",
        5,
    ],
)
def test_a_base_url_that_links_cannot_begin_with(wrong: Any) -> None:
    with pytest.raises(Invalid, match="base_url"):
        Outlast("sqlite:///x.db", base_url=wrong)


@pytest.mark.parametrize(
    "right", ["", "/", "/jobs", "/jobs/", "https://shop.example", "http://localhost:8000/a/b-c.d", "http://[::1]:8000/jobs"]
)
def test_a_base_url_may_be_a_path_or_an_address(right: str) -> None:
    assert Outlast("sqlite:///x.db", base_url=right).desk.app.base_url == right.rstrip("/")
