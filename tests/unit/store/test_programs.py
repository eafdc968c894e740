"""Programs, driven by hand: the statements that they yield, with their parameters, and what follows from the rows.

What needs a real store stands in the contract suite. Here are the turns that a store takes only when others come in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from outlast.domain.access import Scope
from outlast.domain.effects import EffectCall, EffectRef, Intent, Judged, Met, provider_key
from outlast.domain.errors import KeyReused
from outlast.domain.retry import GiveUp, RetryIn
from outlast.domain.work import (
    Admission,
    Admitted,
    Asked,
    Control,
    Failed,
    Filter,
    Finished,
    KeyTaken,
    LostLease,
    OpenWindow,
    Renewal,
    Settled,
    Swept,
    TaskRef,
    Tombstone,
    Verdict,
    Woken,
)
from outlast.store.drive import drive
from outlast.store.program import Operation, Repeat, Rows, Statement
from outlast.store.programs import admission, claims, completion, control, effects, rerun, status, steps, sweep

SCOPE = Scope("acme", "ann")
REF = TaskRef("acme", "job", 3, 7, "w1:2")
OTHER = TaskRef("acme", "another", 0, 1, "w1:2")
LOST = LostLease("acme", "job", 3, 7, revoked=False)
WINDOW = OpenWindow("acme", "job", "3.7")
NOW = 1_000_000


def entry(
    *,
    fence: int = 7,
    holder: str | None = "w1:2",
    spent: int = 0,
    revoked: int = 0,
    leased: int = 1,
    required: int = 1,
    deadline: int | None = None,
) -> tuple[Any, ...]:
    """A row of the statement `entry`: policy 3 attempts, base 1 s."""
    until = NOW + 1 if leased else NOW
    return (fence, holder, spent, None, revoked, leased, until, deadline or NOW + 9, NOW, 3, 1_000, 60_000, 3_600_000, required, None)


def stands(key: str, fingerprint: str, job_id: str) -> tuple[Any, ...]:
    """A row of the statement `submission_of`, for a job that is kept."""
    return (key, fingerprint, job_id, None, None, None, None, 0)


def buried(key: str, fingerprint: str, job_id: str, *, outlived: bool) -> tuple[Any, ...]:
    """The same for one that was purged."""
    return (key, fingerprint, job_id, "completed", "succeeded", NOW - 2, NOW - 1, int(outlived))


class Play:
    """Answers statements in the order written down; anything else fails the test."""

    def __init__(self, *steps: tuple[str, Rows]) -> None:
        self.steps = list(steps)
        self.params: dict[str, Any] = {}

    def __call__(self, statement: Statement) -> Rows:
        assert self.steps, f"{statement.name} was not expected"
        name, rows = self.steps.pop(0)
        assert statement.name == name
        self.params[name] = statement.params
        return rows

    def run(self, operation: Operation[Any]) -> Any:
        """The operation's value; all of the play must have been asked for."""
        value = drive(operation.start(), self)
        assert self.steps == []
        return value


def play(operation: Operation[Any], *steps: tuple[str, Rows]) -> Any:
    return Play(*steps).run(operation)


def job(key: str | None = "k", job_id: str = "new", request: str = "r") -> Admission:
    return Admission("acme", "ann", key, request, job_id, "kind", 1, "A job", "{}", "{}", (), None, None, job_id, "c", None)


# -- admission ------------------------------------------------------------------------------------------------


def test_admit_whose_winner_is_gone_asks_to_be_repeated() -> None:
    """The key was taken by one that rolled back, or was purged, between the two statements."""
    with pytest.raises(Repeat):
        play(admission.admit([job()]), ("admit", []), ("submission_of", []))


def test_admit_tells_its_own_first_try_from_an_earlier_job() -> None:
    mine = play(admission.admit([job()]), ("admit", []), ("submission_of", [stands("k", "r", "new")]))
    assert mine == [Admitted("new", replayed=False)]
    theirs = play(admission.admit([job()]), ("admit", []), ("submission_of", [stands("k", "r", "old")]))
    assert theirs == [Admitted("old", replayed=True)]
    assert play(admission.admit([job()]), ("admit", []), ("submission_of", [stands("k", "x", "old")])) == [KeyTaken()]


def test_admit_frees_a_key_whose_horizon_is_over_and_takes_it() -> None:
    outlived = ("submission_of", [buried("k", "r", "old", outlived=True)])
    again = (("admit", []), outlived, ("drop_outlived", []))
    assert play(admission.admit([job()]), *again, ("admit", [("new",)])) == [Admitted("new", replayed=False)]
    other = play(admission.admit([job()]), *again, ("admit", []), ("submission_of", [stands("k", "r", "won")]))
    assert other == [Admitted("won", replayed=True)]
    with pytest.raises(Repeat):
        play(admission.admit([job()]), *again, ("admit", []), ("submission_of", []))


def test_admit_gives_what_is_left_of_a_job_that_was_purged() -> None:
    left = play(admission.admit([job()]), ("admit", []), ("submission_of", [buried("k", "r", "old", outlived=False)]))
    assert left == [Admitted("old", replayed=True, tombstone=Tombstone("old", "completed", "succeeded", NOW - 2, NOW - 1))]
    assert play(admission.admit([job()]), ("admit", []), ("submission_of", [buried("k", "x", "old", outlived=False)])) == [KeyTaken()]


def test_admit_looks_up_the_taken_keys_only() -> None:
    jobs = [job("a", "1"), job(None, "2"), job("b", "3")]
    found = play(admission.admit(jobs), ("admit", [("3",)]), ("submission_of", [stands("a", "r", "0")]))
    assert found == [Admitted("0", replayed=True), Admitted("2", replayed=False), Admitted("3", replayed=False)]


def test_admit_all_names_the_place_of_the_key_that_is_taken() -> None:
    with pytest.raises(KeyReused, match="submission 1"):
        play(
            admission.admit_all([job("a", "1"), job("b", "2")]),
            ("admit", [("1",)]),
            ("submission_of", [stands("b", "another", "0")]),
        )


@pytest.mark.parametrize("locked", [[], [("open", 1, "root", "ann")], [("needs_attention", 1, "root", "ann")]])
def test_rerun_of_what_is_gone_or_not_final_admits_nothing(locked: Rows) -> None:
    assert play(rerun.admit_rerun(SCOPE, job()), ("lock_job", locked)) is None


# -- claims ---------------------------------------------------------------------------------------------------


def test_wake_tells_when_the_next_one_falls_due() -> None:
    assert play(claims.wake(5), ("wake", [("b",), ("a",), ("b",)])) == Woken(3, ("a", "b"), 0)
    assert play(claims.wake(5), ("wake", []), ("next_due", [(70,)])) == Woken(0, (), 70)
    assert play(claims.wake(5), ("wake", []), ("next_due", [])) == Woken(0, (), None)


def test_renew_of_a_row_that_another_holds_just_now_is_busy() -> None:
    """Its row was skipped, and stands as it should: neither renewed nor lost."""
    verdicts = play(claims.renew([Renewal(REF)], 1_000), ("renew", []), ("entry", [entry()]))
    assert verdicts == [Verdict.BUSY]


def test_renew_asks_in_key_order_and_answers_in_the_order_asked() -> None:
    script = Play(("renew", [("acme", "job", 3, 7)]), ("entry", []), ("task_end", []))
    verdicts = script.run(claims.renew([Renewal(REF, "half"), Renewal(OTHER)], 1_000))
    assert verdicts == [Verdict.ACCEPTED, Verdict.STALE]
    assert (script.params["renew"]["ids"], script.params["renew"]["progress"]) == (["another", "job"], [None, "half"])


@pytest.mark.parametrize(("rows", "verdict"), [([], Verdict.ACCEPTED), ([("worker_lost",)], Verdict.STALE)])
def test_release_that_stands_so_already_is_mine_unless_it_was_the_sweeps(rows: Rows, verdict: Verdict) -> None:
    script = (("release", []), ("entry", [entry(holder=None)]), ("attempt_of", rows))
    assert play(claims.snooze(REF, 5), *script).verdict is verdict
    (settled,) = play(claims.hand_back([REF]), ("hand_back", []), *script)
    assert settled.verdict is verdict


# -- the end of an attempt ------------------------------------------------------------------------------------


def finished(ref: TaskRef, body: str = "1") -> Finished:
    return Finished(ref, "w1", body)


def test_finish_asks_in_key_order_and_answers_in_the_order_asked() -> None:
    script = Play(("finish", [("acme", "another", 0, 2)]), ("entry", []), ("task_end", [("completed", 7, 0)]))
    settled = script.run(completion.finish([finished(REF, "r"), finished(OTHER, "o")], 9))
    assert settled == [Settled(Verdict.ACCEPTED), Settled(Verdict.ACCEPTED, opened=2)]
    assert (script.params["finish"]["ids"], script.params["finish"]["bodies"]) == (["another", "job"], ["o", "r"])


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([("entry", []), ("task_end", [("completed", 7, 0)])], Verdict.ACCEPTED),
        ([("entry", []), ("task_end", [("completed", 8, 0)])], Verdict.STALE),
        ([("entry", []), ("task_end", [("cancelled", 7, 0)])], Verdict.CANCELLED),
        ([("entry", []), ("task_end", [("needs_attention", 7, 1)])], Verdict.STALE),
        ([("entry", []), ("task_end", [])], Verdict.STALE),
        ([("entry", [entry(revoked=1)])], Verdict.CANCELLED),
        ([("entry", [entry(revoked=1, fence=8)])], Verdict.STALE),
        ([("entry", [entry(fence=8)])], Verdict.STALE),
        ([("entry", [entry(leased=0)])], Verdict.STALE),
        ([("entry", [entry(holder=None)])], Verdict.STALE),
    ],
)
def test_finish_that_was_refused_is_told_why(found: list[tuple[str, Rows]], verdict: Verdict) -> None:
    assert play(completion.finish([finished(REF)], 9), ("finish", []), *found) == [Settled(verdict)]


@pytest.mark.parametrize(
    ("permanent", "spent", "decided"),
    [(False, 0, RetryIn(500)), (False, 1, RetryIn(1_000)), (False, 2, GiveUp()), (True, 0, GiveUp())],
)
def test_budget_is_decided_on_what_the_store_holds(permanent: bool, spent: int, decided: object) -> None:
    failure = Failed(REF, "w1", "broken", "It broke.", permanent=permanent)
    assert play(completion.budget(failure, 0.5), ("entry", [entry(spent=spent)])) == decided


FAILURE = Failed(REF, "w1", "broken", "It broke.")
QUESTION = Asked(REF, "w1", "broken", "It broke.", ("retry",))


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([("entry", [entry(holder=None)]), ("attempt_of", [("broken",)])], Verdict.ACCEPTED),
        ([("entry", [entry(holder=None)]), ("attempt_of", [("worker_lost",)])], Verdict.STALE),
        ([("entry", [entry(holder=None)]), ("attempt_of", [])], Verdict.STALE),
        ([("entry", []), ("attempt_of", [("broken",)])], Verdict.ACCEPTED),
        ([("entry", []), ("attempt_of", [("worker_lost",)]), ("task_end", [("needs_attention", 7, 1)])], Verdict.STALE),
        ([("entry", []), ("attempt_of", []), ("task_end", [("cancelled", 7, 1)])], Verdict.CANCELLED),
        ([("entry", []), ("attempt_of", []), ("task_end", [])], Verdict.STALE),
        ([("entry", [entry(revoked=1)])], Verdict.CANCELLED),
        ([("entry", [entry(fence=8)])], Verdict.STALE),
    ],
)
def test_an_ending_that_was_refused_is_told_why(found: list[tuple[str, Rows]], verdict: Verdict) -> None:
    assert play(completion.budget(FAILURE, 0.5), *found) is verdict
    assert play(completion.retry(FAILURE, 5), ("retry", []), *found).verdict is verdict
    asked = play(completion.ask(QUESTION, window_ms=1, retention_ms=1), ("lock_job", [("open", 1, "r", "ann")]), ("end_entry", []), *found)
    assert asked.verdict is verdict


def test_give_up_whose_entry_goes_between_its_read_and_its_write() -> None:
    settled = play(
        completion.give_up(FAILURE, window_ms=1, retention_ms=1),
        ("lock_job", [("open", 1, "r", "ann")]),
        ("entry", [entry()]),
        ("end_entry", []),
        ("entry", [entry(fence=8)]),
    )
    assert settled == Settled(Verdict.STALE)


def test_give_up_of_a_job_that_is_gone() -> None:
    settled = play(
        completion.give_up(FAILURE, window_ms=1, retention_ms=1),
        ("lock_job", []),
        ("entry", []),
        ("attempt_of", []),
        ("task_end", []),
    )
    assert settled == Settled(Verdict.STALE)


def test_give_up_offers_what_the_task_allows() -> None:
    script = Play(
        ("lock_job", [("open", 1, "r", "ann")]),
        ("entry", [entry()]),
        ("end_entry", [(2, NOW, None)]),
        ("end_task", [(1, 0)]),
        ("insert_attempt", []),
        ("raise_attention", []),
        ("update_job", [(2, "needs_attention")]),
    )
    assert script.run(completion.give_up(FAILURE, window_ms=5, retention_ms=6)) == Settled(Verdict.ACCEPTED, gave_up=True)
    assert (script.params["raise_attention"]["id"], script.params["raise_attention"]["actions"]) == ("3.7", "retry dismiss")
    assert (script.params["end_task"]["spent"], script.params["insert_attempt"]["number"]) == (3, 3)
    assert {k: v for k, v in script.params["update_job"].items() if k.startswith("d_")} == {
        "d_open": 0,
        "d_required_open": 0,
        "d_attention": 1,
        "d_problems": 0,
    }


# -- control --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("locked", "version", "control_"),
    [
        ([], None, Control.NOT_FOUND),
        ([("cancelled", 5, "r", "ann")], 1, Control.REPEATED),
        ([("completed", 5, "r", "ann")], 1, Control.ALREADY_COMPLETED),
        ([("open", 5, "r", "ann")], 4, Control.STALE_VERSION),
        ([("needs_attention", 5, "r", "ann")], 6, Control.STALE_VERSION),
    ],
)
def test_cancel_judges_the_state_before_the_version_and_writes_nothing(locked: Rows, version: int | None, control_: Control) -> None:
    assert play(control.cancel(SCOPE, "job", version=version, actor="ann", retention_ms=1), ("lock_job", locked)) is control_


def test_cancel_revokes_before_it_deletes() -> None:
    """In one statement an entry slips through while it is claimed or handed back."""
    ending: list[tuple[str, Rows]] = [
        (name, []) for name in ("revoke_entries", "cancel_tasks", "delete_unheld", "close_attention", "cancel_job")
    ]
    cancel = control.cancel(SCOPE, "job", version=5, actor="ann", retention_ms=1)
    assert play(cancel, ("lock_job", [("open", 5, "r", "ann")]), *ending) is Control.DONE


def asked(
    actions: str = "retry skip dismiss",
    *,
    resolved: int = 0,
    taken: str | None = None,
    by: str | None = None,
    required: int = 0,
    effect: str | None = None,
) -> Rows:
    return [(3, actions, "which", resolved, taken, by, required, "one", effect, None if effect is None else "hash of its input")]


@pytest.mark.parametrize(
    ("question", "action", "control_"),
    [
        ([], "retry", Control.SUPERSEDED),
        (asked(), "answer", Control.NOT_OFFERED),
        (asked(required=1), "skip", Control.NOT_OFFERED),
        (asked("", resolved=1), "dismiss", Control.NOT_OFFERED),
        (asked(resolved=1, taken="retry", by="hash"), "retry", Control.REPEATED),
        (asked(resolved=1, taken="retry", by="other"), "retry", Control.SUPERSEDED),
        (asked(resolved=1, taken="skip", by="hash"), "retry", Control.SUPERSEDED),
        (asked(resolved=1, taken="closed"), "retry", Control.SUPERSEDED),
    ],
)
def test_act_on_what_is_not_open_writes_nothing(question: Rows, action: str, control_: Control) -> None:
    act = control.act(SCOPE, "job", "3.7", action=action, answer=None, request_hash="hash", actor="ann", retention_ms=1)
    assert play(act, ("lock_job", [("needs_attention", 1, "r", "ann")]), ("attention_of", question)) is control_


def test_act_on_a_job_that_is_not_ones_own() -> None:
    act = control.act(SCOPE, "job", "3.7", action="retry", answer=None, request_hash="h", actor="ann", retention_ms=1)
    assert play(act, ("lock_job", [])) is Control.NOT_FOUND


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([("entry", []), ("task_end", [("cancelled", 7, 0)])], Verdict.ACCEPTED),
        ([("entry", []), ("task_end", [("completed", 7, 0)])], Verdict.STALE),
        ([("entry", [entry()])], Verdict.STALE),
        ([("entry", [entry(revoked=1)])], Verdict.STALE),
    ],
)
def test_stop_of_what_is_not_mine_to_stop(found: list[tuple[str, Rows]], verdict: Verdict) -> None:
    assert play(control.stop(REF), ("lock_job", []), ("stop_entry", []), *found) == Settled(verdict)


@pytest.mark.parametrize("left", [0, 2])
def test_stop_counts_the_version_with_the_last_one(left: int) -> None:
    last: list[tuple[str, Rows]] = [] if left else [("bump_version", [(9,)])]
    assert play(control.stop(REF), ("lock_job", []), ("stop_entry", [(3, None)]), ("revoked_left", [(left,)]), *last) == Settled(
        Verdict.ACCEPTED
    )


# -- the sweep ------------------------------------------------------------------------------------------------

MOVED: list[Rows] = [[], [entry(leased=1)], [entry(leased=0, fence=8)], [entry(leased=0, holder=None)], [entry(leased=0, revoked=1)]]


@pytest.mark.parametrize("found", MOVED, ids=["gone", "renewed", "claimed anew", "released", "revoked"])
def test_sweep_passes_by_what_has_moved(found: Rows) -> None:
    assert play(sweep.lost(LOST, 0.5), ("entry", found)) is None
    assert play(sweep.retry_lost(LOST, 5), ("entry", found)) is Swept.PASSED
    gave_up = sweep.give_up_lost(LOST, window_ms=1, retention_ms=1)
    assert play(gave_up, ("lock_job_skip", [("open", 1, "r", "ann")]), ("entry", found)) is Swept.PASSED


def test_sweep_passes_by_a_job_that_another_has_locked() -> None:
    gave_up = sweep.give_up_lost(LOST, window_ms=1, retention_ms=1)
    assert play(gave_up, ("lock_job_skip", []), ("entry", [entry(leased=0)])) is Swept.PASSED
    assert play(sweep.stop_lost(LOST), ("lock_job_skip", [])) is Swept.PASSED
    assert play(sweep.close_window(WINDOW, retention_ms=1), ("lock_job_skip", [])) is Swept.PASSED


def test_sweep_passes_by_what_moves_between_its_read_and_its_write() -> None:
    ended = entry(leased=0)
    assert play(sweep.retry_lost(LOST, 5), ("entry", [ended]), ("retry_lost", [])) is Swept.PASSED
    gave_up = sweep.give_up_lost(LOST, window_ms=1, retention_ms=1)
    locked = ("lock_job_skip", [("open", 1, "r", "ann")])
    assert play(gave_up, locked, ("entry", [ended]), ("end_lost_entry", []), ("entry", [entry(fence=8)])) is Swept.PASSED
    assert play(sweep.stop_lost(LOST), locked, ("stop_lost_entry", [])) is Swept.PASSED
    assert play(sweep.close_window(WINDOW, retention_ms=1), locked, ("window_of", [])) is Swept.PASSED


@pytest.mark.parametrize(("deadline", "code"), [(NOW, "deadline_exceeded"), (NOW - 5, "deadline_exceeded"), (NOW + 1, "worker_lost")])
def test_sweep_names_why_the_lease_ended_and_who_had_it(deadline: int, code: str) -> None:
    script = Play(("entry", [entry(leased=0, deadline=deadline, holder="host:1:w:4")]), ("retry_lost", [("default",)]))
    assert script.run(sweep.retry_lost(LOST, 5)) is Swept.RETRIED
    assert (script.params["retry_lost"]["code"], script.params["retry_lost"]["worker"]) == (code, "host:1:w")


def test_sweep_begins_at_the_lowest_key_and_goes_on_behind_the_last() -> None:
    script = Play(("ended_leases", [("acme", "job", 3, 7, 1, "c-7")]))
    (found,) = script.run(sweep.ended_leases(None, 10))
    assert found == LostLease("acme", "job", 3, 7, revoked=True, correlation_id="c-7")
    assert script.params["ended_leases"]["no"] < 0
    script = Play(("ended_leases", []))
    script.run(sweep.ended_leases(found, 10))
    assert script.params["ended_leases"] == {"tenant": "acme", "job_id": "job", "no": 3, "limit": 10}
    script = Play(("windows_over", []))
    script.run(sweep.windows_over(WINDOW, 10))
    assert script.params["windows_over"] == {"tenant": "acme", "job_id": "job", "id": "3.7", "limit": 10}


# -- steps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([("step_body", [(7, '"mine"')])], (Verdict.ACCEPTED, '"mine"')),
        ([("step_body", [(6, '"before"')]), ("entry", [entry()])], (Verdict.ACCEPTED, '"before"')),
        ([("step_body", [(6, '"before"')]), ("entry", [entry(leased=0)])], (Verdict.STALE, "1")),
        ([("step_body", [(6, '"before"')]), ("entry", [entry(revoked=1)])], (Verdict.CANCELLED, "1")),
        ([("step_body", [(8, '"after"')]), ("entry", [entry(fence=8)])], (Verdict.STALE, "1")),
        ([("step_body", []), ("entry", [entry(fence=8)])], (Verdict.STALE, "1")),
        ([("step_body", []), ("entry", []), ("task_end", [("cancelled", 7, 0)])], (Verdict.CANCELLED, "1")),
    ],
)
def test_step_that_was_not_stored_is_mine_an_earlier_one_or_refused(found: list[tuple[str, Rows]], expected: tuple[Verdict, str]) -> None:
    assert play(steps.store_step(REF, "page", "1"), ("store_step", []), *found) == expected


# -- lists ----------------------------------------------------------------------------------------------------


def listed(number: int, *, held: int = 0) -> tuple[Any, ...]:
    head = ("acme", f"{number:03}", "ann", "kind", 1, "A job", "open", None, 1, None, None, 1, 1, 0, NOW, None, None, None, "c")
    return (*head, held, 0, held, 0, "one", None, None, None, None, None, None, None, None, None, None, "none")


def page(rows: list[tuple[Any, ...]], *, state: str, limit: int) -> Callable[[Statement], Rows]:
    """A store with these jobs, newest first."""

    def execute(statement: Statement) -> Rows:
        assert statement.name == "job_list"
        assert (statement.params["state"], statement.params["limit"]) == ("open", limit + 1)
        return [row for row in rows if row[1] < statement.params["before"]][: limit + 1]

    return execute


def test_a_list_of_a_derived_state_looks_a_bounded_number_of_rounds_and_goes_on_where_it_was() -> None:
    rows = [listed(n, held=int(n == 1)) for n in range(400, 0, -1)]
    execute = page(rows, state="running", limit=2)
    wanted = status.jobs(SCOPE, Filter("running"), limit=2, before=None)
    found, cursor = drive(wanted.start(), execute)
    assert found == []
    assert cursor is not None
    calls = 1
    while cursor is not None and not found:
        found, cursor = drive(status.jobs(SCOPE, Filter("running"), limit=2, before=cursor).start(), execute)
        calls += 1
    assert [row.id for row in found] == ["001"]
    assert calls < 10


def test_a_list_of_a_derived_state_ends_a_full_page_with_its_last_row() -> None:
    rows = [listed(n, held=n % 2) for n in range(9, 0, -1)]
    execute = page(rows, state="running", limit=2)
    found, cursor = drive(status.jobs(SCOPE, Filter("running"), limit=2, before=None).start(), execute)
    assert ([row.id for row in found], cursor) == (["009", "007"], "007")


# -- the effect ledger ----------------------------------------------------------------------------------------

CALL = EffectCall("mail", "x", 1_000)
EFFECT = EffectRef("acme", "root", "one", "mail", "x")
MINE = Intent("job", 3, 7)
PLACE: tuple[str, Rows] = ("effect_place", [("root", "one")])


def standing(state: str, *, fence: int = 7, job_id: str = "job", left: int = 400, outcome: str | None = None) -> tuple[str, Rows]:
    """A row of the statement `effect_of`."""
    return "effect_of", [(state, job_id, 3, fence, "key", outcome, left)]


def test_begin_of_what_is_new_derives_the_key() -> None:
    script = Play(PLACE, ("insert_effect", [("mail",)]))
    assert script.run(effects.begin(REF, CALL)) == Met(EFFECT, MINE, "intended", provider_key(EFFECT))
    params = script.params["insert_effect"]
    assert (params["effect_root"], params["label"], params["fence"], params["provider_key"]) == ("root", "one", 7, provider_key(EFFECT))


@pytest.mark.parametrize("begin", [effects.begin, effects.retake])
@pytest.mark.parametrize(("row", "verdict"), [(entry(revoked=1), Verdict.CANCELLED), (entry(fence=8), Verdict.STALE)])
def test_begin_without_authority_reads_why_and_writes_nothing(begin: Any, row: tuple[Any, ...], verdict: Verdict) -> None:
    assert play(begin(REF, CALL), ("effect_place", []), ("entry", [row])) is verdict


def test_begin_of_an_effect_that_was_purged_in_between_asks_to_be_repeated() -> None:
    with pytest.raises(Repeat):
        play(effects.begin(REF, CALL), PLACE, ("insert_effect", []), ("effect_of", []))


@pytest.mark.parametrize(
    ("found", "writes", "met"),
    [
        (standing("confirmed", fence=2, outcome="1"), [], Met(EFFECT, Intent("job", 3, 2), "confirmed", "key", "1")),
        (standing("refused", fence=2), ["intend_effect"], Met(EFFECT, MINE, "intended", "key")),
        (standing("intended"), [], Met(EFFECT, MINE, "intended", "key")),
        (standing("unknown"), [], Met(EFFECT, MINE, "unknown", "key")),
        (standing("intended", fence=6), ["doubt_effect"], Met(EFFECT, Intent("job", 3, 6), "unknown", "key", wait_ms=400)),
        (standing("unknown", fence=6), [], Met(EFFECT, Intent("job", 3, 6), "unknown", "key", wait_ms=400)),
        (standing("unknown", fence=6, left=-5), [], Met(EFFECT, Intent("job", 3, 6), "unknown", "key")),
        (standing("intended", job_id="other"), ["doubt_effect"], Met(EFFECT, Intent("other", 3, 7), "unknown", "key", wait_ms=400)),
    ],
)
def test_begin_of_what_stands_already(found: tuple[str, Rows], writes: list[str], met: Met) -> None:
    steps: list[tuple[str, Rows]] = [(name, []) for name in writes]
    assert play(effects.begin(REF, CALL), PLACE, ("insert_effect", []), found, *steps) == met


@pytest.mark.parametrize(
    ("found", "writes", "state"),
    [
        (standing("unknown", fence=6, left=0), ["intend_effect"], "intended"),
        (standing("intended", fence=6, left=0), ["intend_effect"], "intended"),
        (standing("intended", fence=6, left=1), ["doubt_effect"], "unknown"),
        (standing("unknown", fence=7, left=1), ["intend_effect"], "intended"),
        (standing("confirmed", outcome="1"), [], "confirmed"),
        (standing("refused"), ["intend_effect"], "intended"),
    ],
)
def test_retake_waits_for_the_time_of_the_earlier_call(found: tuple[str, Rows], writes: list[str], state: str) -> None:
    steps: list[tuple[str, Rows]] = [(name, []) for name in writes]
    assert play(effects.retake(REF, CALL), PLACE, ("insert_effect", []), found, *steps).state == state


@pytest.mark.parametrize(("rows", "judged"), [([("refused", None)], Judged("refused", None)), ([], Judged(None, None))])
def test_settle_that_comes_second_is_told_the_first(rows: Rows, judged: Judged) -> None:
    assert play(effects.settle(EFFECT, MINE, "confirmed", "1"), ("settle_effect", []), ("effect_outcome", rows)) == judged
    assert play(effects.settle(EFFECT, MINE, "confirmed", "1"), ("settle_effect", [("x",)])) == Judged("confirmed", "1")


def test_act_about_an_effect_writes_nothing_for_an_answer_of_another_shape() -> None:
    act = control.act(SCOPE, "job", "3.7", action="answer", answer='"yes"', request_hash="h", actor="ann", retention_ms=1)
    question = asked("answer dismiss", effect="mail")
    assert play(act, ("lock_job", [("needs_attention", 1, "r", "ann")]), ("attention_of", question)) is Control.MISANSWERED
