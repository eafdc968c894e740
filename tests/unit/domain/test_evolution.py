"""Upgrades of inputs: what can be registered, which versions a process then reads and claims, and what becomes of an old input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from outlast.domain.errors import Invalid, NotRegistered
from outlast.domain.evolution import Upgrades, spoken
from outlast.domain.kinds import Kind, Plan, Task, parse_handler
from outlast.domain.registry import Lack, Registry
from outlast.domain.values import STORED_INCOMPATIBLE, decode_stored


@dataclass
class Report:
    month: str
    copies: int = 1
    names: list[str] = field(default_factory=list)


@dataclass
class Other:
    x: int


def task(name: str, input_type: type = Report) -> Task[Any, Any]:
    return Task(name, handler=lambda ctx, given: given, input_type=input_type, returns=int, options={})  # type: ignore[arg-type]


def report(version: int, **functions: Callable[[dict[str, Any]], Any]) -> Kind[Any]:
    """A kind with functions from v1, v2, ..."""

    def build(plan: Plan[Any], _given: Report) -> None:
        plan.task(WRITE, label="Text")

    made = Kind[Any]("report", version=version, input_type=Report, build=build)
    for name, fn in functions.items():
        made.upgrade(from_version=int(name[1:]))(fn)
    return made


WRITE, MAIL, ELSE = task("write"), task("mail"), task("else", Other)


def renamed(old: dict[str, Any]) -> dict[str, Any]:
    return {"month": old["period"]}


def counted(old: dict[str, Any]) -> dict[str, Any]:
    return {**old, "copies": 2}


def registry(kind: Kind[Any]) -> Registry:
    made = Registry()
    for one in (WRITE, MAIL, ELSE):
        made.add_task(one)
    made.add_kind(kind)
    return made


# -- what can be registered ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None, 3, 4])
def test_only_versions_below_the_kinds_own_are_upgraded_from(version: Any) -> None:
    kind = report(3)
    with pytest.raises(Invalid):
        kind.upgrade(from_version=version)(renamed)
    assert kind.upgrades.readable == range(3, 4)


def test_a_second_function_for_a_version_is_refused_and_the_first_one_stays() -> None:
    kind = report(2, v1=renamed)
    with pytest.raises(Invalid, match="from version 1 already"):
        kind.upgrade(from_version=1)(counted)
    assert kind.read('{"period":"May"}', 1)[1] == Report("May")


def test_a_task_by_itself_has_no_earlier_version() -> None:
    with pytest.raises(Invalid, match="a task by itself always has version 1"):
        task("alone").upgrade(from_version=1)(renamed)


@pytest.mark.parametrize("fn", [None, "renamed", 3, asyncio.sleep])
def test_what_is_no_plain_function_is_refused(fn: Any) -> None:
    kind = report(2)
    with pytest.raises(Invalid, match="plain def"):
        kind.upgrade(from_version=1)(fn)


def test_the_decorator_gives_the_function_back() -> None:
    assert report(2).upgrade(from_version=1)(renamed) is renamed


def test_functions_may_come_in_any_order_and_a_gap_is_said_at_the_first_use() -> None:
    kind = report(4, v3=counted, v1=renamed)
    for use in (lambda: kind.upgrades.readable, registry(kind).handlers, lambda: registry(kind).kind("report", 1)):
        with pytest.raises(Invalid, match="an upgrade from version 1, but none from version 2") as refused:
            use()
        assert refused.value.code == "invalid"
    kind.upgrade(from_version=2)(counted)
    assert kind.upgrades.readable == range(1, 5)


# -- what a process reads and claims ---------------------------------------------------------------------------------


def test_a_worker_claims_each_readable_version_with_each_task_that_takes_the_input() -> None:
    kind = report(3, v2=counted)
    assert registry(kind).handlers() == (
        "else@1:else",
        "mail@1:mail",
        "report@2:mail",
        "report@2:write",
        "report@3:mail",
        "report@3:write",
        "write@1:write",
    )


def test_a_version_is_known_if_it_can_be_read() -> None:
    known = registry(report(3, v2=counted))
    assert known.kind("report").version == known.kind("report", 2).version == known.kind("report", 3).version == 3
    for version in (1, 4):
        with pytest.raises(NotRegistered, match=f"versions 2 to 3 of the kind 'report', not version {version}"):
            known.kind("report", version)
    assert known.resolve("report@2:write") == (known.kinds["report"], 2, WRITE)
    for handler in ("report@1:write", "report@4:write", "report@3:gone", "gone@1:write"):
        with pytest.raises(NotRegistered):
            known.resolve(handler)


def test_a_result_that_is_there_needs_no_upgrade() -> None:
    known = registry(report(3))
    assert known.maker("report@1:write") == (known.kinds["report"], WRITE)
    with pytest.raises(NotRegistered):
        known.maker("report@1:gone")


@pytest.mark.parametrize(
    ("handler", "lack"),
    [
        ("report@3:write", None),
        ("report@2:mail", None),
        ("write@1:write", None),
        ("report@1:write", Lack.OLDER),
        ("report@4:write", Lack.NEWER),
        ("report@2:gone", Lack.TASK),
        ("report@3:else", Lack.TASK),
        ("write@2:write", Lack.NEWER),
        ("gone@3:write", Lack.KIND),
        ("scribble", Lack.KIND),
        ("report@x:write", Lack.OLDER),
        ("report@99999999999999999999:write", Lack.OLDER),
        ("report@²:write", Lack.OLDER),
    ],
)
def test_what_is_missing_to_run_a_handler(handler: str, lack: Lack | None) -> None:
    known = registry(report(3, v2=counted))
    assert known.lack(handler) is lack
    assert (handler in known.handlers()) is (lack is None)


def test_a_scribbled_handler_has_a_version_that_no_kind_has() -> None:
    assert [parse_handler(key) for key in ("", "a@b:c", "a@1")] == [("", 0, ""), ("a", 0, "c"), ("a", 1, "")]


def test_versions_in_words() -> None:
    assert (spoken(range(3, 4)), spoken(range(1, 4))) == ("version 3", "versions 1 to 3")


# -- what becomes of an old input ------------------------------------------------------------------------------------


def test_an_old_input_goes_through_each_function_from_its_version_on() -> None:
    kind = report(3, v1=renamed, v2=counted)
    assert kind.read('{"period":"May"}', 1) == ('{"month":"May","copies":2}', Report("May", 2))
    assert kind.read('{"month":"May"}', 2) == ('{"month":"May","copies":2}', Report("May", 2))
    assert kind.read('{"month":"May"}', 3) == ('{"month":"May"}', Report("May", 1)), "the present one is left as it was sent"


def test_a_function_may_change_what_it_is_given() -> None:
    def in_place(old: dict[str, Any]) -> dict[str, Any]:
        old["month"] = old.pop("period")
        return old

    kind = report(2, v1=in_place)
    assert [kind.read('{"period":"May"}', 1)[0] for _ in range(2)] == ['{"month":"May"}'] * 2


def _raise(error: BaseException) -> Callable[[dict[str, Any]], Any]:
    def fail(old: dict[str, Any]) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    "fn",
    [
        lambda old: old["missing"],
        _raise(RuntimeError("secret")),
        _raise(SystemExit("secret")),
        _raise(asyncio.CancelledError()),
        _raise(GeneratorExit()),
        _raise(Invalid("secret")),
        lambda old: None,
        lambda old: "secret",
        lambda old: [old],
        lambda old: asyncio.sleep,
        lambda old: {"month": datetime(2026, 1, 1, tzinfo=UTC)},
        lambda old: {"month": float("nan")},
        lambda old: {"month": 7},
        lambda old: {"month": "May", "secret": 1},
        lambda old: {},
        lambda old: old,
    ],
)
def test_a_function_that_fails_or_gives_what_does_not_fit_is_one_refusal_without_its_words(fn: Callable[[Any], Any]) -> None:
    with pytest.raises(Invalid) as refused:
        report(2, v1=fn).read('{"period":"May"}', 1)
    assert (refused.value.code, refused.value.pointers) == ("invalid", ("",)), "what was sent has no place that is wrong"
    assert "version 1" in refused.value.message
    assert "RuntimeError" not in refused.value.message
    assert "secret" not in refused.value.message.replace("/secret", "")


def test_what_a_function_raised_is_the_cause_for_operators() -> None:
    error = RuntimeError("why")
    with pytest.raises(Invalid) as refused:
        report(2, v1=_raise(error)).read("{}", 1)
    assert refused.value.__cause__ is error


def test_the_keyboard_ends_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        report(2, v1=_raise(KeyboardInterrupt())).read("{}", 1)


@pytest.mark.parametrize("text", ["[]", "7", "null", '"x"', "not json", '{"a":1,"a":2}'])
def test_an_input_that_is_no_object_is_not_given_to_a_function(text: str) -> None:
    called: list[object] = []
    kind = report(2, v1=lambda old: called.append(old) or {"month": "x"})  # type: ignore[func-returns-value]
    with pytest.raises(Invalid):
        kind.read(text, 1)
    assert called == []


def test_only_what_is_stored_in_the_end_has_to_be_small_enough() -> None:
    grown = Upgrades("report", 3)
    grown.add(1, lambda old: {"month": "x" * 100})
    grown.add(2, lambda old: {"month": old["month"][:3]})
    assert grown.apply("{}", 1, limit=20) == '{"month":"xxx"}'
    with pytest.raises(Invalid, match="larger than 10 bytes"):
        grown.apply("{}", 1, limit=10)


# -- what was stored on the way --------------------------------------------------------------------------------------


def test_a_stored_value_of_another_type_says_so() -> None:
    assert decode_stored("[1]", list[int], what="result") == [1]
    with pytest.raises(Invalid, match="result that was stored before has another type") as refused:
        decode_stored('["one"]', list[int], what="result")
    assert (refused.value.code, refused.value.pointers) == (STORED_INCOMPATIBLE, ("/0",))
    assert "one" not in str(refused.value.__cause__), "a place and types, no value"


def no_argument() -> dict[str, Any]:
    return {}


def two_arguments(old: dict[str, Any], more: int) -> dict[str, Any]:
    return {**old, "copies": more}


def by_name(old: dict[str, Any], *, more: int) -> dict[str, Any]:
    return {**old, "copies": more}


@pytest.mark.parametrize("fn", [no_argument, two_arguments, by_name])
def test_a_function_that_cannot_be_called_with_an_input_is_no_upgrade(fn: Any) -> None:
    with pytest.raises(Invalid, match="one argument"):
        report(2, v1=fn)


def test_a_version_is_refused_with_the_versions_that_can_be() -> None:
    with pytest.raises(Invalid, match="from 1 to 2147483647"):
        report(10**30)
