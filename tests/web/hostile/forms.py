"""The page's forms and addresses: without a token, with fields that they do not have, and with what a browser would never send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote_plus

from web.hostile.request import MARKER, Hostile, get, statuses
from web.matrix.entries import TOKEN

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
COOKIE: Final = ("Cookie", f"outlast_form={TOKEN}")


def form(
    why: str,
    target: str,
    fields: bytes | Mapping[str, str],
    wanted: int | tuple[int, ...],
    *,
    token: str | None = TOKEN,
    cookie: tuple[str, str] | None = COOKIE,
    media_type: str = MEDIA_TYPE,
    headers: tuple[tuple[str, str], ...] = (),
    who: str | None = "acme:ann",
) -> Hostile:
    """A form: a whole body, or its fields and the token."""
    if not isinstance(fields, bytes):
        sent = {**fields, **({} if token is None else {"token": token})}
        fields = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in sent.items()).encode()
    pairs = [("Content-Type", media_type), ("Accept", "text/html"), *([] if cookie is None else [cookie]), *headers]
    return Hostile(f"form: {why}", "POST", target, statuses(wanted), tuple(pairs), fields, who)


_TOKENED: Final = f"&token={TOKEN}".encode()
_BODIES: Final[dict[str, tuple[bytes, int]]] = {
    "nothing": (b"", 403),
    "an empty field name": (b"=1&version=1" + _TOKENED, 422),
    "a field without a sign": (b"version" + _TOKENED, 400),
    "a field twice": (b"version=1&version=2" + _TOKENED, 422),
    "the token twice": (b"version=1" + _TOKENED + _TOKENED, 422),
    "half an escape": (b"version=1&a=%" + _TOKENED, 400),
    "no digits in an escape": (b"version=%zz" + _TOKENED, 400),
    "no UTF-8": (b"version=%c3%28" + _TOKENED, 400),
    "raw bytes": (b"version=\xff" + _TOKENED, 400),
    "raw UTF-8": ("version=1&é=1".encode() + _TOKENED, 400),
    "a surrogate": (b"version=%ed%a0%80" + _TOKENED, 400),
    "NUL": (b"version=1%00" + _TOKENED, 422),
    "semicolons": (b"version=1;token=" + TOKEN.encode(), 403),
    "JSON": (b'{"version": 1, "token": "%s"}' % TOKEN.encode(), 400),
    "twelve fields more": (b"&".join(b"a%d=1" % n for n in range(20)) + _TOKENED, 400),
    "a long field": (b"version=" + b"1" * 20_000 + _TOKENED, 413),
}
_NO_VERSIONS: Final = ("", "-1", "1.0", "x", "1'", "*", '"1"', "1 ", "٣", "9" * 19, "9" * 5_000, MARKER)
_NO_TOKENS: Final[dict[str, str | None]] = {"none": None, "empty": "", "another": "u" * 43, "shorter": "t" * 42, "longer": "t" * 44}
_NO_COOKIES: Final[dict[str, tuple[str, str] | None]] = {
    "none": None,
    "another": ("Cookie", f"outlast_form={'u' * 43}"),
    "empty": ("Cookie", "outlast_form="),
    "of other characters": ("Cookie", f"outlast_form={'<' * 43}"),
    "another's name": ("Cookie", f"outlast_forms={TOKEN}"),
}
_ANSWERS: Final = (
    "",
    " ",
    "red",
    "{",
    "[1",
    '{"colour": NaN}',
    '{"colour": "a", "colour": "b"}',
    '{"colour": 1}',
    '{"colour": "red", "more": 1}',
    '{"colour": "\\ud800"}',
    '{"colour": "\\u0000"}',
    "[" * 5_000,
    '"' + "x" * 100_000 + '"',
    '{"colour": 9223372036854775808}',
    "<script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    "\x00",
    "\u202e",
)


_CANCEL: Final = "/jobs/{queued}/cancel"
_ACT: Final = "/jobs/{question}/actions"
_RERUN: Final = "/jobs/{completed}/rerun"


def table() -> Iterator[Hostile]:
    """All of them."""
    yield from _by_others()
    yield from _cancels()
    yield from _actions()
    yield from _reruns()
    yield from _addresses()


def _by_others() -> Iterator[Hostile]:
    for why, token in _NO_TOKENS.items():
        yield form(f"token: {why}", _CANCEL, {"version": "1"}, 403, token=token)
    for why, cookie in _NO_COOKIES.items():
        yield form(f"cookie: {why}", _CANCEL, {"version": "1"}, 403, cookie=cookie)
    for media_type in (
        "",
        "application/json",
        "multipart/form-data; boundary=x",
        "text/plain",
        f"{MEDIA_TYPE}; charset=utf-16",
        f"{MEDIA_TYPE}x",
    ):
        yield form(f"media type {media_type!r}", _CANCEL, {"version": "1"}, 415, media_type=media_type)
    for site in ("cross-site", "same-site", MARKER):
        yield form(f"from {site}", _CANCEL, {"version": "1"}, 403, headers=(("Sec-Fetch-Site", site),))
    yield form(
        "from another origin", _ACT, {"attention_id": "0.1", "action": "dismiss"}, 403, headers=(("Origin", "https://evil.example"),)
    )
    yield form("from no origin", _RERUN, {"key": "k"}, 403, headers=(("Origin", "null"),))
    yield form("compressed", _CANCEL, {"version": "1"}, 415, headers=(("Content-Encoding", "gzip"),))
    yield form("by nobody", _CANCEL, {"version": "1"}, 401, who=None)
    for target in ("/sign-in", "/sign-out"):
        yield form(f"{target} where nobody signs in", target, {"tenant": "acme", "subject": "bob", "next": "/"}, 404, who=None)


def _cancels() -> Iterator[Hostile]:
    for why, (body, wanted) in _BODIES.items():
        yield form(why, _CANCEL, body, wanted)
    for version in _NO_VERSIONS:
        yield form(f"version {version[:20]!r}", _CANCEL, {"version": version}, (412, 422) if version.startswith("9") else 422)
    for name in ("tenant", "owner", "state", "id", "If-Match", "job", "no", "_method"):
        yield form(f"a field {name}", _CANCEL, {"version": "1", name: MARKER}, 422)
    yield form("a stale version", _CANCEL, {"version": "99"}, 412)
    yield form("a job that has completed", "/jobs/{completed}/cancel", {"version": "2"}, 409)
    yield form("no id", "/jobs/7/cancel", {"version": "1"}, 404)
    yield form("a query", f"{_CANCEL}?x=1", {"version": "1"}, 400)


def _actions() -> Iterator[Hostile]:
    for action in ("", "cancel", "ANSWER", "takeover", "delete", MARKER, "' or 1=1--", "retry", "skip"):
        yield form(f"action {action!r}", _ACT, {"attention_id": "0.1", "action": action}, 422)
    for named in ("", " ", "x" * 201, "0.1\n", "\u202e"):
        yield form(f"question {named[:20]!r}", _ACT, {"attention_id": named, "action": "dismiss"}, 422)
    for named in ("0.99", "%", "' or 1=1--", MARKER):
        yield form(f"no question {named[:20]!r}", _ACT, {"attention_id": named, "action": "dismiss"}, 409)
    for typed in _ANSWERS:
        yield form(f"answer {typed[:20]!r}", _ACT, {"attention_id": "0.1", "action": "answer", "input": typed}, (303, 422))
    yield form("an answer of 10 MiB", _ACT, b"attention_id=0.1&action=answer&input=" + b"x" * 10 * 2**20 + _TOKENED, 413)
    yield form("an answer to no question", _ACT, {"attention_id": "0.1", "action": "answer"}, 422)
    yield form("an input to give up", _ACT, {"attention_id": "0.1", "action": "dismiss", "input": "x"}, 422)


def _reruns() -> Iterator[Hostile]:
    for key in ("", " ", "a b", "é", "k" * 256, "a\nb", "\x00"):
        yield form(f"key {key[:20]!r}", _RERUN, {"key": key}, 422)
    yield form("a key of another request", _RERUN, {"key": "key-of-queued"}, 422)
    yield form("not final", "/jobs/{queued}/rerun", {"key": "k"}, 409)


def _addresses() -> Iterator[Hostile]:
    browser = [("Accept", "text/html")]
    for query in (
        "needs=x",
        "going=%00",
        "done=%27or%201=1--",
        "needs={their_cursor}",
        "needs=1&going=2",
        "x=1",
        "needs",
        "needs=",
        "tenant=globex",
    ):
        yield get(f"page of work with {query}", f"/?{query}", 400, headers=browser)
    for named in ("7", "..", "%2e%2e", "{unknown}%0a", "%3Cscript%3Ealert(1)%3C%2Fscript%3E", MARKER, "x" * 1_000):
        for rest in ("", "/result", "/result/0"):
            yield get(f"page of job {named[:20]}{rest}", f"/jobs/{named}{rest}", 404, headers=browser)
    for number in ("-1", "x", "99", "9" * 10, MARKER):
        yield get(f"page of task {number}", f"/jobs/{{completed}}/result/{number}", 404, headers=browser)
    for target in ("/jobs", "/jobs/", "/nothing", "/v1/jobs/", "/jobs/{queued}/tasks", "/<script>alert(1)</script>", f"/{MARKER}"):
        yield get(f"no page: {target}", target, 404, headers=browser)
    for name in ("page.css", "../page.css", "..%2fpage.css", "%2e%2e%2frouting.py", "x", MARKER, "page.0000000000000000.css"):
        yield get(f"no file: {name}", f"/static/{name}", 404, headers=browser)
    yield get("a page with a query", "/jobs/{queued}?x=1", 400, headers=browser)
    yield get("a bad address by a browser", "/jobs/%zz", 400, headers=browser)
    yield get("a long address by a browser", f"/jobs/{'x' * 5_000}", 414, headers=browser)
    yield get("an unknown place to go to", "/sign-in?next=//evil.example", 404, headers=browser)
