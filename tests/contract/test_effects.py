"""The effect ledger: the rows of its table, who may do what, and the owner's word about an outcome that nobody knows (G1 to G4, E4)."""

from __future__ import annotations

import pytest

from contract.backends import Row
from contract.harness import ANN, CANCELLED, LEASE_MS, OPERATOR, STALE, TIMEOUT_MS, Harness
from contract.plans import a
from outlast.domain.access import Scope
from outlast.domain.effects import EFFECT_TRANSITIONS, EffectEvent, EffectState, Judged, Met, provider_key
from outlast.domain.work import Admitted, Claimed, Control, Verdict


def met(given: Met | Verdict) -> Met:
    assert isinstance(given, Met)
    return given


def stored(row: Row) -> tuple[object, ...]:
    return row["state"], row["job_id"], row["fence"], row["outcome"]


def replaced(h: Harness, claimed: Claimed) -> Claimed:
    """The next claim of the same task, in another worker."""
    h.hand_back(claimed)
    return h.take(claimed.label, worker="w2")


def rerun_of(h: Harness, job: str, *tasks: object) -> str:
    again = h.admission(rerun_of=job, effect_root=h.job_row(job)["effect_root"])
    assert h.rerun(ANN, again) == Admitted(again.job_id, replayed=False)
    return again.job_id


# -- begin ----------------------------------------------------------------------------------------------------


def test_begin_of_what_is_new_commits_the_intent_with_its_fence(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.advance(7)
    found = h.intend(claimed, given="hash of the input")
    (row,) = h.rows("effect", job)
    assert stored(row) == ("intended", job, 1, None)
    assert (row["effect_root"], row["label"], row["name"], row["input_hash"], row["no"]) == (job, "one", "mail", "hash of the input", 0)
    assert (row["timeout_ms"], row["begun_at"], row["settled_at"]) == (TIMEOUT_MS, h.now, None)
    assert row["provider_key"] == found.key == provider_key(found.ref)
    assert len(found.key) <= 64
    assert found.key.isascii()


def test_begin_again_by_the_same_claim_changes_nothing(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    first = h.intend(claimed)
    before = h.snapshot()
    h.advance(1)
    assert h.begin(claimed) == first
    assert h.snapshot() == before


def test_begin_by_the_same_claim_after_an_unknown_outcome_is_no_leave_to_call_again(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.settle(h.intend(claimed), "unknown")
    before = h.snapshot()
    again = met(h.begin(claimed))
    assert (again.state, again.wait_ms) == ("unknown", 0)
    assert h.snapshot() == before


def test_g3_names_and_inputs_and_tasks_and_jobs_have_keys_of_their_own(h: Harness) -> None:
    keys = set()
    for _ in range(2):
        h.admit(a("one"), a("two"))
        for claimed in h.take_all().values():
            keys |= {h.intend(claimed, name, given=given).key for name in ("mail", "charge") for given in ("x", "y")}
    assert len(keys) == 16
    assert len(h.rows("effect")) == 16


def test_g1_one_row_for_one_effect_whatever_was_asked(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.intend(claimed)
    claimed = replaced(h, claimed)
    h.begin(claimed)
    h.advance(TIMEOUT_MS)
    h.settle(met(h.retake(claimed)), "confirmed", '"sent"')
    h.begin(claimed)
    assert len(h.rows("effect")) == 1


@pytest.mark.parametrize("seconds", [0, 3])
def test_begin_of_another_claims_intent_is_unknown_while_its_call_may_still_run(h: Harness, seconds: int) -> None:
    job = h.admit()
    first = h.take()
    intent = h.intend(first)
    h.advance(seconds * 1_000)
    second = replaced(h, first)
    found = met(h.begin(second))
    assert (found.state, found.wait_ms, found.key, found.intent) == ("unknown", TIMEOUT_MS - seconds * 1_000, intent.key, intent.intent)
    assert stored(h.effect()) == ("unknown", job, 1, None)
    before = h.snapshot()
    h.advance(TIMEOUT_MS)
    assert met(h.begin(second)).wait_ms == 0
    assert h.snapshot() == before


def test_begin_of_what_another_claim_left_unknown_is_unknown(h: Harness) -> None:
    h.admit()
    first = h.take()
    h.settle(h.intend(first), "unknown")
    found = met(h.begin(replaced(h, first)))
    assert (found.state, found.wait_ms) == ("unknown", TIMEOUT_MS), "its call may have been given up before its time"


def test_begin_of_what_was_refused_is_a_clean_repeat_with_the_same_key(h: Harness) -> None:
    job = h.admit()
    first = h.take()
    intent = h.intend(first)
    h.settle(intent, "refused")
    assert h.effect()["settled_at"] == h.now
    second = replaced(h, first)
    h.advance(5)
    again = met(h.begin(second, timeout_ms=77))
    assert (again.state, again.key, again.intent.fence) == ("intended", intent.key, 2)
    row = h.effect()
    assert stored(row) == ("intended", job, 2, None)
    assert (row["begun_at"], row["settled_at"], row["timeout_ms"]) == (h.now, None, 77)


def test_begin_of_what_was_confirmed_gives_the_stored_outcome_to_the_byte(h: Harness) -> None:
    h.admit()
    first = h.take()
    body = '{"é":-0.0,"id":[1,2]}'
    assert h.settle(h.intend(first), "confirmed", body) == Judged("confirmed", body)
    second = replaced(h, first)
    before = h.snapshot()
    found = met(h.begin(second))
    assert (found.state, found.outcome) == ("confirmed", body)
    assert h.snapshot() == before


def test_an_outcome_may_be_null(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    assert h.settle(h.intend(claimed), "confirmed", "null") == Judged("confirmed", "null")
    assert met(h.begin(claimed)).outcome == "null"


def test_g3_the_key_stays_over_retries_losses_owners_and_reruns(h: Harness) -> None:
    job = h.admit(a("one", attempts=2))
    claimed = h.take()
    keys = [h.intend(claimed).key]
    h.fail(claimed)
    h.advance(10_000)
    h.wake()
    claimed = h.take()
    keys.append(met(h.begin(claimed)).key)
    h.lose(claimed)
    h.sweep()
    h.act(job, "retry")
    claimed = h.take()
    keys.append(met(h.begin(claimed)).key)
    h.cancel(job)
    h.stop(claimed)
    again = rerun_of(h, job)
    keys.append(met(h.begin(h.take())).key)
    assert len(set(keys)) == 1
    assert {e["effect_root"] for e in h.rows("effect")} == {job}
    assert h.job_row(again)["effect_root"] == job


def test_two_reruns_that_run_at_once_meet_in_one_row(h: Harness) -> None:
    job = h.admit()
    h.cancel(job)
    rerun_of(h, job)
    one = h.take()
    other_job = rerun_of(h, job)
    other = h.take()
    h.intend(one)
    found = met(h.begin(other))
    assert (found.state, found.wait_ms) == ("unknown", TIMEOUT_MS)
    h.settle(met(h.begin(one)), "confirmed", '"sent"')
    assert met(h.begin(other)).outcome == '"sent"'
    assert other.ref.job_id == other_job


# -- who may begin --------------------------------------------------------------------------------------------


def test_begin_of_a_replaced_holder_is_refused(h: Harness) -> None:
    h.admit()
    old = h.take()
    replaced(h, old)
    before = h.snapshot()
    assert h.begin(old) is STALE
    assert h.retake(old) is STALE
    assert h.snapshot() == before


def test_begin_at_the_very_instant_of_the_leases_end_is_refused(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.advance(LEASE_MS - 1)
    h.intend(claimed, "in time")
    h.advance(1)
    assert h.begin(claimed, "late") is STALE
    assert [e["name"] for e in h.rows("effect")] == ["in time"]


def test_e4_nothing_begins_after_a_cancel(h: Harness) -> None:
    job = h.admit(a("one"), a("two"))
    held = h.take_all()
    for label, state in (("one", "refused"), ("two", "unknown")):
        h.settle(h.intend(held[label], label), state)  # type: ignore[arg-type]
    h.cancel(job)
    before = h.snapshot()
    for label in ("one", "two"):
        assert h.begin(held[label], label) is CANCELLED
        assert h.retake(held[label], label) is CANCELLED
    assert h.begin(held["one"], "new") is CANCELLED
    assert h.snapshot() == before


def test_g2_an_intent_whose_commit_was_unknown_is_the_claims_own(h: Harness) -> None:
    h.admit()
    claimed = h.take()
    h.intend(claimed)
    h.advance(LEASE_MS)
    assert h.begin(claimed) is STALE, "without authority nothing may be called"
    assert h.effect()["state"] == "intended"


# -- retake ---------------------------------------------------------------------------------------------------


def test_retake_waits_for_the_call_that_may_still_run(h: Harness) -> None:
    h.admit()
    first = h.take()
    h.intend(first)
    second = replaced(h, first)
    h.advance(TIMEOUT_MS - 1)
    found = met(h.retake(second))
    assert (found.state, found.wait_ms) == ("unknown", 1)
    h.advance(1)
    taken = met(h.retake(second))
    assert (taken.state, taken.intent.fence) == ("intended", 2)
    assert (h.effect()["fence"], h.effect()["begun_at"]) == (2, h.now)


def test_retake_of_what_was_settled_meanwhile_gives_that(h: Harness) -> None:
    h.admit()
    first = h.take()
    intent = h.intend(first)
    second = replaced(h, first)
    h.begin(second)
    h.settle(intent, "confirmed", '"late"')
    assert met(h.retake(second)).outcome == '"late"'


def test_retake_again_by_the_same_claim_keeps_the_intent(h: Harness) -> None:
    h.admit()
    first = h.take()
    h.intend(first)
    second = replaced(h, first)
    h.advance(TIMEOUT_MS)
    taken = h.retake(second)
    before = h.snapshot()
    assert h.retake(second) == taken
    assert h.snapshot() == before


# -- reports --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["confirmed", "refused", "unknown"])
@pytest.mark.parametrize("after", ["lease", "cancel", "replacement", "end"])
def test_a_report_is_taken_whatever_became_of_the_claim(h: Harness, state: str, after: str) -> None:
    job = h.admit()
    claimed = h.take()
    intent = h.intend(claimed)
    if after == "lease":
        h.lose(claimed)
    elif after == "cancel":
        h.cancel(job)
        h.stop(claimed)
    elif after == "replacement":
        h.begin(replaced(h, claimed))
    else:
        h.finish(claimed)
    outcome = '"sent"' if state == "confirmed" else None
    assert h.settle(intent, state, outcome) == Judged(state, outcome)  # type: ignore[arg-type]
    assert stored(h.effect())[0] == state
    assert h.effect()["settled_at"] == (None if state == "unknown" else h.now)


@pytest.mark.parametrize("first", ["confirmed", "refused"])
@pytest.mark.parametrize("second", ["confirmed", "refused", "unknown"])
def test_the_first_report_wins_and_comes_back(h: Harness, first: str, second: str) -> None:
    h.admit()
    intent = h.intend(h.take())
    outcome = '"first"' if first == "confirmed" else None
    h.settle(intent, first, outcome)  # type: ignore[arg-type]
    before = h.snapshot()
    h.advance(3)
    assert h.settle(intent, second, '"second"' if second == "confirmed" else None) == Judged(first, outcome)  # type: ignore[arg-type]
    assert h.snapshot() == before


def test_unknown_is_no_end_of_the_matter(h: Harness) -> None:
    h.admit()
    intent = h.intend(h.take())
    h.settle(intent, "unknown")
    assert h.settle(intent, "confirmed", "7") == Judged("confirmed", "7")


@pytest.mark.parametrize("state", ["refused", "unknown"])
def test_that_an_earlier_call_did_not_happen_says_nothing_of_a_later_one(h: Harness, state: str) -> None:
    h.admit()
    first = h.take()
    intent = h.intend(first)
    second = replaced(h, first)
    h.advance(TIMEOUT_MS)
    h.retake(second)
    before = h.snapshot()
    assert h.settle(intent, state).state == "intended"  # type: ignore[arg-type]
    assert h.snapshot() == before
    assert h.settle(intent, "confirmed", "1").state == "confirmed", "that it happened is true of the key"


def test_a_reconciliation_reports_about_the_intent_that_it_met(h: Harness) -> None:
    h.admit()
    first = h.take()
    h.intend(first)
    found = met(h.begin(replaced(h, first)))
    assert h.settle(found, "refused").state == "refused"


def test_reports_about_what_was_purged_find_nothing(h: Harness) -> None:
    h.admit()
    intent = h.intend(h.take())
    h.sql("delete from {outlast.effect}")
    assert h.settle(intent, "confirmed", "1") == Judged(None, None)


# -- the owner ------------------------------------------------------------------------------------------------


def in_question(h: Harness, *, optional: bool = False) -> tuple[str, Met]:
    """A job that asks about an effect of unknown outcome."""
    job = h.admit(a("main"), a("one", optional=optional))
    held = h.take_all()
    h.finish(held["main"])
    h.intend(held["one"])
    second = replaced(h, held["one"])
    found = met(h.begin(second))
    h.ask_about(second, found)
    return job, found


@pytest.mark.parametrize("optional", [False, True])
def test_t11_the_question_names_its_effect_and_uses_no_attempt(h: Harness, optional: bool) -> None:
    job, found = in_question(h, optional=optional)
    (row,) = h.rows("attention", job)
    assert (row["code"], row["effect"], row["effect_input"]) == ("effect_unknown", "mail", found.ref.input_hash)
    assert row["actions"] == ("retry answer skip dismiss" if optional else "retry answer dismiss")
    assert h.task_row(job)["spent"] == 0


def test_g5_an_operator_repeats_no_call_of_unknown_outcome(h: Harness) -> None:
    job, _ = in_question(h)
    before = h.snapshot()
    assert h.act(job, "retry", scope=OPERATOR) is Control.OWNERS_ALONE
    assert h.replay(job) is Control.NOT_OFFERED
    assert h.snapshot() == before


def test_g5_a_replay_takes_up_the_rest_and_leaves_the_call_to_the_owner(h: Harness) -> None:
    job = h.admit(a("main", attempts=1), a("one"))
    held = h.take_all()
    h.fail(held["main"])
    h.intend(held["one"])
    second = replaced(h, held["one"])
    h.ask_about(second, met(h.begin(second)))
    assert h.replay(job) is Control.DONE
    assert (h.shows(job), h.effect()["state"]) == ({"main": "queued", "one": "needs_attention"}, "unknown")
    assert len(h.rows_of("audit")) == 1
    assert h.act(job, "retry") is Control.DONE
    assert h.act(job, "retry", attention="1.2", scope=OPERATOR, request="retry None") is Control.REPEATED, "it is settled so"


@pytest.mark.parametrize(("scope", "actor"), [(ANN, None), (OPERATOR, "ann")], ids=["owner", "owner who is an operator"])
def test_t17_a_retry_accepts_a_repeat(h: Harness, scope: Scope, actor: str | None) -> None:
    job, found = in_question(h)
    assert h.act(job, "retry", scope=scope, actor=actor) is Control.DONE
    row = h.effect()
    assert (row["state"], row["outcome"], row["settled_at"]) == ("refused", None, h.now)
    again = met(h.begin(h.take()))
    assert (again.state, again.key) == ("intended", found.key)


@pytest.mark.parametrize(
    ("answer", "state", "outcome"),
    [
        ('{"happened":true,"outcome":{"id":7}}', "confirmed", '{"id":7}'),
        ('{"happened":true}', "confirmed", "null"),
        ('{"happened":true,"outcome":null}', "confirmed", "null"),
        ('{"happened":false}', "refused", None),
    ],
)
def test_t18_an_answer_settles_the_effect(h: Harness, answer: str, state: str, outcome: str | None) -> None:
    job, _ = in_question(h)
    assert h.act(job, "answer", answer=answer) is Control.DONE
    assert (h.effect()["state"], h.effect()["outcome"]) == (state, outcome)
    found = met(h.begin(h.take()))
    assert (found.state, found.outcome) == (("confirmed", outcome) if outcome else ("intended", None))
    assert h.act(job, "answer", attention="1.2", answer=answer) is Control.REPEATED


@pytest.mark.parametrize(
    "answer",
    [
        "null",
        "true",
        '"yes"',
        "[]",
        "{}",
        '{"happened":1}',
        '{"happened":null}',
        '{"happened":true,"more":1}',
        '{"happened":false,"outcome":1}',
    ],
)
def test_t18_an_answer_of_another_shape_writes_nothing(h: Harness, answer: str) -> None:
    job, _ = in_question(h)
    before = h.snapshot()
    assert h.act(job, "answer", answer=answer) is Control.MISANSWERED
    assert h.snapshot() == before


@pytest.mark.parametrize("action", ["skip", "dismiss"])
def test_t19_t20_other_decisions_leave_the_effect_as_it_is(h: Harness, action: str) -> None:
    job, _ = in_question(h, optional=True)
    assert h.act(job, action) is Control.DONE
    assert h.effect()["state"] == "unknown"
    assert [e.state for e in h.recovery(job).effects] == ["unknown"]


@pytest.mark.parametrize("action", ["retry", "answer"])
def test_what_was_confirmed_before_the_owner_decided_stays(h: Harness, action: str) -> None:
    job, found = in_question(h)
    h.settle(found, "confirmed", '"late"')
    assert h.act(job, action, answer='{"happened":false}' if action == "answer" else None) is Control.DONE
    assert met(h.begin(h.take())).outcome == '"late"'


def test_a_repeat_that_the_owner_accepts_does_not_touch_an_intent_under_way(h: Harness) -> None:
    """Two reruns that asked about one effect: the second word comes when the first one's call runs already."""
    job = h.admit()
    first = h.take()
    h.intend(first)
    h.cancel(job)
    h.stop(first)
    jobs = []
    for _ in range(2):
        jobs.append(rerun_of(h, job))
        claimed = h.take()
        h.ask_about(claimed, met(h.begin(claimed)))
    h.act(jobs[0], "retry")
    h.intend(h.take())
    h.act(jobs[1], "retry")
    assert (h.effect()["state"], h.effect()["job_id"]) == ("intended", jobs[0])
    assert met(h.begin(h.take())).state == "unknown"


def test_an_answer_to_another_question_touches_no_effect(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    h.settle(h.intend(claimed), "unknown")
    h.ask(claimed)
    assert h.act(job, "answer", answer='{"happened":true}') is Control.DONE
    assert h.effect()["state"] == "unknown"


def test_answers_touch_the_effect_that_was_asked_about_and_no_other(h: Harness) -> None:
    job = h.admit()
    first = h.take()
    for name in ("mail", "charge"):
        h.intend(first, name)
    second = replaced(h, first)
    found = {name: met(h.begin(second, name)) for name in ("mail", "charge")}
    h.ask_about(second, found["charge"])
    h.act(job, "answer", answer='{"happened":true}')
    assert {e["name"]: e["state"] for e in h.rows("effect", job)} == {"mail": "unknown", "charge": "confirmed"}


# -- what is shown --------------------------------------------------------------------------------------------


def test_the_recovery_view_shows_what_may_have_happened(h: Harness) -> None:
    job = h.admit()
    claimed = h.take()
    for name, state in (("sent", "confirmed"), ("no", "refused"), ("maybe", "unknown")):
        h.advance(1)
        h.settle(h.intend(claimed, name), state, "1" if state == "confirmed" else None)  # type: ignore[arg-type]
    h.advance(1)
    h.intend(claimed, "now")
    shown = [(e.label, e.name, e.state, e.begun_at_ms) for e in h.recovery(job).effects]
    assert shown == [("one", "maybe", "unknown", h.now - 1), ("one", "now", "intended", h.now)]
    h.cancel(job)
    assert [e.name for e in h.recovery(job).effects] == ["maybe", "now"]
    other = h.admit()
    assert h.recovery(other).effects == ()
    again = rerun_of(h, job)
    assert [e.name for e in h.recovery(again).effects] == ["maybe", "now"]


# -- the table ------------------------------------------------------------------------------------------------


def play(h: Harness, state: EffectState | None, event: EffectEvent) -> EffectState | None:
    """Brings an effect into a state, lets the event happen, and gives the state after it."""
    job = h.admit(a("one"), a("two", optional=True))
    first = h.take_all()["one"]
    if state is not None:
        intent = h.intend(first)
        if state != "intended":
            h.settle(intent, state, "1" if state == "confirmed" else None)
    if event == "met_again":
        h.begin(first)
    elif event == "begin":
        h.begin(replaced(h, first))
    elif event in ("met_by_another", "retake"):
        second = replaced(h, first)
        h.advance(TIMEOUT_MS)
        (h.begin if event == "met_by_another" else h.retake)(second)
    elif event in ("confirmed", "refused", "unknown"):
        h.settle(intent, event, "1" if event == "confirmed" else None)
    else:
        h.ask_about(first, intent)
        happened = {"owner_confirms": '{"happened":true}', "owner_refuses": '{"happened":false}', "owner_repeats": None}[event]
        h.act(job, "retry" if happened is None else "answer", answer=happened)
    found: EffectState = h.effect()["state"]
    return found


CASES = [(source, row.event, row.target) for row in EFFECT_TRANSITIONS for source in sorted(row.sources, key=str)]


@pytest.mark.parametrize(("state", "event", "target"), CASES)
def test_each_row_of_the_effect_table(h: Harness, state: EffectState | None, event: EffectEvent, target: EffectState) -> None:
    assert play(h, state, event) == target


REFUSED = [
    (state, event)
    for event in ("confirmed", "refused", "unknown", "owner_repeats", "owner_confirms", "owner_refuses")
    for state in ("intended", "confirmed", "refused", "unknown")
    if not any(state in row.sources and row.event == event for row in EFFECT_TRANSITIONS)
]


@pytest.mark.parametrize(("state", "event"), REFUSED)
def test_what_is_not_in_the_effect_table_leaves_the_row_as_it_is(h: Harness, state: EffectState, event: EffectEvent) -> None:
    assert play(h, state, event) == state
