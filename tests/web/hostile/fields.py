"""Header fields: keys, preconditions, media types, where a request came from, who sends it, and too much of everything."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Final

from web.hostile.request import GOOD, MARKER, Hostile, get, post, submit

_TAB, _BLANK = "a\tb", "a b"
NO_KEYS: Final[dict[str, str | bytes]] = {
    "empty": "",
    "a blank": " ",
    "a blank inside": _BLANK,
    "a tab inside": _TAB,
    "256 long": "k" * 256,
    "10,000 long": "k" * 10_000,
    "not ASCII": "schl\xfcssel",
    "UTF-8": "schlüssel".encode(),
    "a delete character": "a\x7f",
    "an empty string": '""',
    "half a string": '"abc',
    "a string with a blank": '"a b"',
    "something behind the string": '"abc"x',
    "parameters": '"abc";a=1',
    "two strings": '"abc", "def"',
    "a string of 256": f'"{"k" * 256}"',
    "a bad escape": '"a\\b"',
    "a string that ends in an escape": '"abc\\"',
    "a quote alone": '"',
    "a control inside": b'"a\x01b"',
    "not ASCII in a string": '"\xe9"',
}
KEYS: Final[dict[str, str]] = {
    "one character": "k",
    "255": "k" * 255,
    "255 in a string": f'"{"k" * 255}"',
    "all of ASCII": "".join(chr(n) for n in range(0x23, 0x7F)),
    "a string": '"abc"',
    "escapes": r'"a\"b\\c"',
    "blanks around": "  k  ",
    "single quotes": "'k'",
    "quotes inside": 'a"b',
    "a list as text": "a,b",
    "SQL": "'or'1'='1",
    "a template": "${x}{{y}}%s%n",
    "a path": "../../k",
}

MALFORMED_TAGS: Final[dict[str, str | bytes]] = {
    "empty": "",
    "a bare number": "1",
    "a bare tag": "1.queued",
    "half a string": '"1',
    "the other half": '1"',
    "single quotes": "'1'",
    "two without a comma": '"1" "2"',
    "a trailing comma": '"1",',
    "a comma": ",",
    "a star and a tag": '*, "1"',
    "two stars": "**",
    "a weak star": "W/*",
    "a weak mark in lower case": 'w/"1"',
    "a blank inside": '"1 queued"',
    "a control inside": b'"1\x01"',
    "garbage": MARKER,
    "not ASCII outside": "\xe9",
}
OTHER_VERSIONS: Final[dict[str, str]] = {
    "another version": '"99"',
    "another with a state": '"99.queued"',
    "nothing in it": '""',
    "garbage": f'"{MARKER}"',
    "a weak tag": 'W/"1.queued"',
    "a negative one": '"-1"',
    "a plus": '"+1"',
    "a fraction": '"1.5"',
    "18 digits": '"999999999999999999"',
    "19 digits": '"9223372036854775808"',
    "400 digits": f'"{"9" * 400}"',
    "SQL": "\"1'or'1'='1\"",
    "not ASCII": '"\xe9"',
    "a hundred": ", ".join(f'"{n}"' for n in range(50, 150)),
    "a digit of another script": '"\xb9"',
}

MEDIA_TYPES: Final[dict[str, str | None]] = {
    "none": None,
    "empty": "",
    "text": "text/plain",
    "text that says JSON": "text/json",
    "a form": "application/x-www-form-urlencoded",
    "an upload": "multipart/form-data; boundary=x",
    "XML": "application/xml",
    "anything": "*/*",
    "any application": "application/*",
    "JSON of another kind": "application/vnd.api+json",
    "a problem": "application/problem+json",
    "a patch": "application/merge-patch+json",
    "something before": "text/plain, application/json",
    "something behind": "application/json, text/plain",
    "another charset": "application/json; charset=utf-16",
    "Latin-1": "application/json; charset=iso-8859-1",
    "two charsets": "application/json; charset=utf-8; charset=utf-16",
    "an unknown parameter": f"application/json; {MARKER}=1",
    "longer": "application/jsonp",
    "shorter": "application/jso",
    "only blanks": "   ",
    "a slash": "/",
    "very long": "application/json" + "x" * 5_000,
}

SITES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "another site": (("Sec-Fetch-Site", "cross-site"),),
    "a neighbour": (("Sec-Fetch-Site", "same-site"),),
    "an unknown word": (("Sec-Fetch-Site", MARKER),),
    "no word": (("Sec-Fetch-Site", ""),),
    "two words": (("Sec-Fetch-Site", "same-origin, cross-site"),),
    "in capitals": (("Sec-Fetch-Site", "CROSS-SITE"),),
    "an unknown origin": (("Origin", "null"),),
    "an empty origin": (("Origin", ""),),
    "another origin": (("Origin", "https://evil.example"),),
    "a longer host": (("Origin", "http://testserver.evil.example"),),
    "a host in a path": (("Origin", "http://evil.example/testserver"),),
    "a host as a user": (("Origin", "http://testserver@evil.example"),),
    "another port": (("Origin", "http://testserver:8080"),),
    "no scheme": (("Origin", "testserver"),),
    "an extension": (("Origin", "chrome-extension://abcdef"),),
    "a file": (("Origin", "file://"),),
    "the origin is right, the site is not": (("Origin", "http://testserver"), ("Sec-Fetch-Site", "cross-site")),
    "a navigation": (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-User", "?1")),
}

NOBODY: Final[dict[str, str | bytes]] = {
    "empty": "",
    "a scheme alone": "Bearer",
    "a scheme and a blank": "Bearer ",
    "another scheme": "Basic YWNtZTphbm4=",
    "a digest": 'Digest username="acme:ann"',
    "no scheme": "dev:acme:ann",
    "a scheme that is longer": "Bearerx dev:acme:ann",
    "no mark": "Bearer acme:ann",
    "no subject": "Bearer dev:acme",
    "an empty subject": "Bearer dev:acme:",
    "an empty tenant": "Bearer dev::ann",
    "nothing": "Bearer dev:",
    "only a role": "Bearer dev:acme::operator",
    "a blank tenant": "Bearer dev: :ann",
    "a long subject": f"Bearer dev:acme:{'x' * 201}",
    "a long tenant": f"Bearer dev:{'x' * 201}:ann",
    "a control": b"Bearer dev:acme:ann\x01",
    "another prefix": "Bearer Dev:acme:ann",
    "a token": f"Bearer eyJhbGciOiJub25lIn0.{MARKER}.",
}

NO_HOSTS: Final = (
    "a b",
    "testserver, evil.example",
    "test/server",
    "user@testserver",
    "testserver?x",
    "testserver#x",
    "<script>",
    'te"st',
    "te\\st",
    "testserver:80:80",
    "testserver:http",
    "[::1",
    "::1",
    "http://testserver",
    "tëst",
)


def table() -> Iterator[Hostile]:
    """All of them."""
    yield submit("no key", GOOD, 400, "invalid_key", key=None)
    yield submit("two keys", GOOD, 400, "invalid_key", headers=[("Idempotency-Key", "k")])
    yield submit("two keys that differ", GOOD, 400, "invalid_key", headers=[("Idempotency-Key", MARKER)])
    yield submit("another header's key", GOOD, 400, "invalid_key", key=None, headers=[("X-Idempotency-Key", "k")])
    yield submit("a key of another request", GOOD, 422, "key_reused", key="key-of-queued")
    for why, key in NO_KEYS.items():
        yield submit(f"no key: {why}", GOOD, 400, "invalid_key", key=key)
        yield post(f"no key to run again: {why}", "/v1/jobs/{completed}/rerun", b"", 400, "invalid_key", key=key)
    for why, key in KEYS.items():
        yield submit(f"a key: {why}", GOOD, 202, key=key)
    yield post("no key to run again", "/v1/jobs/{completed}/rerun", b"", 400, "invalid_key")
    yield post("a key of a submit, to run again", "/v1/jobs/{completed}/rerun", b"", 422, "key_reused", key="key-of-queued")
    yield post("not final, to run again", "/v1/jobs/{queued}/rerun", b"", 409, "not_final", key="k")
    yield from _preconditions()
    for why, media_type in MEDIA_TYPES.items():
        yield submit(f"media type: {why}", GOOD, 415, "unsupported_media_type", media_type=media_type)
        yield post(
            f"media type of an action: {why}", "/v1/jobs/{question}/actions", GOOD, 415, "unsupported_media_type", media_type=media_type
        )
    for media_type in ("APPLICATION/JSON", "application/json ; charset=UTF-8", 'application/json;charset="utf-8"', "application/json;"):
        yield submit(f"media type {media_type}", GOOD, 202, media_type=media_type)
    for coding in ("gzip", "deflate", "br", "zstd", "compress", "x-gzip", "gzip, gzip", "identity, gzip", "GZIP", MARKER, "aes128gcm"):
        bomb = gzip.compress(bytes(2**20))
        yield submit(f"coding {coding}", bomb, 415, "unsupported_media_type", headers=[("Content-Encoding", coding)])
    yield submit("coding identity", GOOD, 202, headers=[("Content-Encoding", "identity")])
    yield submit("gzip that nobody speaks of", gzip.compress(bytes(2**20)), 400, "malformed_json")
    for why, headers in SITES.items():
        yield submit(f"from elsewhere: {why}", GOOD, 403, "cross_site", headers=headers)
        yield post(
            f"a cancel from elsewhere: {why}", "/v1/jobs/{queued}/cancel", b"", 403, "cross_site", headers=[*headers, ("If-Match", "*")]
        )
    yield get("a link from elsewhere", "/v1/jobs", 200, headers=SITES["a navigation"])
    yield submit("from here", GOOD, 202, headers=[("Origin", "http://testserver"), ("Sec-Fetch-Site", "same-origin")])
    for why, value in NOBODY.items():
        yield get(f"nobody: {why}", "/v1/jobs", 401, "unauthenticated", headers=[("Authorization", value)], who=None)
        yield submit(f"nobody submits: {why}", GOOD, 401, "unauthenticated", headers=[("Authorization", value)], who=None)
    for value in NO_HOSTS:
        yield Hostile(f"host {value!r}", "GET", "/v1/jobs", (400,), (("Host", value.encode()),), codes=("bad_request",))
    yield from _too_much()
    yield from _ignored()


def _preconditions() -> Iterator[Hostile]:
    cancel = "/v1/jobs/{queued}/cancel"
    yield post("a cancel without a precondition", cancel, b"", 428, "precondition_required")
    yield post("a cancel of what has completed", "/v1/jobs/{completed}/cancel", b"", 409, "already_completed", headers=[("If-Match", "*")])
    yield post("a cancel of what has completed, without", "/v1/jobs/{completed}/cancel", b"", 409, "already_completed")
    yield post("a cancel of what is cancelled", "/v1/jobs/{cancelled}/cancel", b"", 200)
    yield post("a cancel of what is cancelled, by another tag", "/v1/jobs/{cancelled}/cancel", b"", 200, headers=[("If-Match", '"99"')])
    yield post("two preconditions", cancel, b"", 400, "bad_request", headers=[("If-Match", '"1"'), ("If-Match", '"2"')])
    for why, value in MALFORMED_TAGS.items():
        yield post(f"no tag: {why}", cancel, b"", 400, "bad_request", headers=[("If-Match", value)])
        yield get(f"no tag to compare: {why}", "/v1/jobs/{queued}", 400, "bad_request", headers=[("If-None-Match", value)])
        yield get(f"no tag of tasks: {why}", "/v1/jobs/{completed}/tasks", 400, "bad_request", headers=[("If-None-Match", value)])
    for why, value in OTHER_VERSIONS.items():
        yield post(f"stale: {why}", cancel, b"", 412, "stale_version", headers=[("If-Match", value)])
        yield get(f"to compare: {why}", "/v1/jobs/{queued}", 304 if why == "a weak tag" else 200, headers=[("If-None-Match", value)])
    for name in ("If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"):
        yield get(f"{name} means nothing here", "/v1/jobs/{queued}", 200, headers=[(name, MARKER)])
    for value in ("", "0", "-1", "99.completed", MARKER, "1.queued\u00e9", "x" * 100, "' or 1=1--", "1.queued, 2.completed"):
        yield get(f"last event {value[:20]!r}", "/v1/jobs/{queued}/events", 200, headers=[("Last-Event-ID", value)])
        yield get(f"last event of all {value[:20]!r}", "/v1/events", 200, headers=[("Last-Event-ID", value)])
    yield get("a long last event", "/v1/jobs/{queued}/events", 400, "bad_request", headers=[("Last-Event-ID", "x" * 101)])
    yield get("a long last event of all", "/v1/events", 400, "bad_request", headers=[("Last-Event-ID", "x" * 10_000)])
    twice = [("Last-Event-ID", "1"), ("Last-Event-ID", "1")]
    yield get("two last events", "/v1/jobs/{queued}/events", 400, "bad_request", headers=twice)


def _too_much() -> Iterator[Hostile]:
    yield get("200 fields", "/v1/jobs", 431, "headers_too_large", headers=[(f"X-{n}", MARKER) for n in range(200)])
    yield get("100 fields more", "/v1/jobs", 431, "headers_too_large", headers=[("X-A", "1")] * 100)
    yield get("70 KB in a field", "/v1/jobs", 431, "headers_too_large", headers=[("X-A", "x" * 70_000)])
    yield get("33 KB in fields", "/v1/jobs", 431, "headers_too_large", headers=[(f"X-{n}", "x" * 3_300) for n in range(10)])
    yield get("70 KB of cookies", "/v1/jobs", 431, "headers_too_large", headers=[("Cookie", f"outlast_dev={MARKER * 6_000}")])
    yield get("a long name", "/v1/jobs", 431, "headers_too_large", headers=[("X" * 40_000, "1")])
    yield get("30 KB of cookies", "/v1/jobs", 200, headers=[("Cookie", "a=" + "x" * 30_000)])
    yield submit("a length that is no number", GOOD, 400, "bad_request", headers=[("Content-Length", MARKER)])
    yield submit("a negative length", GOOD, 400, "bad_request", headers=[("Content-Length", "-1")])
    yield submit("a length with a plus", GOOD, 400, "bad_request", headers=[("Content-Length", "+1")])
    yield submit("a list of lengths", GOOD, 400, "bad_request", headers=[("Content-Length", "1, 1")])
    yield submit("an empty length", GOOD, 400, "bad_request", headers=[("Content-Length", "")])
    yield submit("a length of another script", GOOD, 400, "bad_request", headers=[("Content-Length", "\xb2")])
    yield submit("a length of 1 TiB", GOOD, 413, "too_large", headers=[("Content-Length", str(2**40))])
    yield submit("a length of 30 digits", GOOD, 413, "too_large", headers=[("Content-Length", "9" * 30)])
    yield submit("a length of 5,000 digits", GOOD, (400, 413), "bad_request", "too_large", headers=[("Content-Length", "9" * 5_000)])
    for name in ("Authorization", "Content-Type", "Content-Length", "Host", "If-Match", "If-None-Match", "Last-Event-ID", "Origin"):
        yield submit(f"two of {name}", GOOD, 400, "bad_request", headers=[(name, "1"), (name, "1")], media_type=None)
    yield submit("two codings", GOOD, 400, "bad_request", headers=[("Content-Encoding", "identity"), ("Content-Encoding", "identity")])


def _ignored() -> Iterator[Hostile]:
    for name, value in (
        ("Traceparent", MARKER),
        ("Traceparent", "00-00000000000000000000000000000000-0000000000000000-00"),
        ("Traceparent", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("X-Request-Id", "<script>"),
        ("X-Request-Id", f"{MARKER} {MARKER}"),
        ("X-Request-Id", "x" * 129),
        ("X-Request-Id", "\xe9"),
        ("X-Request-Id", ""),
        ("Accept", "text/html"),
        ("Accept", f"{MARKER};q=x"),
        ("Accept", "application/xml;q=1, */*;q=0"),
        ("Accept-Encoding", "gzip;q=0, *;q=0"),
        ("Accept-Language", f"{MARKER}, *;q=banana"),
        ("Accept-Charset", "utf-16"),
        ("Expect", "100-continue"),
        ("TE", "trailers, deflate"),
        ("Upgrade", "h2c"),
        ("Connection", "close, X-Forwarded-For"),
        ("User-Agent", "() { :; }; true"),
        ("Referer", "javascript:alert(1)"),
        ("Cookie", f"outlast_dev={MARKER}"),
        ("Cookie", ";;;=;,"),
        ("Cookie", "outlast_dev"),
        ("X-Forwarded-Host", f"{MARKER}.example"),
        ("X-Forwarded-Proto", "javascript"),
        ("X-Forwarded-Prefix", f"/{MARKER}"),
        ("X-Original-URL", "/v1/admin"),
        ("X-Rewrite-URL", "/v1/admin"),
        ("Max-Forwards", "-1"),
        ("Content-MD5", MARKER),
        ("Trailer", "Authorization"),
        ("\xe9", "1"),
    ):
        yield get(f"{name}: {value[:20]!r} means nothing", "/v1/jobs/{queued}", 200, headers=[(name, value)])
        yield submit(f"{name}: {value[:20]!r} means nothing to a submit", GOOD, 202, headers=[(name, value)])
