"""`outlast jobs answer`, `skip`, `dismiss`, `takeover` and `attach`: the owner's own decisions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any, LiteralString

import psycopg
import pytest

from cli.conftest import Shell, until
from outlast import Outlast, Principal, TargetRef
from outlast.cli.settle import answer_of
from outlast.cli.target import load
from outlast.domain.values import decode

ANN = ("--as", "acme:ann")
NOBODY = "01900000-0000-7000-8000-000000000000"

ASKING = """
import sqlite3

from outlast import Ask, Completion, Context, Outlast, Plan, RetryPolicy

import shop

jobs = Outlast("sqlite:///shop.db")


@jobs.task
async def name(ctx: Context, order: shop.Order) -> str:
    said = await ctx.ask("which_name", "Which name?", answer=str)
    shop.write(f"name {said!r}")
    return said


@jobs.task
async def size(ctx: Context, order: shop.Order) -> int:
    said = await ctx.ask("which_size", "Which size?", answer=int)
    shop.write(f"size {said!r}")
    return said


@jobs.task
async def extra(ctx: Context, order: shop.Order) -> None:
    raise Ask("no_extra", "Leave it out?", actions=["skip"])


@jobs.task
async def plain(ctx: Context, order: shop.Order) -> None:
    pass


async def lose(key: str) -> str:
    raise ConnectionError("the answer was lost")


@jobs.task(retry=RetryPolicy(base=0))
async def charge(ctx: Context, order: shop.Order) -> str:
    return await ctx.effect("card", lose, timeout=0.2)


@jobs.kind("spare")
def spare(plan: Plan[shop.Order], order: shop.Order) -> None:
    plan.task(plain, label="Plain")
    plan.task(extra, label="Extra", optional=True)


CHANGE = "update document set text = ?, version = version + 1 where ref = ? and version = ?"


async def put(db: object, ref: str, expected: str, text: str) -> str | None:
    if isinstance(db, sqlite3.Connection):
        return put_now(db, ref, expected, text)
    changed = await db.execute(CHANGE.replace("?", "%s"), (text, ref, int(expected)))
    return str(int(expected) + 1) if changed.rowcount else None


def put_now(db: object, ref: str, expected: str, text: str) -> str | None:
    sql = CHANGE if isinstance(db, sqlite3.Connection) else CHANGE.replace("?", "%s")
    changed = db.execute(sql, (text, ref, int(expected)))
    return str(int(expected) + 1) if changed.rowcount else None


document, page = jobs.target("document")(put), jobs.target("page")(put_now)


@jobs.task
async def text(ctx: Context, order: shop.Order) -> Completion[str]:
    return ctx.attach("made")


@jobs.kind("write", target=document)
def write(plan: Plan[shop.Order], order: shop.Order) -> None:
    plan.task(text, label="Text")


@jobs.kind("print", target=page)
def print_it(plan: Plan[shop.Order], order: shop.Order) -> None:
    plan.task(text, label="Text")
"""


class Desk:
    """The application `asking:jobs` on a shell's store, with a document at version 2."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        (shell.folder / "asking.py").write_text(ASKING)
        self._do("create table document (ref text primary key, text text not null, version integer not null)")
        self._do("insert into document values ('d1', 'edited', 2)")

    def _do(self, sql: LiteralString) -> list[Any]:
        if self.shell.url.startswith("postgresql"):
            with psycopg.connect(self.shell.url) as pg:
                cursor = pg.execute(sql)
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.shell.folder / "shop.db", timeout=20)) as db:
            rows = db.execute(sql).fetchall()
            db.commit()
        return rows

    @property
    def document(self) -> tuple[str, int]:
        found: tuple[str, int] = self._do("select text, version from document")[0]
        return found

    def submit(self, kind: str) -> str:
        command = ("jobs", "submit", "asking:jobs", kind, "--input", "-", *ANN)
        return self.shell.run(*command, stdin="{}").stdout.split("\n")[0]

    def aimed(self, kind: str) -> str:
        """A job for the document at a version that it is at no more."""
        app: Outlast = load("asking:jobs")
        app.use(self.shell.url)
        order = app.registry.kind(kind)
        made = app.sync.submit(
            order,
            decode("{}", order.input_type, forbid_unknown=True, what="input"),
            owner=Principal("acme", "ann"),
            target=TargetRef("d1", "1"),
        )
        app.sync.close()
        return made.id

    def work(self, job_id: str, state: str) -> dict[str, Any]:
        """The job once a worker has brought it there."""
        worker = self.shell.start("worker", "asking:jobs", "--grace", "2").ready()
        until(lambda: self.story(job_id)["job"]["state"] == state, state)
        worker.signal()
        assert worker.ended() == 0
        return self.story(job_id)

    def story(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.shell.run("jobs", "show", job_id, "--json").stdout)
        return found

    def jobs(self, *command: str, code: int = 0) -> str:
        said = self.shell.run("jobs", *command, *ANN, code=code)
        return said.stderr if code else said.stdout


@pytest.fixture
def desk(shell: Shell) -> Desk:
    return Desk(shell)


@pytest.fixture
def on_either(either: Shell) -> Desk:
    return Desk(either)


# -- answer, skip, dismiss --------------------------------------------------------------------------------------


def test_a_question_for_text_takes_the_text_as_it_is(on_either: Desk) -> None:
    job_id = on_either.submit("name")
    assert "Nothing of this job waits for a decision: it is queued." in on_either.jobs("answer", job_id, "--input", "5", code=4)
    (question,) = on_either.work(job_id, "needs_attention")["attention"]
    assert on_either.jobs("answer", job_id, "--input", "5") == f"{job_id} running\n"
    again = ("answer", job_id, "--attention", question["id"])
    assert json.loads(on_either.jobs(*again, "--input", "5", "--json"))["state"] == "running", "the same again is no error"
    assert "(attention_superseded)" in on_either.jobs(*again, "--input", "6", code=4)
    on_either.work(job_id, "completed")
    assert "name '5'" in on_either.shell.lines()


def test_any_other_question_takes_json(desk: Desk) -> None:
    job_id = desk.submit("size")
    desk.work(job_id, "needs_attention")
    assert "(invalid)" in desk.jobs("answer", job_id, "--input", "five", code=2)
    assert "(attention_superseded)" in desk.jobs("answer", job_id, "--input", "5", "--attention", "none-such", code=4)
    assert "(not_offered)" in desk.jobs("skip", job_id, code=2)
    assert desk.jobs("answer", job_id, "--input", " 5") == f"{job_id} running\n"
    desk.work(job_id, "completed")
    assert "size 5" in desk.shell.lines()


def test_a_call_of_unknown_outcome_is_shown_with_what_the_owner_can_say(desk: Desk) -> None:
    job_id = desk.submit("charge")
    (question,) = desk.work(job_id, "needs_attention")["attention"]
    shown = desk.jobs("show", job_id)
    assert "Outside calls that may have happened" in shown
    assert [line.split()[:3] for line in shown.split("\n") if " card " in line] == [["charge", "card", "unknown"]]
    assert f"    outlast jobs answer {job_id} --attention {question['id']} --input ... --as acme:ann\n" in shown
    assert f"    outlast jobs dismiss {job_id} --attention {question['id']} --as acme:ann\n" in shown
    assert "jobs dismiss" not in desk.shell.run("jobs", "show", job_id).stdout, "an operator does not decide for the owner"
    assert "/outcome: missing" in desk.jobs("answer", job_id, "--input", '{"happened": true}', code=2)
    assert desk.jobs("answer", job_id, "--input", '{"happened": true, "outcome": "c-7"}') == f"{job_id} running\n"
    assert desk.work(job_id, "completed")["effects"] == []


def test_an_operator_repeats_no_call_of_unknown_outcome(desk: Desk) -> None:
    job_id = desk.submit("charge")
    desk.work(job_id, "needs_attention")
    assert "jobs retry" not in desk.shell.run("jobs", "show", job_id).stdout
    for command in (("retry",), ("replay", "--reason", "The provider is back."), ("retry", "--as", "acme:op:operator")):
        said = desk.shell.run("jobs", command[0], job_id, *command[1:], code=1)
        assert said.stdout == f"{job_id} needs_attention\n"
        assert "charge: effect_unknown is left to the owner, who alone chooses what may happen twice" in said.stderr
    assert desk.jobs("retry", job_id) == f"{job_id} running\n"


@pytest.mark.parametrize("verb", [("retry",), ("replay", "--reason", "Again.")])
def test_where_nothing_offers_a_retry_both_ways_to_one_end_alike(desk: Desk, verb: tuple[str, ...]) -> None:
    job_id = desk.submit("name")
    desk.work(job_id, "needs_attention")
    said = desk.shell.run("jobs", verb[0], job_id, *verb[1:], code=1)
    assert "name: which_name offers no retry, but answer, dismiss; its owner decides" in said.stderr


def test_an_owner_is_told_where_the_commands_are(desk: Desk) -> None:
    job_id = desk.submit("name")
    desk.work(job_id, "needs_attention")
    assert f"offers no retry, but answer, dismiss; outlast jobs show {job_id} has the commands" in desk.jobs("retry", job_id, code=1)


@pytest.mark.parametrize(
    ("text", "shape", "answer"),
    [
        ("5", '{"type": "string"}', "5"),
        ('{"a": 1}', '{"type": "string"}', '{"a": 1}'),
        ("5", '{"type": "integer"}', 5),
        ('{"a": [null]}', None, {"a": [None]}),
        ("blue", None, "blue"),
        ("NaN", None, "NaN"),
        ("", None, ""),
    ],
)
def test_how_an_answer_is_read(text: str, shape: str | None, answer: object) -> None:
    assert answer_of(text, shape, limit=100) == answer


def test_optional_work_is_skipped(desk: Desk) -> None:
    job_id = desk.submit("spare")
    (question,) = desk.work(job_id, "needs_attention")["attention"]
    assert "(not_offered)" in desk.jobs("answer", job_id, "--input", "5", code=2)
    assert desk.jobs("skip", job_id, "--attention", question["id"]).startswith(f"{job_id} completed")
    assert "Nothing of this job waits" in desk.jobs("skip", job_id, code=4)


def test_a_dismissed_job_is_given_up(desk: Desk) -> None:
    job_id = desk.submit("name")
    desk.work(job_id, "needs_attention")
    found = json.loads(desk.jobs("dismiss", job_id, "--json"))
    assert found["outcome"] == "abandoned"
    assert "(not_offered)" in desk.jobs("dismiss", job_id, code=4)


# -- takeover, attach -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["write", "print"])
def test_a_parked_result_is_put_where_the_owner_says(on_either: Desk, kind: str) -> None:
    job_id = on_either.aimed(kind)
    command = ("attach", job_id, "--target", "asking:jobs", "--task", "0", "--target-version")
    assert "(nothing_parked)" in on_either.jobs(*command, "2", code=4)
    assert on_either.work(job_id, "completed")["job"]["attach"] == "parked"
    assert "(target_changed)" in on_either.jobs(*command, "1", code=4)
    assert on_either.document == ("edited", 2)
    assert on_either.jobs(*command, "2") == f"{job_id} completed\n"
    assert on_either.document == ("made", 3)
    assert "(nothing_parked)" in on_either.jobs(*command, "3", code=4)


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ((), 2, "The application puts the result there, so it has to be named: --target module:attribute"),
        (("--target", "shop:not_jobs"), 2, "shop:not_jobs is an int, not an Outlast."),
        (("--target", "shop:gone"), 2, "The module shop has no attribute 'gone'."),
        (("--target", "gone:jobs"), 2, "There is no module 'gone'"),
        (("--target", "asking:jobs", "--task", "-1"), 2, "Invalid value for '--task'"),
        (("--target", "asking:jobs", "--task", "7"), 4, "(nothing_parked)"),
    ],
)
def test_a_wrong_attach_says_what_to_do(desk: Desk, more: tuple[str, ...], code: int, words: str) -> None:
    job_id = desk.aimed("write")
    assert words in desk.jobs("attach", job_id, "--task", "0", "--target-version", "2", *more, code=code)


def test_an_application_without_the_kind_cannot_attach(desk: Desk) -> None:
    job_id = desk.aimed("write")
    desk.work(job_id, "completed")
    said = desk.jobs("attach", job_id, "--task", "0", "--target-version", "2", "--target", "shop:jobs", code=2)
    assert said.endswith("(not_registered)\n")


def test_takeover_again_is_no_error_and_needs_a_target(desk: Desk) -> None:
    job_id = desk.aimed("write")
    assert desk.jobs("takeover", job_id) == f"{job_id} queued\n"
    assert json.loads(desk.jobs("takeover", job_id, "--json"))["taken_over_at"]
    assert "(no_target)" in desk.jobs("takeover", desk.submit("name"), code=4)


def test_target_and_parked_results_are_submitted_and_shown(on_either: Desk) -> None:
    asked = ("jobs", "submit", "asking:jobs", "write", "--input", "-", *ANN)
    said = on_either.shell.run(*asked, "--target-ref", "d1", code=2, stdin="{}").stderr
    assert "both --target-ref and --target-version" in said
    command = (*asked, "--target-ref", "d1", "--target-version", "1", "--unique", "night:run")
    job_id = on_either.shell.run(*command, stdin="{}").stdout.split("\n")[0]
    assert on_either.shell.run(*command, stdin="{}").stdout.startswith(f"{job_id}\nqueued (replayed: ")
    assert "(unique_active)" in on_either.shell.run(*command[:-1], "night:run:reject", code=4, stdin="{}").stderr
    assert "target      d1, last seen at version 1: nothing attached yet" in on_either.jobs("show", job_id)
    on_either.jobs("takeover", job_id)
    (task,) = on_either.work(job_id, "completed")["tasks"]
    assert task["parked"] is True
    shown = on_either.jobs("show", job_id)
    assert "target      d1, last seen at version 1: parked, for its owner to attach" in shown
    assert "  taken over  " in shown
    assert [line.split()[:4] for line in shown.split("\n") if "parked" in line][1] == ["0", "Text", "completed", "parked"]
    assert f"  outlast jobs attach {job_id} --task 0 --target-version ... --as acme:ann\n" in shown


@pytest.mark.parametrize("key", ["", ":reject", "a b", "x" * 256])
def test_a_unique_key_that_is_none(shell: Shell, key: str) -> None:
    asked = ("jobs", "submit", "shop:jobs", "order", "--input", "-", *ANN, "--unique", key)
    assert "visible ASCII" in shell.run(*asked, code=2, stdin="{}").stderr


# -- who may ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("answer", ("--input", "5")),
        ("skip", ()),
        ("dismiss", ("--attention", "any")),
        ("takeover", ()),
        ("attach", ("--target", "shop:jobs", "--task", "0", "--target-version", "1")),
    ],
)
def test_these_are_the_owners_alone(shell: Shell, verb: str, more: tuple[str, ...]) -> None:
    job_id = shell.submit()
    assert "name them with --as TENANT:SUBJECT. (forbidden)" in shell.run("jobs", verb, job_id, *more, code=7).stderr
    assert shell.run("jobs", verb, job_id, *more, "--as", "acme:op:operator", code=7).stderr.endswith("(forbidden)\n")
    for unknown, as_whom in ((NOBODY, ()), ("nonsense", ANN), (job_id, ("--as", "acme:eve")), (job_id, ("--as", "other:ann:operator"))):
        assert shell.run("jobs", verb, unknown, *more, *as_whom, code=3).stderr.endswith("(not_found)\n")
