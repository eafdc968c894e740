"""The client's calls on every store: what a caller gets, is refused, and what of it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contract.backends import START_MS
from contract.harness import Harness
from outlast.app import Outlast
from outlast.client import deciding, reading, submitting
from outlast.client.submitting import Submission
from outlast.domain.conflicts import AlreadyCompleted, Conflict, NotReady, StaleVersion
from outlast.domain.errors import Forbidden, Invalid, KeyReused, NotFound, OutlastError
from outlast.domain.kinds import Plan
from outlast.domain.model import Principal
from outlast.worker.context import SyncContext

ANN = Principal("acme", "ann")
BOB = Principal("acme", "bob")
OLGA = Principal("acme", "olga", roles=["operator"])
STRANGER = Principal("elsewhere", "ann")
UNKNOWN = "00000000-0000-7000-8000-000000000000"


@dataclass
class Book:
    pages: int


jobs = Outlast("sqlite:///never-opened.db", base_url="https://books.example/")


@jobs.task(max_attempts=2)
def typeset(ctx: SyncContext, book: Book) -> int:
    return book.pages


@jobs.task
def check(ctx: SyncContext, book: Book) -> str:
    return "fine"


@jobs.task
def chapter(ctx: SyncContext, book: Book, number: int) -> str:
    return f"chapter {number}"


@jobs.kind("book", label="A book", cancel_note="What is printed stays printed.")
def book(plan: Plan[Book], given: Book) -> None:
    parts = plan.each(chapter, range(given.pages), label=lambda n: f"Chapter {n}")
    done = plan.task(typeset, label="Typeset", after=parts, usable=True)
    plan.task(check, label="Check", after=[done], optional=True)


APP = jobs._app
HANDLERS = jobs.registry.handlers()


@dataclass
class Caller:
    """Calls of one principal, driven on the store under test."""

    h: Harness

    def submit(self, pages: int = 0, *, owner: Principal = ANN, kind: Any = typeset, **options: Any) -> str:
        return self.handle(pages, owner=owner, kind=kind, **options).id

    def handle(self, pages: int = 0, *, owner: Principal = ANN, kind: Any = typeset, **options: Any) -> Any:
        prepared = submitting.prepare(
            APP, kind, Book(pages), owner=owner, key=options.pop("key", None), not_before=options.pop("not_before", None)
        )
        return self.h.drive(submitting.submit(APP, prepared))

    def many(self, *submissions: Submission, owner: Principal = ANN) -> Any:
        prepared = [submitting.prepare(APP, s.kind, s.input, owner=owner, key=s.key, not_before=s.not_before) for s in submissions]
        return self.h.drive(submitting.submit_many(APP, prepared))

    def get(self, job: str, who: Principal = ANN) -> Any:
        return self.h.drive(reading.get(APP, job, who))

    def cancel(self, job: str, who: Principal = ANN, version: int | None = None) -> Any:
        return self.h.drive(deciding.cancel(APP, job, who, version))

    def act(self, job: str, attention: str, action: Any, who: Principal = ANN, given: Any = None) -> Any:
        return self.h.drive(deciding.act(APP, job, attention, action=action, principal=who, given=given))

    def result(self, job: str, task: Any = None, who: Principal = ANN, label: str | None = None) -> Any:
        return self.h.drive(reading.result(APP, job, task, who, label))

    def rerun(self, job: str, who: Principal = ANN, key: str | None = None) -> Any:
        return self.h.drive(submitting.rerun_job(APP, job, who, key))

    def page(self, who: Principal = ANN, **options: Any) -> Any:
        wanted = {"state": None, "kind": None, "limit": 50, "cursor": None, **options}
        return self.h.drive(reading.list_jobs(APP, who, **wanted))

    def finish_all(self) -> None:
        while held := self.h.claim(handlers=HANDLERS):
            for claimed in held:
                self.h.finish(claimed, '"x"' if "chapter" in claimed.handler or "check" in claimed.handler else "7", f"{claimed.label}.pdf")


@pytest.fixture
def c(h: Harness) -> Caller:
    return Caller(h)


def test_submit_gives_a_handle_and_the_job_stands(c: Caller) -> None:
    handle = c.handle(2, kind=book, key="k")
    assert (handle.state, handle.replayed, handle.url) == ("queued", False, f"https://books.example/v1/jobs/{handle.id}")
    seen = c.get(handle.id)
    assert (seen.kind, seen.label, seen.state, seen.final, seen.cancel_note) == (
        "book",
        "A book",
        "queued",
        False,
        "What is printed stays printed.",
    )
    assert (seen.progress.done, seen.progress.total, seen.progress.label) == (0, 4, "Chapter 0")
    assert seen.accepted_at == datetime.fromtimestamp(START_MS / 1000, tz=UTC)


def test_submit_again_shows_the_jobs_present_state(c: Caller) -> None:
    first = c.handle(key="k")
    c.finish_all()
    again = c.handle(key="k")
    assert (again.id, again.replayed, again.state) == (first.id, True, "completed")


def test_submit_another_request_under_a_key_is_refused(c: Caller) -> None:
    c.submit(1, key="k")
    before = c.h.snapshot()
    with pytest.raises(KeyReused):
        c.submit(2, key="k")
    with pytest.raises(KeyReused):
        c.submit(1, kind=check, key="k")
    assert c.h.snapshot() == before


def test_submit_later_waits_for_its_time(c: Caller) -> None:
    at = datetime.fromtimestamp(START_MS / 1000, tz=UTC) + timedelta(hours=1)
    job = c.submit(not_before=at)
    (task,) = c.h.drive(reading.tasks(job, ANN))
    assert (task.state, task.next_attempt_at) == ("queued", at)


def test_submit_many_in_order_whatever_their_keys(c: Caller) -> None:
    handles = c.many(*(Submission(typeset, Book(n), key=key) for n, key in enumerate(("z", "a", None, "m"))))
    pages = [c.h.sql("select input from {outlast.job_input} where job_id = {uuid:job}", job=h.id)[0]["input"] for h in handles]
    assert pages == [f'{{"pages":{n}}}' for n in range(4)]
    assert c.many() == ()


def test_submit_many_is_all_or_none_and_names_the_one_at_fault(c: Caller) -> None:
    c.submit(1, key="a")
    before = c.h.snapshot()
    with pytest.raises(KeyReused) as refused:
        c.many(Submission(typeset, Book(5), key="z"), Submission(typeset, Book(6)), Submission(typeset, Book(7), key="a"))
    assert "submission 2" in refused.value.message
    assert c.h.snapshot() == before


def test_cancel_gives_the_job_as_it_stands(c: Caller) -> None:
    job = c.submit()
    seen = c.cancel(job, version=1)
    assert (seen.state, seen.final, seen.outcome, seen.version) == ("cancelled", True, "user", 2)
    assert c.cancel(job, version=1) == seen


def test_cancel_refusals_carry_the_winner(c: Caller) -> None:
    job = c.submit()
    with pytest.raises(StaleVersion) as stale:
        c.cancel(job, version=9)
    assert stale.value.job.version == 1
    c.finish_all()
    with pytest.raises(AlreadyCompleted) as completed:
        c.cancel(job)
    assert completed.value.job.state == "completed"


def test_act_takes_an_answer_once(c: Caller) -> None:
    job = c.submit()
    (claimed,) = c.h.claim(handlers=HANDLERS)
    c.h.ask(claimed, "paper", ("answer",))
    attention = c.get(job).attention
    assert (attention.code, attention.actions) == ("paper", ("answer", "dismiss"))
    seen = c.act(job, attention.id, "answer", given={"b": 1, "a": 2})
    assert (seen.state, seen.attention) == ("running", None)
    assert c.act(job, attention.id, "answer", given={"a": 2, "b": 1}) == seen, "the same answer in another order"
    with pytest.raises(Conflict) as refused:
        c.act(job, attention.id, "answer", given={"a": 3})
    assert refused.value.code == "attention_superseded"


def test_act_what_is_not_offered_is_invalid(c: Caller) -> None:
    job = c.submit()
    (claimed,) = c.h.claim(handlers=HANDLERS)
    c.h.fail(claimed, permanent=True)
    attention = c.get(job).attention.id
    for action, given in (("answer", 1), ("skip", None)):
        with pytest.raises(Invalid) as refused:
            c.act(job, attention, action, given=given)
        assert refused.value.code == "not_offered"


def test_operator_reads_cancels_and_retries_and_decides_nothing(c: Caller) -> None:
    job = c.submit()
    assert c.get(job, OLGA).id == job
    (claimed,) = c.h.claim(handlers=HANDLERS)
    c.h.fail(claimed, permanent=True)
    attention = c.get(job).attention.id
    for refused in (
        lambda: c.result(job, typeset, OLGA),
        lambda: c.result(job, None, OLGA),
        lambda: c.h.drive(reading.recovery(job, OLGA)),
        lambda: c.act(job, attention, "dismiss", OLGA),
    ):
        with pytest.raises(Forbidden):
            refused()
    assert c.act(job, attention, "retry", OLGA).state == "running"
    assert c.cancel(job, OLGA).state == "cancelled"
    assert c.rerun(job, OLGA).id != job


@pytest.mark.parametrize("who", [BOB, STRANGER, Principal("elsewhere", "x", roles=["operator"])], ids=["owner", "tenant", "operator"])
@pytest.mark.parametrize("foreign", [True, False], ids=["foreign", "unknown"])
def test_scope_foreign_and_unknown_are_refused_alike(c: Caller, who: Principal, foreign: bool) -> None:
    job = c.submit() if foreign else UNKNOWN
    attempts: list[Callable[[], Any]] = [
        lambda: c.get(job, who),
        lambda: c.h.drive(reading.tasks(job, who)),
        lambda: c.result(job, None, who),
        lambda: c.result(job, typeset, who),
        lambda: c.h.drive(reading.recovery(job, who)),
        lambda: c.cancel(job, who),
        lambda: c.cancel(job, who, 77),
        lambda: c.act(job, "0.1", "retry", who),
        lambda: c.rerun(job, who),
        lambda: c.h.drive(reading.wait(APP, job, who, 0, "final")),
    ]
    before = c.h.snapshot()
    for attempt in attempts:
        with pytest.raises(OutlastError) as refused:
            attempt()
        assert (type(refused.value), refused.value.message) == (NotFound, "There is no such job.")
    assert c.h.snapshot() == before


def test_result_is_ready_when_the_task_or_the_job_is(c: Caller) -> None:
    job = c.submit(1, kind=book)
    for task in (None, typeset, chapter):
        with pytest.raises(NotReady) as refused:
            c.result(job, task)
        assert refused.value.job.id == job
    c.finish_all()
    assert c.result(job) == 7
    assert c.result(job, typeset) == 7
    assert c.result(job, chapter) == "x"
    assert c.get(job).usable_ref == "Typeset.pdf"


def test_result_of_one_of_several_parts_needs_its_label(c: Caller) -> None:
    job = c.submit(2, kind=book)
    c.finish_all()
    with pytest.raises(Invalid):
        c.result(job, chapter)
    assert c.result(job, chapter, label="Chapter 1") == "x"
    with pytest.raises(Invalid):
        c.result(job, chapter, label="Chapter 9")
    single = c.submit()
    with pytest.raises(Invalid):
        c.result(single, check)


def test_recovery_shows_what_is_safe_and_what_is_next(c: Caller) -> None:
    job = c.submit(1, kind=book)
    c.h.finish(c.h.claim(handlers=HANDLERS)[0], '"x"')
    c.h.fail(c.h.claim(handlers=HANDLERS)[0], "no_ink")
    seen = c.h.drive(reading.recovery(job, ANN))
    assert (seen.stored, seen.attention, seen.steps) == (("Chapter 0",), (), ())
    assert [(r.label, r.attempt, r.code) for r in seen.attempts] == [("Chapter 0", 1, None), ("Typeset", 1, "no_ink")]
    assert seen.next_attempt_at is not None


def test_rerun_is_a_new_job_of_the_same_request(c: Caller) -> None:
    old = c.submit(3)
    with pytest.raises(Conflict) as refused:
        c.rerun(old)
    assert refused.value.code == "not_final"
    c.cancel(old)
    new = c.rerun(old)
    assert (c.get(new.id).rerun_of, new.state) == (old, "queued")
    inputs = {r["job_id"]: r["input"] for r in c.h.rows("job_input")}
    assert inputs[new.id] == inputs[old]
    assert c.h.job_row(new.id)["effect_root"] == old


def test_rerun_of_a_completed_job_begins_its_effects_anew(c: Caller) -> None:
    old = c.submit()
    c.finish_all()
    assert c.h.job_row(c.rerun(old).id)["effect_root"] != old


def test_rerun_keys_share_the_owners_key_space(c: Caller) -> None:
    old = c.submit(key="k")
    c.cancel(old)
    with pytest.raises(KeyReused):
        c.rerun(old, key="k")
    first = c.rerun(old, key="r")
    again = c.rerun(old, key="r")
    assert (again.id, again.replayed) == (first.id, True)
    with pytest.raises(KeyReused):
        c.submit(key="r")
    c.cancel(first.id)
    with pytest.raises(KeyReused):
        c.rerun(first.id, key="r")


def test_rerun_by_an_operator_belongs_to_the_owner(c: Caller) -> None:
    old = c.submit()
    c.cancel(old)
    new = c.rerun(old, OLGA, key="k")
    assert c.get(new.id, ANN).id == new.id
    assert c.h.job_row(new.id)["owner"] == "ann"


def test_list_page_by_page_by_cursor(c: Caller) -> None:
    submitted = [c.submit(n) for n in range(5)]
    c.submit(owner=BOB)
    seen: list[str] = []
    cursor = None
    while True:
        page = c.page(limit=2, cursor=cursor)
        seen += [item.id for item in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert sorted(seen) == sorted(submitted)
    assert seen == sorted(seen, reverse=True)


def test_list_cursor_is_bound_to_principal_and_filter(c: Caller) -> None:
    for n in range(3):
        c.submit(n)
    cursor = c.page(limit=1).next
    assert cursor is not None
    for who, options in ((BOB, {}), (STRANGER, {}), (ANN, {"state": "active"}), (ANN, {"kind": "book"})):
        with pytest.raises(Invalid):
            c.page(who, cursor=cursor, **options)
    assert len(c.page(cursor=cursor).items) == 2


def test_wait_returns_at_once_what_is_so_already(c: Caller) -> None:
    job = c.submit(1, kind=book)
    assert c.h.drive(reading.wait(APP, job, ANN, 0, "final")).state == "queued"
    c.finish_all()
    assert c.h.drive(reading.wait(APP, job, ANN, 60, "final")).state == "completed"
    assert c.h.drive(reading.wait(APP, job, ANN, 60, "usable")).usable_at is not None
