"""What the rehearsal's input may be, and the plan that it becomes."""

from __future__ import annotations

import builtins
import json
import math
from typing import Any

import pytest

from crash.stage import OWNER, Stage
from invariants import query
from outlast import Invalid
from outlast.domain.kinds import TaskSpec
from outlast.rehearsal import app
from outlast.rehearsal.faults import exception_named, exception_names
from outlast.rehearsal.handlers import rehearsal
from outlast.rehearsal.model import Fail, Part, Question, Rehearsal

A: dict[str, object] = {"label": "A"}

REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("no tasks", {"tasks": []}, "length", "/tasks"),
    ("tasks missing", {}, "missing", "/tasks"),
    ("a member that is not known", {"tasks": [A], "retries": 3}, "not a known member", "/retries"),
    ("one of a task", {"tasks": [{**A, "second": 1}]}, "not a known member", "/tasks/0/second"),
    ("one of fail", {"tasks": [{**A, "fail": {"time": 1}}]}, "not a known member", "/tasks/0/fail/time"),
    ("no label", {"tasks": [{"seconds": 1}]}, "missing", "/tasks/0/label"),
    ("a blank label", {"tasks": [A, {"label": " "}]}, "label is empty", "/tasks/1"),
    ("a label twice", {"tasks": [A, {"label": "B"}, A]}, "same label", "/tasks/0/label /tasks/2/label"),
    ("an unknown parent", {"tasks": [A, {"label": "B", "after": ["A", "C"]}]}, "no task of this job has", "/tasks/1/after/1"),
    ("itself as parent", {"tasks": [{**A, "after": ["A"]}]}, "Task 0 waits for itself", "/tasks/0/after"),
    (
        "a cycle",
        {"tasks": [{"label": "Z"}, {**A, "after": ["C"]}, {"label": "B", "after": ["A", "Z"]}, {"label": "C", "after": ["B"]}]},
        "Tasks 1, 2 and 3 wait for one another",
        "/tasks/1/after /tasks/2/after /tasks/3/after",
    ),
    (
        "a cycle behind which others wait",
        {"tasks": [{**A, "after": ["B"]}, {"label": "B", "after": ["C"]}, {"label": "C", "after": ["B"]}]},
        "Tasks 1 and 2 wait for one another",
        "/tasks/1/after /tasks/2/after",
    ),
    (
        "usable and optional",
        {"tasks": [A, {"label": "B", "usable": True, "optional": True}]},
        "never both",
        "/tasks/1/usable /tasks/1/optional",
    ),
    ("only optional ones", {"tasks": [{**A, "optional": True}]}, "not optional", "/tasks"),
    ("an exception that is none", {"tasks": [{**A, "raise": "print"}]}, "built-in exception", "/tasks/0/raise"),
    ("an unknown exception", {"tasks": [{**A, "raise": "os.system"}]}, "built-in exception", "/tasks/0/raise"),
    ("negative seconds", {"tasks": [{**A, "seconds": -1}]}, ">= 0", "/tasks/0/seconds"),
    ("seconds as text", {"tasks": [{**A, "seconds": "1"}]}, "float", "/tasks/0/seconds"),
    ("half a step", {"tasks": [{**A, "steps": 1.5}]}, "int", "/tasks/0/steps"),
    ("no deadline at all", {"tasks": [{**A, "deadline": 0}]}, "float", "/tasks/0/deadline"),
    ("a code with spaces", {"tasks": [{**A, "fail": {"times": 1, "code": "no way"}}]}, "matching", "/tasks/0/fail/code"),
    ("another kind of failure", {"tasks": [{**A, "fail": {"kind": "fatal"}}]}, "allowed values", "/tasks/0/fail/kind"),
    ("another action", {"tasks": [{**A, "ask": {"code": "x", "actions": ["dismiss"]}}]}, "allowed values", "/tasks/0/ask/actions/0"),
    ("a queue's name", {"tasks": [{**A, "queue": "a b"}]}, "queue name", "/tasks/0"),
    ("no attempts", {"tasks": [A], "max_attempts": 0}, ">= 1", "/max_attempts"),
    ("a negative base", {"tasks": [A], "retry_base": -0.1}, ">= 0", "/retry_base"),
    ("too many tasks", {"tasks": [{"label": str(n)} for n in range(1001)]}, "at most 1000 tasks", "/tasks/1000"),
    ("an effect without a name", {"tasks": [{**A, "effect": {"mode": "neither"}}]}, "missing", "/tasks/0/effect/name"),
    ("another mode", {"tasks": [{**A, "effect": {"name": "charge", "mode": "maybe"}}]}, "allowed values", "/tasks/0/effect/mode"),
    ("limit", {"tasks": [{**A, "limit": 2}]}, "give the task a key", "/tasks/0/limit"),
    ("blank key", {"tasks": [{**A, "key": " ", "limit": 2}]}, "concurrency key is empty", "/tasks/0"),
    ("limit 0", {"tasks": [{**A, "key": "k", "limit": 0}]}, "", "/tasks/0/limit"),
    ("limit too large", {"tasks": [{**A, "key": "k", "limit": 1001}]}, "", "/tasks/0/limit"),
]


@pytest.mark.parametrize(("body", "said", "pointers"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_rehearsed_is_refused_by_place_and_nothing_is_stored(
    stage: Stage, body: dict[str, Any], said: str, pointers: str
) -> None:
    with pytest.raises(Invalid) as refused:
        stage.jobs.submit(app.registry.kind("rehearsal"), body, owner=OWNER, key="k")
    assert said in refused.value.message
    assert refused.value.pointers == tuple(pointers.split())
    for table in ("job", "task", "submission"):
        assert not query(stage.url, f"select * from {{{table}}}")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused(stage: Stage, number: float) -> None:
    with pytest.raises(Invalid, match="NaN or infinite"):
        stage.jobs.submit(rehearsal, Rehearsal(tasks=(Part(label="A", seconds=number),)), owner=OWNER)


def planned(*parts: Part, **top: Any) -> tuple[TaskSpec, ...]:
    return rehearsal.plan(Rehearsal(tasks=parts, **top))


def labels(*parts: Part) -> list[str]:
    return [spec.label for spec in planned(*parts)]


def test_tasks_stand_in_the_order_of_the_input_unless_one_waits_for_a_later_one() -> None:
    assert labels(Part(label="C"), Part(label="A", after=("C",)), Part(label="B")) == ["C", "A", "B"]
    assert labels(Part(label="A", after=("D",)), Part(label="B"), Part(label="C", after=("A",)), Part(label="D")) == ["B", "D", "A", "C"]
    many = [Part(label=str(n), after=tuple(str(m) for m in range(n + 1, min(n + 4, 50)))) for n in range(50)]
    assert labels(*many) == [str(n) for n in reversed(range(50))]


def test_edges_and_options_are_those_of_the_input() -> None:
    specs = planned(
        Part(label="opt", optional=True, queue="slow", deadline=2.5),
        Part(label="main", after=("opt", "opt"), usable=True, sync=True),
        max_attempts=7,
        retry_base=0.5,
    )
    optional, main = specs
    assert (optional.required, optional.usable, optional.queue, optional.deadline_ms) == (False, False, "slow", 2500)
    assert (main.required, main.usable, main.queue, main.deadline_ms) == (True, True, "default", 600_000)
    assert main.parents == ((0, True),)
    assert {spec.max_attempts for spec in specs} == {7}
    assert {spec.base_ms for spec in specs} == {500}
    assert [spec.handler for spec in specs] == ["rehearsal@1:rehearse", "rehearsal@1:rehearse_in_thread"]


def test_structs_and_plain_json_are_the_same_request(stage: Stage) -> None:
    whole = Rehearsal(
        tasks=(Part(label="A", fail=Fail(times=2, code="busy"), ask=Question(actions=("retry", "answer")), raises="OSError"),),
        note={"any": ["thing", None]},
    )
    first = stage.jobs.submit(rehearsal, whole, owner=OWNER)
    (row,) = query(stage.url, "select input from {job_input} where job_id = ?", [first.id])
    body = json.loads(row["input"])
    assert body["note"] == {"any": ["thing", None]}
    assert body["tasks"][0]["raise"] == "OSError"
    second = stage.jobs.submit(app.registry.kind("rehearsal"), body, owner=OWNER)
    rows = query(stage.url, "select input from {job_input}")
    assert second.id != first.id
    assert {json.dumps(json.loads(r["input"])) for r in rows} == {json.dumps(body)}


def test_every_builtin_exception_can_be_made() -> None:
    assert {"RuntimeError", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "UnicodeDecodeError", "ExceptionGroup"} <= exception_names()
    for name in exception_names():
        assert type(exception_named(name)) in {getattr(builtins, name), ExceptionGroup}
