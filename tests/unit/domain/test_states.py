"""The tables of the state machines, row by row, and the functions that every part uses."""

from __future__ import annotations

import sqlite3
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outlast.domain.states import (
    FINAL_JOBS,
    FINAL_TASKS,
    JOB_TRANSITIONS,
    TASK_TRANSITIONS,
    Counters,
    Event,
    Phase,
    StoredJob,
    StoredTask,
    TaskTransition,
    change,
    count,
    indicators,
    outcome_of,
    shown_attempt,
    shown_job_state,
    shown_task_state,
    stored_job_state,
    transitions,
)
from outlast.store.loader import job_state

PHASES: tuple[Phase, ...] = get_args(Phase)
EVENTS: tuple[Event, ...] = get_args(Event)
TASK_STATES: tuple[StoredTask, ...] = get_args(StoredTask)
JOB_STATES: tuple[StoredJob, ...] = get_args(StoredJob)
UNFINISHED = "blocked queued retrying running needs_attention"

# from, event, required (r), optional (o) or either (*): the rows that it may take, with what they write.
# +a: uses an attempt; 0a: none used, or begun anew; +f: the fence rises; 0f: it begins; j: the job row is locked first;
# q: a question is raised; h: a row in the history of attempts.
TABLE = """
none             admit          *   T1  queued            j 0a 0f
none             admit          *   T1b blocked           j 0a 0f
blocked          unblock        *   T2  queued            j
blocked          parent_failed  o   T3  skipped           j
queued           wake           *   T4  queued
retrying         wake           *   T4b retrying
queued           claim          *   T5  running           +f
retrying         claim          *   T5  running           +f
running          renew          *   T6  running
running          finish         *   T7  completed         j
running          fail           *   T8  retrying          +a h
running          give_up        r   T9  needs_attention   j +a h q
running          give_up        o   T10 failed            j +a h
running          ask            *   T11 needs_attention   j h q
running          snooze         *   T12 queued
running          snooze         *   T12b retrying
running          hand_back      *   T13 queued
running          hand_back      *   T13b retrying
running          lease_ended    *   T14 retrying          +a h
running          lease_ended    r   T14b needs_attention  j +a h q
running          lease_ended    o   T14c failed           j +a h
blocked          cancel         *   T15 cancelled         j
queued           cancel         *   T15 cancelled         j
retrying         cancel         *   T15 cancelled         j
needs_attention  cancel         *   T15 cancelled         j
running          cancel         *   T15b cancelled_held   j
cancelled_held   stopped        *   T16 cancelled         j
needs_attention  retry          *   T17 queued            j 0a
needs_attention  answer         *   T18 queued            j 0a
needs_attention  skip           o   T19 skipped           j
needs_attention  window_over    o   T19b skipped          j
needs_attention  dismiss        *   T20 cancelled         j
needs_attention  window_over    r   T20b cancelled        j
"""


def table() -> dict[tuple[str, str, bool], set[tuple[str, str, str]]]:
    """What TABLE allows: the rows, with their targets and marks, of each phase, event and kind of task."""
    allowed: dict[tuple[str, str, bool], set[tuple[str, str, str]]] = {}
    for line in TABLE.strip().splitlines():
        source, event, who, no, target, *marks = line.split()
        for required in (True, False):
            if who == "*" or (who == "r") == required:
                allowed.setdefault((source, event, required), set()).add((no, target, " ".join(sorted(marks))))
    return allowed


def marks(row: TaskTransition) -> str:
    spent = {"zero": "0a", "reset": "0a", "plus_one": "+a", "same": ""}[row.spent]
    fence = {"zero": "0f", "plus_one": "+f", "same": ""}[row.fence]
    flags = ("j" * row.job_locked, "q" * row.raises_attention, "h" * row.attempt_row)
    return " ".join(sorted(filter(None, (spent, fence, *flags))))


ALLOWED = table()


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("source", PHASES)
def test_a_task_takes_exactly_the_rows_of_its_table(source: Phase, event: Event, required: bool) -> None:
    found = {(row.no, row.target, marks(row)) for row in transitions(source, event, required=required)}
    assert found == ALLOWED.get((source, event, required), set())


def test_the_table_names_no_row_twice() -> None:
    numbers = [row.no for row in TASK_TRANSITIONS]
    assert len(numbers) == len(set(numbers))
    assert {no.rstrip("abc") for no in numbers} == {f"T{n}" for n in range(1, 21)}


def test_what_is_final_moves_no_more() -> None:
    """A cancelled task that is held only loses its holder."""
    for phase, event, required in product(FINAL_TASKS, EVENTS, (True, False)):
        assert transitions(phase, event, required=required) == ()
    assert {row.event for row in TASK_TRANSITIONS if "cancelled_held" in row.sources} == {"stopped"}


def test_every_row_that_ends_a_task_or_asks_locks_its_job() -> None:
    for row in TASK_TRANSITIONS:
        ends = row.target in (*FINAL_TASKS, "needs_attention", "cancelled_held")
        assert row.job_locked or not ends, row.no


def test_the_fence_is_raised_by_claims_only_and_never_reset() -> None:
    assert {row.event for row in TASK_TRANSITIONS if row.fence == "plus_one"} == {"claim"}
    assert {row.event for row in TASK_TRANSITIONS if row.fence == "zero"} == {"admit"}


def test_an_attempt_is_used_by_failures_and_losses_only() -> None:
    assert {row.event for row in TASK_TRANSITIONS if row.spent == "plus_one"} == {"fail", "give_up", "lease_ended"}
    assert {row.event for row in TASK_TRANSITIONS if row.spent == "reset"} == {"retry", "answer"}


JOBS = """
J1   admit        open          writes
-    entry_moves  unchanged     -       open needs_attention
J2   finish       by_counters   writes  open needs_attention
J3   give_up      by_counters   writes  open needs_attention
J4   decide       by_counters   writes  open needs_attention
J5   cancel       cancelled     writes  open needs_attention
J7   abandon      cancelled     writes  needs_attention
J8   stopped      unchanged     writes  cancelled
J9   act          unchanged     -       completed cancelled
J10  rerun        unchanged     -       completed cancelled
J11  purge        deleted       writes  completed cancelled
"""


def test_a_job_takes_exactly_the_rows_of_its_table() -> None:
    found = {(row.no, row.event, row.target, row.writes, row.sources) for row in JOB_TRANSITIONS}
    wanted: set[tuple[str, str, str, bool, frozenset[str]]] = set()
    for line in JOBS.strip().splitlines():
        no, event, target, writes, *sources = line.split()
        wanted.add((no, event, target, writes == "writes", frozenset(sources)))
    assert found == wanted
    assert len(JOB_TRANSITIONS) == len(wanted)


@pytest.mark.parametrize(
    ("state", "required", "expected"),
    [
        ("blocked", True, (1, 1, 1, 0, 0)),
        ("blocked", False, (1, 1, 0, 0, 0)),
        ("open", True, (1, 1, 1, 0, 0)),
        ("open", False, (1, 1, 0, 0, 0)),
        ("needs_attention", True, (1, 1, 1, 1, 0)),
        ("needs_attention", False, (1, 1, 0, 1, 0)),
        ("completed", True, (1, 0, 0, 0, 0)),
        ("completed", False, (1, 0, 0, 0, 0)),
        ("skipped", True, (1, 0, 0, 0, 0)),
        ("skipped", False, (1, 0, 0, 0, 1)),
        ("failed", True, (1, 0, 0, 0, 0)),
        ("failed", False, (1, 0, 0, 0, 1)),
        ("cancelled", True, (1, 0, 0, 0, 0)),
        ("cancelled", False, (1, 0, 0, 0, 0)),
    ],
)
def test_what_one_task_counts(state: StoredTask, required: bool, expected: tuple[int, ...]) -> None:
    assert indicators(state, required=required) == Counters(*expected)


states = st.sampled_from(TASK_STATES)
tasks = st.lists(st.tuples(states, st.booleans()), max_size=20)
counters = st.builds(Counters, *[st.integers(-(2**60), 2**60)] * 5)


@settings(deadline=None)
@given(states, states, st.booleans())
def test_a_change_is_the_difference_of_the_indicators(old: StoredTask, new: StoredTask, required: bool) -> None:
    assert indicators(old, required=required) + change(old, new, required=required) == indicators(new, required=required)
    assert change(old, new, required=required) + change(new, old, required=required) == Counters()
    assert change(old, new, required=required).total == 0


@settings(deadline=None)
@given(states, states, states, st.booleans())
def test_changes_add_up_along_a_path(first: StoredTask, second: StoredTask, third: StoredTask, required: bool) -> None:
    path = change(first, second, required=required) + change(second, third, required=required)
    assert path == change(first, third, required=required)


@settings(deadline=None)
@given(tasks, tasks)
def test_a_count_is_the_sum_of_its_parts(one: list[Any], other: list[Any]) -> None:
    assert count(one) + count(other) == count(one + other) == count(other + one)
    assert count([]) == Counters(0, 0, 0, 0, 0)


@settings(deadline=None)
@given(counters, counters, counters)
def test_counters_add_and_subtract(a: Counters, b: Counters, c: Counters) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a - a == Counters()


def test_counters_add_to_nothing_else() -> None:
    with pytest.raises(TypeError):
        Counters() + (1, 2, 3, 4, 5)  # noqa: RUF005 - that it is no concatenation is what this is about


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_counters_kept_by_changes_equal_a_recount_over_any_history(required: list[bool], data: st.DataObject) -> None:
    """Tasks move by the rows of the table; the counters that are only ever changed by differences stay those of a count."""
    phases: list[Phase] = ["queued"] * len(required)
    kept = count([("open", r) for r in required])
    for _ in range(data.draw(st.integers(0, 30))):
        no = data.draw(st.integers(0, len(required) - 1))
        rows = [r for r in TASK_TRANSITIONS if phases[no] in r.sources and r.required in (None, required[no])]
        if rows:
            row = data.draw(st.sampled_from(rows))
            kept += change(stored(phases[no]), stored(row.target), required=required[no])
            phases[no] = row.target
    assert kept == count(zip(map(stored, phases), required, strict=True))
    assert kept.total == len(required)
    assert 0 <= kept.required_open <= kept.open <= kept.total
    assert 0 <= kept.attention <= kept.open
    assert 0 <= kept.problems <= kept.total - kept.open
    state = stored_job_state(cancelled=False, open=kept.open, attention=kept.attention)
    assert (state == "completed") == all(stored(p) in FINAL_TASKS for p in phases)
    assert (state == "needs_attention") == ("needs_attention" in phases)


def stored(phase: Phase) -> StoredTask:
    names: dict[Phase, StoredTask] = {"queued": "open", "retrying": "open", "running": "open", "cancelled_held": "cancelled"}
    return names.get(phase, phase)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("cancelled", "still_open", "attention", "state"),
    [
        (False, 0, 0, "completed"),
        (False, 1, 0, "open"),
        (False, 1, 1, "needs_attention"),
        (False, 9, 2, "needs_attention"),
        (False, 0, 1, "completed"),
        (True, 0, 0, "cancelled"),
        (True, 5, 0, "cancelled"),
        (True, 5, 5, "cancelled"),
    ],
)
def test_the_stored_state_of_a_job(cancelled: bool, still_open: int, attention: int, state: StoredJob) -> None:
    assert stored_job_state(cancelled=cancelled, open=still_open, attention=attention) == state


def test_the_stored_state_in_sql_is_the_same_function() -> None:
    connection = sqlite3.connect(":memory:")
    sql = f"select {job_state(':cancelled|:open|:attention')}"
    for cancelled, still_open, attention in product((None, 0, 1_700_000_000_000), range(4), range(4)):
        (found,) = connection.execute(sql, {"cancelled": cancelled, "open": still_open, "attention": attention}).fetchone()
        assert found == stored_job_state(cancelled=cancelled is not None, open=still_open, attention=attention)
    connection.close()


@pytest.mark.parametrize(("problems", "outcome"), [(0, "succeeded"), (1, "succeeded_with_problems"), (7, "succeeded_with_problems")])
def test_how_a_job_completed(problems: int, outcome: str) -> None:
    assert outcome_of(problems=problems) == outcome


@pytest.mark.parametrize(
    ("held", "waiting", "started", "shown"),
    [
        (False, False, False, "queued"),
        (False, False, True, "running"),
        (False, True, False, "retrying"),
        (False, True, True, "retrying"),
        (True, False, False, "running"),
        (True, False, True, "running"),
        (True, True, False, "running"),
        (True, True, True, "running"),
    ],
)
def test_the_shown_state_of_an_open_job(held: bool, waiting: bool, started: bool, shown: str) -> None:
    assert shown_job_state("open", held=held, retry_waiting=waiting, started=started) == shown


def test_every_other_job_is_shown_as_it_is_stored() -> None:
    for state, held, waiting, started in product(JOB_STATES, *[(True, False)] * 3):
        if state != "open":
            assert shown_job_state(state, held=held, retry_waiting=waiting, started=started) == state
    assert {"completed", "cancelled"} == FINAL_JOBS


@pytest.mark.parametrize(
    ("held", "spent", "shown"), [(False, 0, "queued"), (False, 2, "retrying"), (True, 0, "running"), (True, 2, "running")]
)
def test_the_shown_state_of_an_open_task(held: bool, spent: int, shown: str) -> None:
    assert shown_task_state("open", held=held, spent=spent) == shown


def test_every_other_task_is_shown_as_it_is_stored() -> None:
    for state, held, spent in product(TASK_STATES, (True, False), (0, 3)):
        if state != "open":
            assert shown_task_state(state, held=held, spent=spent) == state


@pytest.mark.parametrize(
    ("state", "held", "spent", "attempt"),
    [
        ("open", False, 0, 0),
        ("open", True, 0, 1),
        ("open", False, 2, 2),
        ("open", True, 2, 3),
        ("completed", False, 0, 1),
        ("completed", False, 2, 3),
        ("needs_attention", False, 3, 3),
        ("failed", False, 3, 3),
        ("blocked", False, 0, 0),
    ],
)
def test_the_attempt_that_is_shown(state: StoredTask, held: bool, spent: int, attempt: int) -> None:
    assert shown_attempt(state, held=held, spent=spent) == attempt
