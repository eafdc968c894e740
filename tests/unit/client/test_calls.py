"""What the client refuses before it asks the store, cursors, and how rows become what callers see."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from outlast.client import cursors, deciding, reading, submitting, views
from outlast.client.calls import Application
from outlast.client.submitting import Submission
from outlast.domain.conflicts import Conflict, Expired
from outlast.domain.defaults import Settings
from outlast.domain.errors import Contended, Forbidden, Invalid, KeyReused, NotFound, NotRegistered, OutlastError
from outlast.domain.ids import is_job_id
from outlast.domain.kinds import Kind, Plan, Task
from outlast.domain.model import Handle, Principal, Unique
from outlast.domain.registry import Registry
from outlast.domain.requests import same_request
from outlast.domain.work import Admitted, Control, KeyTaken, RerunSource, Tombstone
from outlast.observe.correlation import correlation_id
from outlast.store.program import Operation

JOB = "01900000-0000-7000-8000-000000000001"
OTHER = "01900000-0000-7000-8000-000000000002"
ANN = Principal("acme", "ann", roles=["editor", "author"], claims={"mail": "ann@example", "secret": "s"})
OLGA = Principal("acme", "olga", roles=["operator"])


@dataclass
class Book:
    pages: int
    tags: list[str] = field(default_factory=list)


def task(name: str) -> Task[Any, Any]:
    return Task(name, handler=lambda ctx, given: given, input_type=Book, returns=int, options={"queue": f"q-{name}"})  # type: ignore[arg-type]


def fill(plan: Plan[Any], book: Book) -> None:
    first = plan.task(TYPESET, label="Typeset")
    plan.task(TYPESET, label="Check", after=[first])


TYPESET = task("typeset")
BOOK = Kind("book", version=3, input_type=Book, build=fill, label="A book", keep_claims=["mail", "missing"])
REGISTRY = Registry()
REGISTRY.add_task(TYPESET)
REGISTRY.add_kind(BOOK)
APP = Application(REGISTRY, Settings(max_input=200), "https://x.example")


def unasked(call: Generator[Any, Any, Any]) -> Any:
    """The value of a call that must not ask the store."""
    try:
        wanted = next(call)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"asked the store: {wanted}")


def answered(call: Generator[Any, Any, Any], *values: Any) -> Any:
    """The value of a call whose operations are answered by these, in order."""
    left = list(values)
    try:
        wanted = next(call)
        while True:
            assert isinstance(wanted, Operation | float | int)
            wanted = call.send(left.pop(0))
    except StopIteration as stop:
        assert left == []
        return stop.value


def prepare(value: Any = None, **options: Any) -> Any:
    given = {"owner": ANN, "key": None, "not_before": None, **options}
    kind = given.pop("kind", BOOK)
    return submitting.prepare(APP, kind, Book(1) if value is None else value, **given)


# -- submit ---------------------------------------------------------------------------------------------------


def test_prepare_has_everything_that_is_stored() -> None:
    job = prepare(Book(2, ["x"]), key="k-1")
    assert (job.tenant, job.owner, job.key, job.kind, job.schema_version, job.label) == ("acme", "ann", "k-1", "book", 3, "A book")
    assert job.input == '{"pages":2,"tags":["x"]}'
    assert job.caller == '{"roles":["author","editor"],"claims":{"mail":"ann@example"}}', "what the kind asked to keep, and no more"
    assert [t.label for t in job.tasks] == ["Typeset", "Check"]
    assert is_job_id(job.job_id)
    assert (job.effect_root, job.rerun_of, job.not_before_ms) == (job.job_id, None, None)


def test_prepare_makes_an_id_of_its_own_each_time() -> None:
    assert len({prepare().job_id for _ in range(100)}) == 100


def test_prepare_fingerprints_the_request_and_nothing_else() -> None:
    same = {prepare(Book(2), key=key, owner=owner).fingerprint for key, owner in (("a", ANN), (None, OLGA))}
    assert len(same) == 1
    later = datetime.now(UTC) + timedelta(hours=1)
    different = {prepare(Book(2)).fingerprint, prepare(Book(3)).fingerprint, prepare(Book(2), kind=TYPESET).fingerprint}
    assert len(different) == 3
    assert prepare(Book(2), not_before=later).fingerprint in same
    uniques = (None, Unique("a", "existing"), Unique("b", "existing"), Unique("a", "reject"))
    assert len({prepare(Book(2), unique=unique).fingerprint for unique in uniques}) == len(uniques)


# -- an input of an earlier version -------------------------------------------------------------------------------------


def evolved(*, version: int = 3, functions: dict[int, Any] | None = None) -> Application:
    registry = Registry()
    registry.add_task(TYPESET)
    kind = Kind("book", version=version, input_type=Book, build=fill)
    for from_version, fn in (functions or {}).items():
        kind.upgrade(from_version=from_version)(fn)
    registry.add_kind(kind)
    return Application(registry, Settings(max_input=200), "")


def sent(app: Application, value: Any, version: int | None = None) -> Any:
    return submitting.prepare_sent(app, "book", version, value, owner=ANN, key="k", not_before=None)


UP = {1: lambda old: {"sheets": old["leaves"]}, 2: lambda old: {"pages": 2 * old["sheets"]}}


def test_what_is_stored_of_an_old_input_is_the_present_version_of_it() -> None:
    job = sent(evolved(functions=UP), {"leaves": 4}, 1)
    assert (job.schema_version, job.input) == (3, '{"pages":8}')
    assert {task.handler for task in job.tasks} == {"book@3:typeset"}
    present = sent(evolved(functions=UP), {"pages": 8}, 3)
    assert (present.schema_version, present.input) == (3, '{"pages":8}')


def same(first: Any, repeat: Any) -> bool:
    return same_request(first.fingerprint, repeat.fingerprint)


def test_a_repeat_is_compared_by_what_was_sent_and_by_the_version_where_it_names_one() -> None:
    after = evolved(functions=UP)
    named, unnamed = sent(after, {"sheets": 4}, 2), sent(after, {"pages": 8}, None)
    assert same(named, sent(after, {"sheets": 4}, 2))
    assert same(unnamed, sent(after, {"pages": 8}, 3))
    assert same(sent(after, {"pages": 8}, 3), unnamed)
    assert not same(named, unnamed)
    assert not same(unnamed, named), "what they are brought up to is one input, what was sent is not"
    other_functions = evolved(functions={**UP, 2: lambda old: {"pages": 1}})
    assert same(named, sent(other_functions, {"sheets": 4}, 2))


def test_a_repeat_after_the_version_was_raised_is_the_same_request() -> None:
    before, after = evolved(version=2, functions={1: UP[1]}), evolved(functions={1: UP[1], 2: dict})
    first = {version: sent(before, {"pages": 4}, version) for version in (None, 2)}
    for came in first.values():
        assert same(came, sent(after, {"pages": 4}, None))
        assert same(came, sent(after, {"pages": 4}, 2)), "the version that it had then"
        assert not same(came, sent(after, {"pages": 4}, 3)), "another version may mean another thing by it"


def test_python_names_no_version() -> None:
    old, new = evolved(version=1), evolved(version=2, functions={1: dict})
    by_python = [submitting.prepare(app, app.registry.kind("book"), Book(4), owner=ANN, key="k", not_before=None) for app in (old, new)]
    assert same(*by_python)
    whole = {"pages": 4, "tags": []}
    for app in (old, new):
        for version in (None, 1):
            assert same(by_python[0], sent(app, whole, version))
            assert same(sent(app, whole, version), by_python[1])
    assert not same(by_python[0], sent(old, {"pages": 4}, None)), "Python sends defaults too, and what is sent is compared"


@pytest.mark.parametrize("version", [1, 4])
def test_a_version_that_cannot_be_read_is_not_registered(version: int) -> None:
    with pytest.raises(NotRegistered, match="versions 2 to 3"):
        sent(evolved(functions={2: UP[2]}), {"pages": 1}, version)


@pytest.mark.parametrize("value", [{"sheets": "x" * 150}, {"sheets": None}, {}, []])
def test_an_old_input_that_cannot_be_brought_up_is_refused(value: Any) -> None:
    with pytest.raises(Invalid) as refused:
        sent(evolved(functions=UP), value, 2)
    assert refused.value.code == "invalid"


def source(version: int, body: str) -> RerunSource:
    return RerunSource("cancelled", "user", "book", version, "ann", OTHER, body, '{"roles":[]}')


def test_a_rerun_of_an_old_job_is_planned_in_the_present_version() -> None:
    call = submitting.rerun_job(evolved(functions=UP), JOB, ANN, "k")
    next(call)
    program = call.send(source(1, '{"leaves":4}')).start()
    assert next(program).name == "lock_job"
    stored = program.send([("cancelled",)]).params
    assert [stored[name] for name in ("versions", "inputs", "reruns", "roots")] == [[3], ['{"pages":8}'], [JOB], [OTHER]]
    assert set(stored["t_handlers"]) == {"book@3:typeset"}


@pytest.mark.parametrize(
    ("version", "body", "refusal"), [(4, '{"pages":1}', NotRegistered), (2, '{"leaves":1}', Invalid), (3, '{"leaves":1}', Invalid)]
)
def test_a_rerun_of_what_cannot_be_read_asks_the_store_for_nothing(version: int, body: str, refusal: type[OutlastError]) -> None:
    call = submitting.rerun_job(evolved(functions=UP), JOB, ANN, "k")
    next(call)
    with pytest.raises(refusal) as refused:
        call.send(source(version, body))
    assert getattr(refused.value, "pointers", ()) == ()


def test_prepare_takes_the_correlation_id_of_its_caller() -> None:
    token = correlation_id.set("request-7")
    try:
        assert prepare().correlation_id == "request-7"
    finally:
        correlation_id.reset(token)
    assert len({prepare().correlation_id for _ in range(3)}) == 3


@pytest.mark.parametrize("naive", [datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=None), "2030-01-01T00:00:00Z", 1_900_000_000, True])  # noqa: DTZ001
def test_a_due_time_without_a_zone_is_refused(naive: Any) -> None:
    with pytest.raises(Invalid, match="time zone"):
        prepare(not_before=naive)


def test_a_due_time_of_any_zone_is_taken_to_the_millisecond() -> None:
    at = datetime(2030, 1, 1, 12, 0, 0, 123_400, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert prepare(not_before=at).not_before_ms == 1_893_479_400_123
    assert prepare(not_before=datetime(1960, 1, 1, tzinfo=UTC)).not_before_ms == 0


@pytest.mark.parametrize("key", ["", " ", "a b", "a\n", "x" * 256, "é", "a\x00", "\ud800", 7, b"k"])
def test_a_key_that_is_none_is_refused(key: Any) -> None:
    with pytest.raises(Invalid):
        prepare(key=key)


@pytest.mark.parametrize("key", ["k", "x" * 255, "!~\"'%{}:?"])
def test_a_key_of_visible_ascii_is_taken(key: str) -> None:
    assert prepare(key=key).key == key


@pytest.mark.parametrize("value", [Book("many"), {"pages": 1, "more": 2}, [], 7, Book(2**63), Book(1, ["\x00"]), Book(1, ["\ud800"])])  # type: ignore[arg-type]
def test_an_input_that_does_not_fit_the_kind_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        prepare(value)


def test_an_input_that_is_too_large_is_refused() -> None:
    with pytest.raises(Invalid, match="larger than 200 bytes"):
        prepare(Book(1, ["x" * 200]))


def test_a_kind_that_is_not_registered_here_is_refused() -> None:
    twin = Kind("book", version=3, input_type=Book, build=fill)
    with pytest.raises(NotRegistered):
        prepare(kind=twin)


@pytest.mark.parametrize("kind", ["book", None, Book])
def test_what_is_no_kind_is_refused(kind: Any) -> None:
    with pytest.raises(Invalid, match=r"@jobs\.kind"):
        prepare(kind=kind)


@pytest.mark.parametrize("owner", ["ann", None, ("acme", "ann")])
def test_an_owner_that_is_no_principal_is_refused(owner: Any) -> None:
    with pytest.raises(Invalid, match="Principal"):
        prepare(owner=owner)


def test_submit_of_a_key_that_is_taken_is_refused() -> None:
    with pytest.raises(KeyReused):
        answered(submitting.submit(APP, prepare(key="k")), [KeyTaken()])


BURIED = Tombstone(JOB, "cancelled", "abandoned", 1_800_000_000_000, 1_800_086_400_000)


@pytest.mark.parametrize(
    ("found", "read"), [(Admitted(JOB, replayed=True, tombstone=BURIED), ()), (Admitted(JOB, replayed=True), (BURIED,))]
)
def test_submit_of_a_job_that_was_purged_says_how_it_ended(found: Admitted, read: tuple[Tombstone, ...]) -> None:
    """Before the submit, or between its two statements."""
    handle = answered(submitting.submit(APP, prepare(key="k")), [found], *read)
    assert handle == Handle(JOB, f"https://x.example/v1/jobs/{JOB}", "cancelled", replayed=True, expired=True)


def test_submit_of_a_job_that_is_gone_without_a_trace_may_be_repeated() -> None:
    with pytest.raises(Contended):
        answered(submitting.submit(APP, prepare(key="k")), [Admitted(JOB, replayed=True)], None)


def test_submit_many_of_nothing_asks_nobody() -> None:
    assert unasked(submitting.submit_many(APP, [])) == ()


def test_submission_takes_what_submit_takes() -> None:
    given = Submission(BOOK, Book(1), key="k")
    assert (given.kind, given.input, given.key, given.not_before) == (BOOK, Book(1), "k", None)


def test_queues_of_a_submission_are_those_where_it_made_work() -> None:
    assert submitting.queues_of([prepare(), prepare(kind=TYPESET)]) == ("q-typeset",)
    assert submitting.queues_of([]) == ()


# -- ids ------------------------------------------------------------------------------------------------------

MALFORMED = [
    "",
    "x",
    JOB.upper().replace("0", "A"),
    JOB + "\n",
    JOB[:-1],
    JOB + "0",
    "{" + JOB + "}",
    JOB.replace("-", ""),
    "1",
    "0x1",
    "'; --",
    "\x00",
    "\u0661" * 36,
]
CALLS: dict[str, Callable[[str], Generator[Any, Any, Any]]] = {
    "get": lambda i: reading.get(APP, i, ANN),
    "tasks": lambda i: reading.tasks(i, ANN),
    "result": lambda i: reading.result(APP, i, None, ANN, None),
    "result of a task": lambda i: reading.result(APP, i, TYPESET, ANN, None),
    "recovery": lambda i: reading.recovery(i, ANN),
    "wait": lambda i: reading.wait(APP, i, ANN, 0, "final"),
    "cancel": lambda i: deciding.cancel(APP, i, ANN, None),
    "act": lambda i: deciding.act(APP, i, "0.1", action="retry", principal=ANN, given=None),
    "rerun": lambda i: submitting.rerun_job(APP, i, ANN, None),
}


@pytest.mark.parametrize("job_id", MALFORMED, ids=range(len(MALFORMED)))
@pytest.mark.parametrize("call", CALLS)
def test_an_id_in_no_stored_form_is_unknown_without_asking_the_store(call: str, job_id: str) -> None:
    with pytest.raises(NotFound) as refused:
        unasked(CALLS[call](job_id))
    assert refused.value.message == "There is no such job."


@pytest.mark.parametrize("call", [c for c in CALLS if c not in ("tasks", "wait", "get")])
def test_who_may_read_a_job_and_not_do_this_is_told_so(call: str) -> None:
    first = (None, None) if call == "result" else (None, []) if call == "result of a task" else None
    if call in ("cancel", "act"):
        first = Control.NOT_FOUND  # type: ignore[assignment]
    with pytest.raises(Forbidden):
        answered(CALLS[call](JOB), first, "the job, as its reader sees it")
    with pytest.raises(NotFound):
        answered(CALLS[call](JOB), first, None)


@pytest.mark.parametrize("name", CALLS)
def test_what_was_purged_is_expired_for_its_owner(name: str) -> None:
    call = CALLS[name](JOB)
    found = {
        "unreachable": BURIED,
        "usable_output": (None, None),
        "outputs": (None, []),
        "cancel": Control.NOT_FOUND,
        "act": Control.NOT_FOUND,
    }

    def asked(given: Any) -> None:
        while True:
            given = found.get(call.send(given).name)

    with pytest.raises(Expired) as refused:
        asked(None)
    assert (refused.value.state, refused.value.outcome) == ("cancelled", "abandoned")
    assert "given up on 2027-01-15, was kept until 2027-01-16" in refused.value.message
    assert not refused.value.retryable


# -- lists ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, -1, 201, 10**20, True, 1.0, "5", None])
def test_a_limit_that_is_no_number_of_a_page_is_refused(limit: Any) -> None:
    with pytest.raises(Invalid, match="limit"):
        unasked(reading.list_jobs(APP, ANN, state=None, kind=None, limit=limit, cursor=None))


@pytest.mark.parametrize("state", ["open", "done", "", "ACTIVE", "stopping"])
def test_a_state_that_nobody_sees_is_refused(state: str) -> None:
    with pytest.raises(Invalid, match="state is one of"):
        unasked(reading.list_jobs(APP, ANN, state=state, kind=None, limit=1, cursor=None))


def test_a_kind_of_too_long_a_name_is_refused() -> None:
    with pytest.raises(Invalid):
        unasked(reading.list_jobs(APP, ANN, state=None, kind="x" * 101, limit=1, cursor=None))


def test_a_list_page_ends_with_a_cursor_or_none() -> None:
    page = answered(reading.list_jobs(APP, ANN, state=None, kind=None, limit=200, cursor=None), ([], None))
    assert (page.items, page.next) == ((), None)
    page = answered(reading.list_jobs(APP, ANN, state=None, kind=None, limit=1, cursor=None), ([], JOB))
    assert cursors.read(page.next, "acme\nann\nNone\nNone\nNone") == JOB


def test_a_cursor_comes_back_as_it_was_and_is_bound() -> None:
    cursor = cursors.write(JOB, "acme\nann")
    assert cursors.read(cursor, "acme\nann") == JOB
    for bound in ("acme\nbob", "acme\nann ", ""):
        with pytest.raises(Invalid, match="another list"):
            cursors.read(cursor, bound)


def test_cursors_fit_into_a_url() -> None:
    assert cursors.write(JOB, "x").isascii()
    assert not set(cursors.write(JOB, "\N{GRINNING FACE}")) & set("+/=&?# ")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "!!!!",
        "\N{GRINNING FACE}",
        base64.urlsafe_b64encode(b"12345678" + JOB.encode()).decode(),
        base64.urlsafe_b64encode(b"\xff" * 60).decode(),
        cursors.write("not an id", "bound"),
        cursors.write(JOB + JOB, "bound"),
        cursors.write(JOB, "bound") + "AAAA",
        cursors.write(JOB, "bound")[:-4],
    ],
    ids=range(10),
)
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="cursor"):
        cursors.read(cursor, "bound")


# -- cancel, act, wait ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", 1.0, True, b"1"])
def test_a_version_that_is_no_number_is_refused(version: Any) -> None:
    with pytest.raises(Invalid, match="version"):
        unasked(deciding.cancel(APP, JOB, ANN, version))


@pytest.mark.parametrize("action", ["", "Retry", "cancel", "closed", None])
def test_an_action_that_is_none_is_refused(action: Any) -> None:
    with pytest.raises(Invalid) as refused:
        unasked(deciding.act(APP, JOB, "0.1", action=action, principal=ANN, given=None))
    assert refused.value.code == "not_offered"


@pytest.mark.parametrize("action", ["retry", "skip", "dismiss"])
def test_an_input_to_what_takes_none_is_refused(action: Any) -> None:
    with pytest.raises(Invalid, match="takes an input"):
        unasked(deciding.act(APP, JOB, "0.1", action=action, principal=ANN, given={"a": 1}))


@pytest.mark.parametrize("given", [float("nan"), object(), "\ud800", "x" * 300])
def test_an_answer_that_cannot_be_stored_is_refused(given: Any) -> None:
    with pytest.raises(Invalid):
        unasked(deciding.act(APP, JOB, "0.1", action="answer", principal=ANN, given=given))


@pytest.mark.parametrize("attention", ["", "0.1\x00", "\ud800", "0.1\n", "x" * 300, 7, None], ids=range(7))
def test_an_attention_id_that_no_store_can_hold_is_refused(attention: Any) -> None:
    with pytest.raises(Invalid, match="attention"):
        unasked(deciding.act(APP, JOB, attention, action="retry", principal=ANN, given=None))


@pytest.mark.parametrize("kind", ["", "book\x00", "\ud800", "a b", 7], ids=range(5))
def test_a_kind_that_cannot_be_a_name_is_refused(kind: Any) -> None:
    with pytest.raises(Invalid, match="kind"):
        unasked(reading.list_jobs(APP, ANN, state=None, kind=kind, limit=1, cursor=None))


@pytest.mark.parametrize(("given", "kept"), [("a\x00b", "a\ufffdb"), ("\ud800", "\ufffd"), ("x" * 300, "x" * 199 + "\u2026")])
def test_a_correlation_id_is_made_storable(given: str, kept: str) -> None:
    """It comes from a header, perhaps, and is no reason to refuse the work."""
    token = correlation_id.set(given)
    try:
        assert prepare().correlation_id == kept
    finally:
        correlation_id.reset(token)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", None, True])
def test_a_time_out_that_is_no_time_is_refused(timeout: Any) -> None:
    with pytest.raises(Invalid, match="timeout"):
        unasked(reading.wait(APP, JOB, ANN, timeout, "final"))


def test_wait_knows_two_ends() -> None:
    unknown: Any = "done"
    with pytest.raises(Invalid, match="until"):
        unasked(reading.wait(APP, JOB, ANN, 0, unknown))


def test_moments_are_aware_and_in_utc() -> None:
    moment = views.moment(1_893_479_400_123)
    assert moment == datetime(2030, 1, 1, 6, 30, 0, 123_000, tzinfo=UTC)
    assert views.moment(None) is None
    assert views.url("https://x.example", JOB) == f"https://x.example/v1/jobs/{JOB}"


def test_refusals_have_codes_that_stay() -> None:
    codes = {error.__name__: error.code for error in (Invalid, NotFound, Forbidden, KeyReused, Conflict, NotRegistered)}
    assert codes == {
        "Invalid": "invalid",
        "NotFound": "not_found",
        "Forbidden": "forbidden",
        "KeyReused": "key_reused",
        "Conflict": "conflict",
        "NotRegistered": "not_registered",
    }
    assert issubclass(NotFound, OutlastError)
