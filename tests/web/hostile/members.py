"""Members that a body may not have, of types that they may not be, and texts that mean something elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from web.hostile.request import MARKER, VERSION, Hostile, good, note, post, submit

ASSIGNED: Final[dict[str, Any]] = {
    "tenant": "globex",
    "owner": "bob",
    "subject": "bob",
    "principal": {"tenant": "globex", "subject": "ann"},
    "user": MARKER,
    "user_id": 1,
    "roles": ["operator"],
    "role": "operator",
    "claims": {"a": MARKER},
    "caller": "{}",
    "id": "0190a8c0-4b5e-7c3d-8f00-0123456789ab",
    "job_id": "0190a8c0-4b5e-7c3d-8f00-0123456789ab",
    "state": "completed",
    "status": "completed",
    "outcome": "succeeded",
    "version": 99,
    "fence": 99,
    "attempt": 0,
    "attempts": 0,
    "max_attempts": 1_000_000,
    "deadline": 1e9,
    "retry": {"base": 0},
    "priority": -(2**31),
    "queue": "default",
    "label": MARKER,
    "progress": {"done": 1, "total": 1, "label": None},
    "tasks": [],
    "plan": [],
    "result": MARKER,
    "output": MARKER,
    "usable_at": "2030-01-01T00:00:00Z",
    "usable_ref": "javascript:alert(1)",
    "accepted_at": "2001-01-01T00:00:00Z",
    "created_at": "2001-01-01T00:00:00Z",
    "finished_at": "2001-01-01T00:00:00Z",
    "expires_at": "2001-01-01T00:00:00Z",
    "retention": 0,
    "stopping": True,
    "attention": None,
    "attention_count": 0,
    "attach": "attached",
    "taken_over_at": None,
    "cancel_note": MARKER,
    "cancelled_by": "bob",
    "rerun_of": "0190a8c0-4b5e-7c3d-8f00-0123456789ab",
    "effect_root": "0190a8c0-4b5e-7c3d-8f00-0123456789ab",
    "correlation_id": MARKER,
    "traceparent": MARKER,
    "key": "another",
    "idempotency_key": "another",
    "fingerprint": "0" * 64,
    "links": {},
    "callback_url": "http://169.254.169.254/latest",
    "webhook": "http://127.0.0.1:22/",
    "Unique": {"key": "one", "policy": "reject"},
    "active_key": "one",
    "active_scope": "note",
    "target": {"ref": "orders/1", "version": "3"},
    "Kind": "note",
    "KIND": "note",
    " kind": "note",
    "kind\u200b": "note",
    "": 1,
    "__class__": "Submit",
    "__proto__": {"admin": True},
    "constructor": {"prototype": {}},
    "py/object": "os.system",
    "$ref": "#/components/schemas/Job",
    "$where": "1",
    "type": "Submit",
    "schemaVersion": 1,
    "notBefore": None,
}

WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "kind": (None, True, 0, 1.5, [], ["note"], {}, {"$ne": 1}, "", "x" * 201, "y" * 100_000, "note\n", " "),
    "schema_version": (0, -1, 2**31, 2**53, True, False, "1", 1.5, [], [1], {}),
    "not_before": (
        0,
        1.5,
        True,
        [],
        {},
        "",
        "tomorrow",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-01-01 00:00",
        "2030-13-01T00:00:00Z",
        "2030-02-30T00:00:00Z",
        "2030-01-01T24:00:00Z",
        "2030-01-01T00:00:61Z",
        "10000-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "-0001-01-01T00:00:00Z",
        "2030-01-01T00:00:00+25:00",
        "2030-01-01T00:00:00 Europe/Berlin",
        "1893456000",
        "P1D",
        "now() + interval '1 day'",
        "2030-01-01T00:00:00Z; drop table outlast_job",
        "\u0662\u0660\u0663\u0660-01-01T00:00:00Z",
        MARKER,
    ),
    "input": (None, True, 0, 1.5, "text", [], ["text"], {}, [[]], [{"text": "x"}]),
}

WRONG_INSIDE: Final[dict[str, tuple[Any, ...]]] = {
    "text": (None, True, 0, 1.5, [], ["x"], {}, {"$gt": ""}),
    "seconds": (None, True, "1", "NaN", [], {}, [1.0]),
}

ODD_TIMES: Final = (
    "1970-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999-23:59",
    "2030-01-01T00:00:00.123456789Z",
    "2030-01-01t00:00:00z",
    "2030-06-30T12:00:00-12:00",
    "2030-06-30T12:00:00+0100",
)
"""Far from now, and of one instant: taken."""

TEXTS: Final = (
    "' or 1=1--",
    "'; drop table outlast_job;--",
    '" or ""="',
    "\\'; select pg_sleep(10);--",
    "$1",
    "%s %d %(tenant)s",
    ":tenant",
    "{tenant}",
    "%",
    "_",
    "a\\",
    "/* */",
    "x'; attach database '/tmp/x' as x;--",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</script><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "${7*7}{{7*7}}#{7*7}",
    "${jndi:ldap://127.0.0.1/x}",
    "=cmd|'/c calc'!A1",
    "\x1b[31mred\x1b[0m",
    "one\r\nSet-Cookie: a=b",
    "\u202eevil",
    "zero\u200bwidth",
    "\ufeffmark",
    "\uffff",
    "\U0010ffff",
    "e\u0301 and \u00e9",
    "\u2028\u2029",
    "../../etc/passwd",
    "\x7f\x80\x9f",
    "🙂" * 1_000,
)
"""Stored as they are, and shown as they are, in JSON."""

NO_KINDS: Final = (
    "no-such-kind",
    MARKER,
    "note@1",
    "note@1:write",
    "Note",
    "NOTE",
    "note ",
    "\uff4e\uff4f\uff54\uff45",
    "n\u043ete",
    "../note",
    "note/../print",
    "note%00",
    "' or 1=1--",
    "note;drop table outlast_job",
    "*",
    "%",
    "__class__",
    "outlast.domain.kinds.Kind",
    "x" * 200,
    "=note",
    "<script>",
)


_CALLED: Final[tuple[Any, ...]] = (None, True, 1, [], {}, "", "cancel", "ANSWER", "takeover", "attach", MARKER, "' or 1=1--", ["retry"])
_QUESTIONS: Final[tuple[Any, ...]] = (None, True, 1, [], {}, "", " ", "x" * 201, "0.1\n", "\u202e0.1")
_ANSWERS: Final[tuple[Any, ...]] = (None, 1, "red", [], {}, {"colour": 1}, {"colour": "red", "more": 1}, {"color": "red"})


def table() -> Iterator[Hostile]:
    """All of them."""
    yield from _refused()
    yield from _taken()
    yield from _actions()


def _refused() -> Iterator[Hostile]:
    for name, value in ASSIGNED.items():
        yield submit(f"a member {name!r}", good(**{name: value}), 422, "invalid")
    for name in ("tenant", "owner", "id", "__class__", "", "Text", "a/b~c", "x" * 1_000, "\u202e"):
        yield submit(f"a member {name[:20]!r} in the input", note(**{name: MARKER}), 422, "invalid")
    for name, values in WRONG.items():
        for value in values:
            yield submit(f"{name} is {str(value)[:30]!r}", good(**{name: value}), 422, "invalid", "not_registered")
    for name, values in WRONG_INSIDE.items():
        for value in values:
            yield submit(f"{name} of the input is {value!r}", note(**{name: value}), 422, "invalid")
    for name in ("kind", "input"):
        yield submit(f"no {name}", {n: v for n, v in good().items() if n != name}, 422, "invalid")
    yield submit("no text in the input", good(input={"seconds": 1}), 422, "invalid")
    yield submit("a version that is not registered", good(schema_version=VERSION), 422, "not_registered")
    yield submit("the largest version", good(schema_version=2**31 - 1), 422, "not_registered")
    yield submit("a kind for some roles only", good(kind="secret"), 403, "forbidden")
    for kind in NO_KINDS:
        yield submit(f"a kind {kind[:30]!r}", good(kind=kind), 422, "not_registered")


def _taken() -> Iterator[Hostile]:
    for moment in ODD_TIMES:
        yield submit(f"not before {moment}", good(not_before=moment), 202)
    for text in TEXTS:
        yield submit(f"a text {text[:20]!r}", note(text=text), 202)


def _actions() -> Iterator[Hostile]:
    target = "/v1/jobs/{question}/actions"
    answer = {"attention_id": "0.1", "action": "answer", "input": {"colour": MARKER}}

    def act(why: str, body: dict[str, Any], wanted: int | tuple[int, ...], *codes: str) -> Hostile:
        return post(f"an action: {why}", target, body, wanted, *codes)

    yield act("none", {}, 422, "invalid")
    for name in ("tenant", "owner", "job_id", "version", "state", "actor", "no", "target_version", "Action"):
        yield act(f"a member {name}", {**answer, name: MARKER}, 422, "invalid")
    for value in _CALLED:
        yield act(f"called {value!r}", {**answer, "action": value}, 422, "invalid")
    for value in _QUESTIONS:
        yield act(f"on question {str(value)[:20]!r}", {**answer, "attention_id": value}, 422, "invalid")
    for value in ("0.99", "9.1", "-1", "0", "0.1.1", "%", "' or 1=1--", MARKER, "00.1", "0.01", "9223372036854775808.1", "x" * 200):
        yield act(f"on no question {value[:20]!r}", {**answer, "attention_id": value}, 409, "attention_superseded")
    for offered in ("retry", "skip"):
        yield act(f"not offered: {offered}", {"attention_id": "0.1", "action": offered}, 422, "not_offered")
    for value in _ANSWERS:
        yield act(f"with the answer {value!r}", {"attention_id": "0.1", "action": "answer", "input": value}, 422, "invalid")
    yield act("with an answer", answer, 202)
    yield act("dismiss with an input", {"attention_id": "0.1", "action": "dismiss", "input": {"a": MARKER}}, 422, "invalid")
    yield post("an action on a job without questions", "/v1/jobs/{completed}/actions", {"attention_id": "0.1", "action": "dismiss"}, 409)
    yield post("an action without a body", target, b"", 400, "malformed_json")
    for route in ("replay", "pause", "purge"):
        yield post(f"no route yet: {route}", f"/v1/jobs/{{queued}}/{route}", {"no": 0, "target_version": "1"}, 404, "not_found")
