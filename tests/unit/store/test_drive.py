"""The two drivers, sub-programs, and the one decision about what to do when the store fails in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from outlast.domain.errors import NotMigrated, OutcomeUnknown, OutlastError, StoreUnavailable
from outlast.store.drive import BadData, Fault, Tries, adrive, drive, with_subprograms
from outlast.store.program import Access, Operation, Program, Rows, Statement, operation, row_of, rows_of


def adding(*names: str) -> Program[list[Any]]:
    rows: list[Any] = []
    for name in names:
        rows += yield Statement(name, {"n": len(rows)})
    return rows


class Script:
    """Answers statements by name, and remembers them."""

    def __init__(self, **rows: Rows) -> None:
        self.rows = rows
        self.asked: list[Statement] = []

    def __call__(self, statement: Statement) -> Rows:
        self.asked.append(statement)
        return self.rows[statement.name]

    async def later(self, statement: Statement) -> Rows:
        return self(statement)


def test_drive_feeds_each_statement_its_rows_and_gives_the_value() -> None:
    script = Script(a=[(1,), (2,)], b=[], c=[(3,)])
    assert drive(adding("a", "b", "c"), script) == [(1,), (2,), (3,)]
    assert [(s.name, s.params) for s in script.asked] == [("a", {"n": 0}), ("b", {"n": 2}), ("c", {"n": 2})]
    assert drive(adding(), script) == []


async def test_adrive_does_the_same() -> None:
    script = Script(a=[(1,)], b=[(2,)])
    assert await adrive(adding("a", "b"), script.later) == [(1,), (2,)]
    assert await adrive(adding(), script.later) == []


def test_what_the_executor_raises_ends_the_program() -> None:
    ended: list[str] = []

    def program() -> Program[None]:
        try:
            yield Statement("a", {})
        finally:
            ended.append("closed")

    def broken(_statement: Statement) -> Rows:
        raise OSError

    running = program()
    with pytest.raises(OSError):  # noqa: PT011
        drive(running, broken)
    running.close()
    assert ended == ["closed"]


def test_a_subprogram_stands_for_the_statement_of_its_name() -> None:
    def both(params: Mapping[str, Any]) -> Program[Rows]:
        first = yield Statement("a", params)
        second = yield Statement("c", params)
        return [*first, *second]

    script = Script(a=[(1,)], c=[(3,)], d=[(4,)])
    program = with_subprograms(adding("both", "d"), {"both": both})
    assert drive(program, script) == [(1,), (3,), (4,)]
    assert [(s.name, s.params["n"]) for s in script.asked] == [("a", 0), ("c", 0), ("d", 2)]
    assert drive(with_subprograms(adding(), {"both": both}), script) == []


def test_rows_become_values_by_position() -> None:
    assert drive(rows_of(Statement("a", {}), lambda x, y: x + y), Script(a=[(1, 2), (3, 4)])) == [3, 7]
    assert drive(row_of(Statement("a", {}), lambda x: x), Script(a=[(7,), (8,)])) == 7
    assert drive(row_of(Statement("a", {}), lambda x: x), Script(a=[])) is None


def test_an_operation_makes_its_program_anew_for_each_try() -> None:
    @operation(Access.STATEMENT, repeatable=False, urgent=True)
    def note(text: str, *, loud: bool) -> Program[str]:
        """Says it."""
        rows = yield Statement("note", {"text": text})
        return text.upper() if loud else str(rows)

    made = note("a", loud=True)
    assert (made.name, made.access, made.repeatable, made.urgent) == ("note", Access.STATEMENT, False, True)
    assert note.__doc__ == "Says it."
    for _ in range(2):
        assert drive(made.start(), Script(note=[])) == "A"


# -- tries ----------------------------------------------------------------------------------------------------


def op(access: Access = Access.TRANSACTION, *, repeatable: bool = True) -> Operation[Any]:
    return Operation("op", access, adding, repeatable)


def outcome(tries: Tries, fault: Fault, *, certain: bool = True, now: float = 0.0) -> float | type[BaseException]:
    cause = ValueError("the driver's own text, with a password")
    try:
        return tries.pause(fault, now=now, certain=certain, cause=cause)
    except Exception as raised:  # noqa: BLE001 - what it is, is what is asked
        error = raised
    assert error is cause or error.__cause__ is cause
    assert not isinstance(error, OutlastError) or "password" not in error.message
    return type(error)


@pytest.mark.parametrize("fault", [Fault.CONFLICT, Fault.LOST, Fault.REFUSED])
def test_what_may_pass_is_tried_again_until_patience_ends(fault: Fault) -> None:
    tries = Tries(op(), now=100.0, patience=5.0)
    pauses = [outcome(tries, fault, now=100.0 + n / 2) for n in range(10)]
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.5, 0.5]
    assert outcome(tries, fault, now=104.9) == pytest.approx(0.1)
    assert outcome(tries, fault, now=105.0) is StoreUnavailable


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.READ_ONLY, StoreUnavailable), (Fault.FULL, StoreUnavailable), (Fault.SCHEMA, NotMigrated), (Fault.DATA, BadData)],
)
def test_what_will_not_pass_is_said_at_once(fault: Fault, error: type[Exception]) -> None:
    assert outcome(Tries(op(), now=0.0), fault) is error


def test_a_defect_is_raised_as_it_is() -> None:
    assert outcome(Tries(op(), now=0.0), Fault.UNKNOWN) is ValueError


def test_each_refusal_says_what_to_do_in_words_of_its_own() -> None:
    said = set()
    for fault in Fault:
        tries = Tries(op(), now=0.0, patience=0.0)
        with pytest.raises((OutlastError, ValueError)) as refused:
            tries.pause(fault, now=1.0, certain=True, cause=ValueError())
        said.add(str(refused.value))
    assert len(said) == len(Fault)


@pytest.mark.parametrize("access", [Access.STATEMENT, Access.TRANSACTION])
def test_a_lost_commit_is_unknown_when_patience_ends(access: Access) -> None:
    tries = Tries(op(access), now=0.0, patience=5.0)
    assert outcome(tries, Fault.LOST, certain=False) == 0.01
    assert outcome(tries, Fault.REFUSED, now=6.0) is OutcomeUnknown


@pytest.mark.parametrize("fault", [Fault.READ_ONLY, Fault.FULL, Fault.SCHEMA, Fault.DATA, Fault.UNKNOWN])
def test_a_lost_commit_stays_unknown_whatever_comes_next(fault: Fault) -> None:
    tries = Tries(op(), now=0.0)
    outcome(tries, Fault.LOST, certain=False)
    assert outcome(tries, fault) is OutcomeUnknown


def test_a_commit_that_was_lost_for_certain_is_not_unknown() -> None:
    tries = Tries(op(), now=0.0, patience=5.0)
    assert outcome(tries, Fault.LOST, certain=True) == 0.01
    assert outcome(tries, Fault.LOST, certain=True, now=6.0) is StoreUnavailable


def test_a_conflict_at_the_commit_is_certain() -> None:
    """The store said that it did not commit."""
    tries = Tries(op(), now=0.0, patience=5.0)
    outcome(tries, Fault.CONFLICT, certain=False)
    assert outcome(tries, Fault.CONFLICT, certain=False, now=6.0) is StoreUnavailable


def test_a_read_is_never_unknown() -> None:
    tries = Tries(op(Access.READ), now=0.0, patience=5.0)
    outcome(tries, Fault.LOST, certain=False)
    assert outcome(tries, Fault.LOST, certain=False, now=6.0) is StoreUnavailable


def test_what_must_not_be_repeated_is_unknown_at_once() -> None:
    assert outcome(Tries(op(repeatable=False), now=0.0), Fault.LOST, certain=False) is OutcomeUnknown
    assert outcome(Tries(op(repeatable=False), now=0.0), Fault.LOST, certain=True) == 0.01
