"""Kinds, tasks and plans: what can be registered and admitted, and what is refused before anything is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from outlast.domain import defaults
from outlast.domain.errors import Invalid
from outlast.domain.kinds import (
    MAX_INT32,
    ItemTask,
    Kind,
    Plan,
    PlannedTask,
    Task,
    TaskSpec,
    check_name,
    freeze,
    handler_key,
    parse_handler,
)
from outlast.domain.limits import Limit
from outlast.domain.retry import RetryPolicy


@dataclass
class Book:
    pages: int = 1


@dataclass
class Poster:
    size: str = "A4"


def task(name: str = "typeset", *, input_type: object = Book, **options: Any) -> Task[Any, Any]:
    return Task(name, handler=lambda ctx, given: given, input_type=input_type, returns=int, options=options)  # type: ignore[arg-type]


def item_task(name: str = "chapter", **options: Any) -> ItemTask[Any, Any, Any]:
    return ItemTask(name, handler=lambda c, g, i: i, input_type=Book, item_type=int, returns=str, options=options)  # type: ignore[arg-type]


def kind(build: Callable[[Plan[Any], Any], None], **options: Any) -> Kind[Any]:
    return Kind("book", version=options.pop("version", 1), input_type=Book, build=build, **options)


def specs(build: Callable[[Plan[Any]], object]) -> tuple[TaskSpec, ...]:
    return kind(lambda plan, _book: (build(plan), None)[1]).plan(Book())


def refusal(build: Callable[[Plan[Any]], object]) -> str:
    with pytest.raises(Invalid) as refused:
        specs(build)
    return refused.value.message


def test_a_plan_of_one_task_has_the_defaults() -> None:
    (spec,) = specs(lambda plan: plan.task(task(), label="Typeset"))
    assert spec == TaskSpec(
        no=0,
        label="Typeset",
        handler="book@1:typeset",
        queue="default",
        priority=0,
        required=True,
        usable=False,
        max_attempts=5,
        base_ms=1_000,
        cap_ms=600_000,
        window_ms=86_400_000,
        deadline_ms=600_000,
        item=None,
        parents=(),
    )


def test_a_task_alone_is_a_kind_of_its_name_with_a_plan_of_one() -> None:
    (spec,) = task("typeset", max_attempts=3).plan(Book())
    assert (spec.label, spec.handler, spec.max_attempts) == ("typeset", "typeset@1:typeset", 3)


def test_options_of_a_place_go_before_those_of_the_task() -> None:
    policy = RetryPolicy(base=0.5, cap=2.5, window=60)
    (spec,) = specs(
        lambda plan: plan.task(
            task(queue="slow", max_attempts=9, deadline=5, priority=7), label="x", queue="fast", priority=-1, retry=policy, deadline=0.0014
        )
    )
    assert (spec.queue, spec.priority, spec.max_attempts) == ("fast", -1, 9)
    assert (spec.base_ms, spec.cap_ms, spec.window_ms, spec.deadline_ms) == (500, 2_500, 60_000, 1)


def test_parents_are_places_and_soft_where_the_child_is_required_and_the_parent_optional() -> None:
    def build(plan: Plan[Any]) -> None:
        one = plan.task(task("a"), label="one")
        extra = plan.task(task("b"), label="extra", optional=True, after=[one])
        plan.task(task("c"), label="more", optional=True, after=[extra, one])
        plan.task(task("d"), label="join", after=(one, extra, one), usable=True)

    found = specs(build)
    assert [s.parents for s in found] == [(), ((0, False),), ((1, False), (0, False)), ((0, False), (1, True))]
    assert [(s.no, s.required, s.usable) for s in found] == [(0, True, False), (1, False, False), (2, False, False), (3, True, True)]


def test_each_makes_one_task_an_item_in_order() -> None:
    def build(plan: Plan[Any]) -> None:
        parts = plan.each(item_task(), [3, 1, 2], label=lambda n: f"Chapter {n}", optional=True)
        plan.task(task(), label="Typeset", after=parts)

    found = specs(build)
    assert [(s.label, s.item, s.required) for s in found[:3]] == [
        ("Chapter 3", "3", False),
        ("Chapter 1", "1", False),
        ("Chapter 2", "2", False),
    ]
    assert found[3].parents == ((0, True), (1, True), (2, True))


def test_a_place_in_a_plan_has_the_limit_of_its_task_or_its_own() -> None:
    mail = task("mail", limit=Limit("mail", 2))

    def build(plan: Plan[Any]) -> None:
        plan.task(mail, label="theirs")
        plan.task(mail, label="own", limit=Limit("slow mail", 1))
        plan.task(task(), label="none")
        plan.each(item_task(), [1], label=str, limit=Limit("chapters", 3))

    assert [(s.slot_key, s.slot_limit) for s in specs(build)] == [("mail", 2), ("slow mail", 1), (None, None), ("chapters", 3)]


@pytest.mark.parametrize("limit", [2, ("mail", 2), None, "mail"])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises(Invalid, match="must be a Limit"):
        task(limit=limit)
    assert "must be a Limit" in refusal(lambda plan: plan.task(task(), label="x", limit=limit))


def test_each_of_nothing_is_nothing() -> None:
    found: list[object] = []

    def build(plan: Plan[Any]) -> None:
        found.extend(plan.each(item_task(), [], label=str))
        plan.task(task(), label="Typeset")

    assert len(specs(build)) == 1
    assert found == []


def test_a_plan_without_a_task_is_refused() -> None:
    assert "has no task" in refusal(lambda plan: None)


def test_a_label_twice_is_refused_and_names_both_places() -> None:
    message = refusal(lambda plan: [plan.task(task(), label=label) for label in ("a", "b", "a")])
    assert "Tasks 0 and 2" in message
    assert "'a'" not in message, "a label may hold what nobody else should see"


def test_a_plan_of_optional_tasks_only_is_refused() -> None:
    assert "at least one required" in refusal(lambda plan: plan.task(task(), label="x", optional=True))


def test_usable_and_optional_at_once_is_refused() -> None:
    refused: Any = {"usable": True, "optional": True}
    assert "usable and optional" in refusal(lambda plan: plan.task(task(), label="x", **refused))


def test_a_thousand_tasks_are_the_most() -> None:
    def build(plan: Plan[Any], many: int) -> None:
        for n in range(many):
            plan.task(task(), label=str(n))

    assert len(specs(lambda plan: build(plan, defaults.MAX_TASKS))) == defaults.MAX_TASKS
    assert "at most 1000" in refusal(lambda plan: build(plan, defaults.MAX_TASKS + 1))


def test_a_parent_of_another_plan_is_refused() -> None:
    strangers: list[PlannedTask] = []
    specs(lambda plan: strangers.append(plan.task(task(), label="x")))
    assert "of this same plan" in refusal(lambda plan: plan.task(task(), label="y", after=strangers))


@pytest.mark.parametrize("after", [["x"], [None], [0]])
def test_a_parent_that_is_no_planned_task_is_refused(after: Any) -> None:
    assert "of this same plan" in refusal(lambda plan: plan.task(task(), label="y", after=after))


def test_a_parent_without_its_list_is_refused() -> None:
    def build(plan: Plan[Any]) -> None:
        one: Any = plan.task(task("a"), label="one")
        plan.task(task("b"), label="two", after=one)

    assert "takes a list" in refusal(build)


def test_a_task_of_another_input_is_refused() -> None:
    assert "another input" in refusal(lambda plan: plan.task(task("draw", input_type=Poster), label="x"))


def test_task_and_each_take_their_own_kind_of_task() -> None:
    item, plain = item_task(), task()
    assert "plan.each" in refusal(lambda plan: plan.task(item, label="x"))  # type: ignore[arg-type]
    assert "third parameter" in refusal(lambda plan: plan.each(plain, [1], label=str))  # type: ignore[arg-type]


@pytest.mark.parametrize("label", ["", "  ", "a\nb", "a\x00b", "\ud800", "x" * 501, "a\u202eb"])
def test_a_label_that_cannot_be_shown_on_one_line_is_refused(label: str) -> None:
    assert refusal(lambda plan: plan.task(task(), label=label))


@pytest.mark.parametrize("label", ["x" * 500, "\N{GRINNING FACE}" * 500, "a b", "é"])
def test_a_label_of_any_script_is_taken(label: str) -> None:
    assert specs(lambda plan: plan.task(task(), label=label))[0].label == label


@pytest.mark.parametrize("item", [math.nan, math.inf, "\x00", "\ud800", object(), 2**63])
def test_an_item_that_cannot_be_stored_is_refused(item: Any) -> None:
    each = ItemTask("part", handler=lambda c, g, i: i, input_type=Book, item_type=object, returns=str, options={})
    assert "item" in refusal(lambda plan: [plan.task(task(), label="x"), plan.each(each, [item], label=lambda _: "part")])  # type: ignore[arg-type]


def test_an_item_that_is_too_large_is_refused() -> None:
    each = ItemTask("part", handler=lambda c, g, i: i, input_type=Book, item_type=str, returns=str, options={})
    large = "x" * (defaults.MAX_INPUT + 1)
    assert "larger than" in refusal(lambda plan: plan.each(each, [large], label=lambda _: "part"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 1.5},
        {"priority": True},
        {"priority": "high"},
        {"priority": MAX_INT32 + 1},
        {"priority": -MAX_INT32 - 1},
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": True},
        {"max_attempts": 2.0},
        {"max_attempts": MAX_INT32 + 1},
        {"deadline": 0},
        {"deadline": -1},
        {"deadline": math.nan},
        {"deadline": math.inf},
        {"deadline": True},
        {"deadline": "1"},
        {"deadline": 10 * 365 * 86_400 + 1},
        {"retry": 5},
        {"retry": None},
        {"queue": ""},
        {"queue": "a b"},
        {"queue": "x" * 101},
        {"queue": "a/b"},
        {"queue": 7},
        {"unknown": 1},
        {"max_attempt": 1},
    ],
    ids=str,
)
def test_an_option_that_cannot_be_is_refused_at_the_task_and_at_its_place(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        task(**options)
    with pytest.raises(Invalid):
        item_task(**options)
    assert refusal(lambda plan: plan.task(task(), label="x", **options))


@pytest.mark.parametrize(
    "options",
    [
        {"priority": MAX_INT32},
        {"priority": -MAX_INT32},
        {"max_attempts": 1},
        {"max_attempts": MAX_INT32},
        {"deadline": 0.001},
        {"deadline": 10 * 365 * 86_400},
        {"queue": "x" * 100},
        {"queue": "books.eu-1_b"},
        {"retry": RetryPolicy(base=0, cap=0, window=0)},
    ],
    ids=str,
)
def test_an_option_at_its_edge_is_taken(options: dict[str, Any]) -> None:
    (spec,) = specs(lambda plan: plan.task(task(**options), label="x"))
    assert spec.max_attempts >= 1
    assert spec.deadline_ms >= 1


@pytest.mark.parametrize("name", ["a b", "", "a/b", "a@1", "a:b", "x" * 101, "a\n", "ä b"])
def test_a_name_that_routes_and_metrics_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        check_name(name, what="kind name")
    with pytest.raises(Invalid):
        task(name)
    with pytest.raises(Invalid):
        item_task(name)


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", MAX_INT32 + 1])
def test_a_version_that_is_no_whole_number_of_one_or_more_is_refused(version: Any) -> None:
    with pytest.raises(Invalid):
        kind(lambda plan, book: None, version=version)


def test_the_label_of_a_kind_is_its_name_unless_given() -> None:
    assert kind(lambda plan, book: None).label == "book"
    assert kind(lambda plan, book: None, label="A book").label == "A book"
    with pytest.raises(Invalid):
        kind(lambda plan, book: None, label="")


@pytest.mark.parametrize(("name", "version", "part"), [("book", 1, "typeset"), ("a.b-c_d", 37, "x.y"), ("x" * 100, MAX_INT32, "y" * 100)])
def test_a_handler_key_names_kind_version_and_task(name: str, version: int, part: str) -> None:
    owner = Kind(name, version=version, input_type=Book, build=lambda plan, book: None)
    key = handler_key(owner, task(part))
    assert key == f"{name}@{version}:{part}"
    assert parse_handler(key) == (name, version, part)


def test_a_plan_is_built_anew_for_each_input() -> None:
    def build(plan: Plan[Any], book: Book) -> None:
        for n in range(book.pages):
            plan.task(task(), label=f"Page {n}")

    made = kind(build)
    assert [len(made.plan(Book(n))) for n in (1, 3, 2)] == [1, 3, 2]


def test_a_plan_of_many_edges_is_frozen_in_order() -> None:
    plan = Plan(kind(lambda plan, book: None))
    first = [plan.task(task(), label=f"a{n}") for n in range(50)]
    second = [plan.task(task(), label=f"b{n}", after=first) for n in range(50)]
    plan.task(task(), label="end", after=second)
    found = freeze(plan)
    assert sum(len(s.parents) for s in found) == 50 * 50 + 50
    assert all(parent < s.no for s in found for parent, _ in s.parents), "no cycle can be written down"


def test_a_plan_has_a_limited_number_of_edges() -> None:
    def each_after_all(plan: Plan[Any]) -> None:
        places: list[PlannedTask] = []
        for number in range(200):
            places.append(plan.task(task(), label=str(number), after=tuple(places)))

    assert "edges" in refusal(each_after_all)
    assert defaults.MAX_EDGES < 200 * 199 / 2
