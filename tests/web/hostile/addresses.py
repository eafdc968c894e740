"""Addresses and methods: what is nearly a route, what is no text, and every method on every path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from outlast.http.routes import ROUTES
from web.hostile.request import MARKER, Hostile, get, post

NOWHERE: Final = (
    "//v1/jobs",
    "/v1//jobs",
    "/v1/jobs/",
    "/v1/jobs//",
    "/V1/jobs",
    "/v1/JOBS",
    "/v1/Jobs",
    "/v1/./jobs",
    "/v1/x/../jobs",
    "/v1/%2e/jobs",
    "/v1/x/%2e%2e/jobs",
    "/v1/jobs%20",
    "/v1/jobs%2f",
    "/v1%2fjobs%2f",
    "/v1/jobs;a=1",
    "/v1;a=1/jobs",
    "/v1/jobs.json",
    "/v1/jobs/{queued}/",
    "/v1/jobs/{queued}//tasks",
    "/v1/jobs/{queued}/TASKS",
    "/v1/jobs/{queued}/tasks/",
    "/v1/jobs/{queued}/tasks.json",
    "/v1/jobs/{completed}/result/",
    "/v1/jobs/{completed}/result/0/0",
    "/v1/jobs/{queued}/x/../tasks",
    "/v1/jobs/{queued}%2ftasks%2f",
    "/v1\\jobs",
    "/v1/jobs\\{queued}",
    "/v1",
    "/v1/",
    "/v2/jobs",
    "/v1/admin",
    "/v1/admin/jobs",
    "/v1/admin/queues",
    "/v1/admin/workers",
    "/v1/admin/attention",
    "/v1/../v1/admin/jobs",
    "/v1/jobs/{queued}/../../admin/jobs",
    "/metrics",
    "/healthz/",
    "/HEALTHZ",
    "/openapi.json/",
    "/openapi.yaml",
    "/docs",
    "/redoc",
    "/graphql",
    "/server-status",
    "/.env",
    "/.git/config",
    "/wp-login.php",
    "/actuator/env",
    "/debug/pprof",
    "/cgi-bin/test-cgi",
    "/etc/passwd",
    "/..%2f..%2f..%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/static/..%2f..%2fapp.py",
    f"/{MARKER}",
    "/v1/events/x",
    "/v1/events/",
    "http://evil.example/v1/jobs",
    "*",
)
"""Where nothing is, for a GET."""

NO_TEXT: Final = (
    "/v1/jobs%",
    "/v1/jobs%2",
    "/v1/jobs%zz",
    "/v1/jobs%00",
    "/%00",
    "/v1/jobs/{queued}%00",
    "/v1/jobs/%00",
    "/v1/jobs/%c3%28",
    "/v1/jobs/%c0%ae%c0%ae",
    "/v1/jobs/%ff",
    "/v1/jobs/%ed%a0%80",
    "/v1/jobs/%f4%90%80%80",
    "/v1/jobs/%u0031",
    "/v1/jobs/%%31",
    "/v1/jobs?limit=%",
    "/v1/jobs?limit=%zz",
    "/v1/jobs?kind=%00",
    "/v1/jobs?cursor=%c3%28",
    "/v1/jobs?%ff=1",
    "/v1/jobs?%00",
    f"/v1/jobs/{MARKER}%",
)
"""Not percent-encoded UTF-8, or a NUL in it."""

NO_IDS: Final = (
    "0",
    "-1",
    "17",
    "null",
    "undefined",
    "*",
    "%25",
    "_",
    "..",
    ".",
    "%2e%2e",
    "%20",
    "{unknown}%20",
    "%20{unknown}",
    "{unknown}%0a",
    "{unknown}%0d%0aX-A:1",
    "{unknown},{queued}",
    "{unknown};{queued}",
    "%7B{unknown}%7D",
    "urn:uuid:{unknown}",
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "00000000-0000-7000-8000-000000000000",
    "'%20or%20'1'='1",
    "%27;drop%20table%20outlast_job;--",
    "1%20union%20select%201",
    "$%7B7*7%7D",
    "%3Cscript%3E",
    "%F0%9F%99%82",
    "%EF%BC%91%EF%BC%97",
    "%E2%80%AE",
    "9223372036854775808",
    "1e3",
    "[]",
    MARKER,
    "x" * 1_000,
)
"""In the place of an id."""

NO_NUMBERS: Final = ("-1", "1.0", "1e0", "x", "%20", "%D9%A0", "99", "999999999", "9" * 10, "9" * 400, "0x0", "+0", "null", MARKER)
"""In the place of a task's number."""

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "QUERY", "get", MARKER)

NO_QUERIES: Final[dict[str, tuple[str, ...]]] = {
    "limit": ("0", "-1", "201", "1000000000", "9999999999", "x", "1.5", "1e2", "+5", "%205", "0x10", "NaN", "%D9%A3", "true", MARKER, "5;"),
    "state": ("ACTIVE", "open", "active,queued", "blocked", "failed", "null", "%27or%201=1--", "%25", "*", MARKER),
    "kind": ("x" * 101, "a%20b", "a/b", "%27or%201=1--", "%25", "*", "a%0ab", "%3Cscript%3E", "a@1"),
    "cursor": (
        "x",
        "AAAA",
        "====",
        "%27or%201=1--",
        "x" * 3_000,
        "%E2%82%AC",
        "null",
        MARKER,
        "{queued}",
        "eyJhIjoxfQ",
        "{cursor}x{cursor}",
    ),
    "wait": ("-1", "x", "1.5", "1e2", "+5", "NaN", "Infinity", "%D9%A3", "9" * 10, "9" * 400, "true", MARKER),
}


def table() -> Iterator[Hostile]:
    """All of them."""
    for target in NOWHERE:
        yield get(f"nowhere: {target}", target, 404, "not_found")
    for target in ("/v1/jobs/", "/v1//jobs", "/V1/jobs", "/v1/admin/jobs/replay", "/v1/jobs/{queued}/cancel/", "/v1/jobs/{queued}/CANCEL"):
        yield post(f"nowhere to post: {target}", target, b"{}", 404, "not_found", key="k", headers=[("If-Match", "*")])
    for target in NO_TEXT:
        yield get(f"no text: {target}", target, 400, "bad_request")
    for named in NO_IDS:
        for rest in ("", "/tasks"):
            yield get(f"id {named[:30]}{rest}", f"/v1/jobs/{named}{rest}", 404, "not_found")
        yield post(f"id {named[:30]} to cancel", f"/v1/jobs/{named}/cancel", b"", 404, "not_found", headers=[("If-Match", "*")])
    for number in NO_NUMBERS:
        yield get(f"task {number[:20]}", f"/v1/jobs/{{completed}}/result/{number}", 404, "not_found")
    yield get("an encoded letter", "/%76%31/jobs", 200)
    yield get("a long path", f"/v1/jobs/{'x' * 5_000}", 414, "target_too_long")
    yield get("a long query", f"/v1/jobs?cursor={'x' * 5_000}", 414, "target_too_long")
    yield get("70 KB of path", f"/{'x' * 70_000}", 414, "target_too_long")
    yield get("many parameters", f"/v1/jobs?{'&'.join(f'a{n}=1' for n in range(600))}", (400, 414), "invalid_query", "target_too_long")
    yield from _methods()
    yield from _queries()


def _methods() -> Iterator[Hostile]:
    offered: dict[str, set[str]] = {}
    for route in ROUTES:
        offered.setdefault(route.path, set()).add(route.method)
    for path, methods in offered.items():
        target = path.replace("{id}", "{completed}").replace("{no}", "0")
        for method in METHODS:
            if method not in methods and not (method == "HEAD" and "GET" in methods):
                yield Hostile(f"{method} {path}", method, target, (405,), codes=("method_not_allowed",))
                yield Hostile(f"{method} {path} by nobody", method, target, (405,), who=None, codes=("method_not_allowed",))
        for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
            if "GET" in methods and not any(route.page for route in ROUTES if route.path == path):
                override = ((name, "POST"), ("Idempotency-Key", "k"), ("If-Match", "*"))
                yield Hostile(f"GET {path} with {name}", "GET", target, (200, 204), override)
    yield get("a method in the query", "/v1/jobs?_method=DELETE", 400, "invalid_query")


def _queries() -> Iterator[Hostile]:
    for name, values in NO_QUERIES.items():
        target = "/v1/jobs/{queued}" if name == "wait" else "/v1/jobs"
        for value in values:
            yield get(f"{name}={value[:20]}", f"{target}?{name}={value}", 400, "invalid_query")
        yield get(f"{name} without a value", f"{target}?{name}=", 400, "invalid_query")
        yield get(f"{name} without a sign", f"{target}?{name}", 400, "invalid_query")
        yield get(f"{name} twice", f"{target}?{name}=1&{name}=1", 400, "invalid_query")
        yield get(f"{name} in capitals", f"{target}?{name.upper()}=1", 400, "invalid_query")
        yield get(f"{name} as a list", f"{target}?{name}[]=1", 400, "invalid_query")
    for query in (
        "tenant=globex",
        "owner=bob",
        "sort=id",
        "order_by=owner",
        "fields=input",
        "offset=1",
        "page=2",
        "filter=.*",
        "q=%25",
        "format=xml",
    ):
        yield get(f"a query of {query}", f"/v1/jobs?{query}", 400, "invalid_query")
        yield get(f"a query of {query} on a job", f"/v1/jobs/{{queued}}?{query}", 400, "invalid_query")
    for rest in ("/tasks", "/result", "/recovery", "/result/0"):
        yield get(f"a query on {rest}", f"/v1/jobs/{{completed}}{rest}?x={MARKER}", 400, "invalid_query")
    for rest in ("/cancel", "/actions", "/rerun"):
        yield post(f"a query on {rest}", f"/v1/jobs/{{completed}}{rest}?x={MARKER}", b"{}", 400, "invalid_query", key="k")
    yield get("a cursor of another", "/v1/jobs?cursor={their_cursor}", 400, "invalid_query")
    yield get("a cursor of another filter", "/v1/jobs?cursor={filtered_cursor}", 400, "invalid_query")
    yield get("a cursor with another filter", "/v1/jobs?state=active&cursor={cursor}", 400, "invalid_query")
    yield get("half a cursor", "/v1/jobs?cursor={half_cursor}", 400, "invalid_query")
    yield get("a target of nobody", "/v1/jobs?target=orders/1", 200)
    yield get("no target at all", "/v1/jobs?target=", 400, "invalid_query")
    yield get("a target that is too long", f"/v1/jobs?target={'t' * 501}", 400, "invalid_query")
    yield get("two targets", "/v1/jobs?target=orders/1&target=orders/2", 400, "invalid_query")
    yield get("wait=99999", "/v1/jobs/{queued}?wait=99999", 200)
    yield get("the largest page", "/v1/jobs?limit=200", 200)
    yield get("leading zeros", "/v1/jobs?limit=000000005", 200)
    for target in ("/v1/jobs?", "/v1/jobs?&", "/v1/jobs?&&"):
        yield get(f"nothing asked: {target}", target, 200)
