"""One-line changes that take a guard away, each with the tests that have to notice.

A mutation names a file of the package, a text in it from which on to look, the text that is replaced and what takes its place. Whatever is
not found exactly once is an error, so that the list cannot rot. Its tests are the narrowest that notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one line. within: where its part of the file begins; tests: arguments of pytest."""

    name: str
    file: str
    within: str
    old: str
    new: str
    tests: tuple[str, ...]


_CONTRACT = "tests/contract/test_"
_INTERLEAVE = "tests/interleave/test_"
_FAULTS = "tests/faults/test_"
_GUARDS = f"{_CONTRACT}guards.py::test_guard_that_does_not_hold_writes_nothing"
_CLAIMS = "store/sql/claims.sql"
_COMPLETION = "store/sql/completion.sql"
_CONTROL = "store/sql/control.sql"
_EFFECTS = "store/sql/effects.sql"
_STEPS = "store/sql/steps.sql"
_STATUS = "store/sql/status.sql"
_ADMISSION = "store/sql/admission.sql"
_RETENTION = "store/sql/retention.sql"
_TARGETS = "store/sql/targets.sql"
_SQLITE = "store/sqlite/overrides.sql"
_POSTGRES = "store/postgres/overrides.sql"
_LEASE = "  and lease_until > {now} and not revoked"


def _lite(file: str, *tests: str) -> tuple[str, ...]:
    """Contract tests on SQLite alone."""
    return tuple(f"{_CONTRACT}{file}.py::test_{test}[sqlite]" for test in tests)


def _pg(file: str, *tests: str) -> tuple[str, ...]:
    """Contract tests on PostgreSQL alone."""
    return tuple(f"{_CONTRACT}{file}.py::test_{test}[postgres-sync]" for test in tests)


MUTATIONS: Final = (
    # -- claims, leases, fences
    Mutation(
        "a claim does not raise the fence",
        _SQLITE,
        "-- name: claim_one",
        "set fence = fence + 1",
        "set fence = fence + 0",
        _lite("claims", "t5_the_fence_goes_on_over_every_claim"),
    ),
    Mutation(
        "a claim does not raise the fence (PostgreSQL)",
        _POSTGRES,
        "-- name: claim\n",
        "set fence = e.fence + 1",
        "set fence = e.fence + 0",
        _pg("claims", "t5_the_fence_goes_on_over_every_claim"),
    ),
    Mutation(
        "a claim takes what is held",
        _SQLITE,
        "-- name: claim_candidates",
        "and holder is null ",
        "",
        _lite("claims", "t5_what_is_held_is_not_claimed_again_not_even_when_its_lease_has_ended"),
    ),
    Mutation(
        "a claim ignores a pause",
        _SQLITE,
        "-- name: claim_candidates",
        "q.paused_at is not null",
        "false",
        _lite("claims", "t5_nothing_of_a_paused_queue"),
    ),
    Mutation(
        "a claim ignores a pause (PostgreSQL)",
        _POSTGRES,
        "-- name: claim\n",
        "q.paused_at is not null",
        "false",
        _pg("claims", "t5_nothing_of_a_paused_queue"),
    ),
    Mutation(
        "a claim takes tasks of unknown handlers",
        _SQLITE,
        "-- name: claim_candidates",
        "handler in (select value from json_each(:handlers))",
        "true",
        _lite("claims", "t5_only_known_handlers"),
    ),
    Mutation(
        "a claim waits for rows that others have: no SKIP LOCKED",
        _POSTGRES,
        "-- name: claim\n",
        "for no key update of e skip locked",
        "for no key update of e",
        (f"{_INTERLEAVE}guards.py::test_a_claim_waits_for_nobody",),
    ),
    Mutation(
        "a lease passes the attempt's deadline",
        _SQLITE,
        "-- name: claim_one",
        "min(:lease_ms, deadline_ms)",
        ":lease_ms",
        _lite("claims", "t5_a_lease_never_passes_the_deadline"),
    ),
    Mutation(
        "a renewal passes the attempt's deadline",
        _SQLITE,
        "-- name: renew_one",
        "min({now} + :lease_ms, deadline_at)",
        "{now} + :lease_ms",
        _lite("claims", "t6_a_renewal_never_passes_the_deadline"),
    ),
    Mutation(
        "a renewal without a lease check",
        _SQLITE,
        "-- name: renew_one",
        _LEASE,
        "  and not revoked",
        _lite("claims", "t6_a_renewal_at_the_very_instant_of_the_end_is_too_late"),
    ),
    Mutation(
        "a renewal without a fence check",
        _SQLITE,
        "-- name: renew_one",
        "and fence = :fence and",
        "and",
        (f"{_CONTRACT}claims.py::test_t6_each_word_of_a_claim_stands_in_the_guard_of_its_renewal",),
    ),
    Mutation(
        "a renewal waits for rows that others have: no SKIP LOCKED",
        _POSTGRES,
        "-- name: renew\n",
        "for no key update skip locked",
        "for no key update",
        (f"{_INTERLEAVE}guards.py::test_a_renewal_waits_for_nobody",),
    ),
    Mutation(
        "what waits is woken before its time",
        _CLAIMS,
        "-- name: wake",
        "due_at <= {now_once}",
        "true",
        _lite("claims", "t4_wakes_at_the_very_instant_and_not_before"),
    ),
    Mutation(
        "a retry without a revoked check",
        _CLAIMS,
        "-- name: release_entry",
        _LEASE,
        "  and lease_until > {now}",
        _lite("cancel", "t15_nothing_is_written_after_it"),
    ),
    Mutation(
        "a hand-back uses an attempt",
        "store/sqlite/subprograms.py",
        "def release(",
        '"consumed": 0',
        '"consumed": 1',
        (f"{_CONTRACT}claims.py::test_t13_a_hand_back_is_ready_at_once_and_uses_no_attempt[sqlite-0]",),
    ),
    Mutation(
        "the clock of the transaction decides: now() for clock_timestamp()",
        "store/postgres/dialect.py",
        "SCHEMA =",
        "clock_timestamp()",
        "now()",
        (f"{_INTERLEAVE}guards.py::test_the_clock_goes_on_within_a_transaction",),
    ),
    # -- completion
    Mutation("an end without a fence check", _COMPLETION, "-- name: end_entry", "and fence = :fence and", "and", (_GUARDS,)),
    Mutation(
        "an end without a lease check",
        _COMPLETION,
        "-- name: end_entry",
        _LEASE,
        "  and not revoked",
        _lite("finish", "t7_a_finish_at_the_very_instant_of_the_leases_end_is_refused"),
    ),
    Mutation(
        "an end without a revoked check",
        _COMPLETION,
        "-- name: end_entry",
        _LEASE,
        "  and lease_until > {now}",
        _lite("finish", "t7_a_finish_after_a_cancel_writes_nothing"),
    ),
    Mutation(
        "a finish does not lock its job",
        _POSTGRES,
        "-- name: finish",
        " for no key update) j,",
        ") j,",
        (f"{_INTERLEAVE}attempt_with_owner.py::test_every_order[grand: finish 0 x cancel]",),
    ),
    Mutation(
        "counters that are not grouped by job",
        _POSTGRES,
        "-- name: finish",
        "group by 1, 2 order by 1, 2",
        "group by 1, 2, no order by 1, 2",
        _pg("finish", "t2_a_join_of_a_hundred_parts_is_opened_once", "t7_j2_the_version_counts_once_for_all_results_of_a_batch"),
    ),
    Mutation(
        "edges that are not counted by child",
        _POSTGRES,
        "-- name: finish",
        "x.child, count(*) as n",
        "x.child, 1 as n",
        _pg("finish", "t2_both_parents_in_one_batch_open_the_child_once"),
    ),
    Mutation(
        "a counter that is counted anew by a sub-query",
        _POSTGRES,
        "-- name: finish",
        "set open = j.open - c.n,",
        "set open = (select count(*) from {outlast.queue_entry} x where x.tenant = j.tenant and x.job_id = j.id) - c.n,",
        (f"{_INTERLEAVE}attempt_with_attempt.py::test_every_order[grand: finish 0 x finish 1]",),
    ),
    Mutation(
        "two transactions in the place of one",
        "store/programs/completion.py",
        "@operation(Access.TRANSACTION)\ndef give_up(",
        "Access.TRANSACTION",
        "Access.STATEMENT",
        (f"{_FAULTS}every_statement.py::test_i5_a_fault_that_is_not_retried_leaves_all_or_nothing[postgres-sync-give up required]",),
    ),
    Mutation(
        "usable is written anew",
        _COMPLETION,
        "-- name: update_job",
        "usable_at = case when usable_at is not null then usable_at",
        "usable_at = case when usable_at is not null then {now}",
        _lite("usable", "usable_is_written_once"),
    ),
    Mutation(
        "a failed parent opens what needs it",
        _COMPLETION,
        "-- name: satisfy_children",
        "(soft or :hard_too)",
        "true",
        (f"{_CONTRACT}guards.py::test_guard_of_an_edge_lets_each_end_through_where_it_belongs",),
    ),
    Mutation(
        "an end leaves the unique key taken",
        _COMPLETION,
        "-- name: update_job",
        "active_key = case when open + :d_open > 0 then active_key end",
        "active_key = active_key",
        (f"{_CONTRACT}unique.py::test_j2_to_j7_every_end_frees_the_key[sqlite-existing-finish]",),
    ),
    Mutation(
        "a stale result is told that it was accepted",
        "store/programs/verdicts.py",
        "def refused(",
        "state in ended_as and fence == ref.fence",
        "state in ended_as",
        (f"{_CONTRACT}verdicts.py",),
    ),
    # -- the sweep
    Mutation("a sweep without a fence check", _CLAIMS, "-- name: release_lost", "and fence = :fence\n", "\n", (_GUARDS,)),
    Mutation(
        "a sweep takes leases that have not ended",
        _CLAIMS,
        "-- name: release_lost",
        "lease_until <= {now}",
        "true",
        (_GUARDS,),
    ),
    Mutation(
        "a loss uses no attempt",
        _CLAIMS,
        "-- name: release_lost",
        "spent = spent + 1",
        "spent = spent",
        _lite("sweep", "t14_a_task_that_kills_its_worker_each_time_ends_in_need_of_attention"),
    ),
    # -- cancel and the owner
    Mutation(
        "a cancel revokes only what is held",
        _CONTROL,
        "-- name: revoke_entries",
        "where tenant = :tenant and job_id = :job_id",
        "where tenant = :tenant and job_id = :job_id and holder is not null",
        (f"{_INTERLEAVE}entry_with_owner.py::test_every_order[grand: claim 10 x cancel]",),
    ),
    Mutation(
        "a cancel deletes what is held",
        _CONTROL,
        "-- name: delete_unheld",
        "and holder is null",
        "",
        _lite("guards", "guard_of_a_cancel_leaves_what_is_held"),
    ),
    Mutation(
        "a cancel of any version",
        "store/programs/control.py",
        "def cancel(",
        "version is not None and version != stands_at",
        "False",
        _lite("cancel", "j5_a_version_that_is_not_the_present_one_is_refused"),
    ),
    Mutation(
        "a settled question is decided again",
        _CONTROL,
        "-- name: resolve_attention",
        "and id = :id and resolved_at is null",
        "and id = :id",
        (f"{_CONTRACT}guards.py::test_guard_of_a_question_lets_one_decision_through",),
    ),
    Mutation(
        "an owner's retry lowers the fence",
        _CONTROL,
        "-- name: reopen_task",
        "spent = 0, not_before",
        "spent = 0, fence = 0, not_before",
        _lite("attention", "t17_j4_a_retry_begins_the_attempts_anew_and_the_fence_goes_on"),
    ),
    Mutation(
        "an operator lets a call of unknown outcome happen again",
        "store/programs/control.py",
        "def act(",
        "name is not None and not owns(locked[0][3], actor)",
        "False",
        _lite("effects", "g5_an_operator_repeats_no_call_of_unknown_outcome"),
    ),
    # -- steps and effects
    Mutation(
        "a step without a revoked check",
        _STEPS,
        "-- name: store_step",
        "    and lease_until > {now} and not revoked",
        "    and lease_until > {now}",
        _lite("cancel", "t15_nothing_is_written_after_it"),
    ),
    Mutation(
        "a step whose last write wins",
        _STEPS,
        "-- name: store_step",
        "on conflict do nothing",
        "on conflict (tenant, job_id, no, name) do update set body = excluded.body",
        _lite("steps", "step_again_gives_what_was_stored_first"),
    ),
    Mutation(
        "an effect begins after its lease",
        _EFFECTS,
        "-- name: effect_place",
        "    and lease_until > {now} and not revoked",
        "    and not revoked",
        _lite("effects", "begin_at_the_very_instant_of_the_leases_end_is_refused"),
    ),
    Mutation(
        "an effect leaves a trace only after its call",
        _EFFECTS,
        "-- name: insert_effect",
        "'intended'",
        "'refused'",
        _lite("effects", "begin_of_what_is_new_commits_the_intent_with_its_fence"),
    ),
    Mutation(
        "a report about whatever intent stands",
        _EFFECTS,
        "-- name: settle_effect",
        "or (job_id",
        "or true or (job_id",
        (f"{_CONTRACT}effects.py::test_that_an_earlier_call_did_not_happen_says_nothing_of_a_later_one[sqlite-refused]",),
    ),
    Mutation(
        "the last report about an effect wins",
        _EFFECTS,
        "-- name: settle_effect",
        "  and state in ('intended', 'unknown')",
        "  and true",
        (f"{_CONTRACT}effects.py::test_the_first_report_wins_and_comes_back[sqlite-confirmed-refused]",),
    ),
    Mutation(
        "an owner's word touches an intent that is under way",
        _EFFECTS,
        "-- name: judge_effect",
        "state = 'unknown' or (",
        "state in ('unknown', 'intended') or (",
        _lite("effects", "a_repeat_that_the_owner_accepts_does_not_touch_an_intent_under_way"),
    ),
    Mutation(
        "a replacement repeats a call that may still be under way",
        "store/programs/effects.py",
        "def _meet(",
        "repeat=repeat and wait_ms == 0",
        "repeat=repeat",
        _lite("effects", "retake_waits_for_the_call_that_may_still_run"),
    ),
    Mutation(
        "a call begins however late",
        "worker/effects.py",
        "def _call(",
        "late > wanted.timeout / 2 or left <= 0",
        "False",
        ("tests/worker/test_effect_times.py",),
    ),
    Mutation(
        "a repeat that was not made settles what was in doubt",
        "worker/effects.py",
        "def _call(",
        '"unknown" if doubted else "refused"',
        '"refused"',
        ("tests/worker/test_effect_times.py",),
    ),
    # -- retries
    Mutation(
        "no jitter",
        "domain/retry.py",
        "def delay_ms(",
        "min(ceiling, int(min(jitter, 1.0) * (ceiling + 1)))",
        "ceiling",
        ("tests/unit/domain/test_retry.py",),
    ),
    Mutation(
        "no cap",
        "domain/retry.py",
        "def delay_ms(",
        "min(policy_cap_ms, policy_base_ms << doublings)",
        "policy_base_ms << doublings",
        ("tests/unit/domain/test_retry.py",),
    ),
    Mutation(
        "one attempt more than allowed",
        "domain/retry.py",
        "def decide(",
        "spent + 1 >= max_attempts",
        "spent >= max_attempts",
        ("tests/unit/domain/test_retry.py",),
    ),
    Mutation(
        "a retry after the window",
        "domain/retry.py",
        "def decide(",
        " or left <= 0",
        "",
        ("tests/unit/domain/test_retry.py",),
    ),
    Mutation(
        "Retry-After is not heard",
        "domain/retry.py",
        "def decide(",
        "max(wait, delay_ms(spent, base_ms, cap_ms, jitter))",
        "delay_ms(spent, base_ms, cap_ms, jitter)",
        ("tests/unit/domain/test_retry.py",),
    ),
    # -- admission
    Mutation(
        "the same key for another request",
        "store/programs/admission.py",
        "def _winner(",
        "not same_request(fingerprint, job.fingerprint)",
        "False",
        _lite("admission", "key_another_request_is_refused_and_writes_nothing"),
    ),
    Mutation(
        "the target is not in the fingerprint",
        "domain/requests.py",
        "def _fingerprint(",
        "if target is not None:",
        "if False:",
        ("tests/worker/test_attach.py::test_the_target_is_part_of_the_request_and_of_lists",),
    ),
    Mutation(
        "the unique key is not in the fingerprint",
        "domain/requests.py",
        "def _fingerprint(",
        "if unique is not None:",
        "if False:",
        ("tests/unit/client/test_calls.py::test_prepare_fingerprints_the_request_and_nothing_else",),
    ),
    Mutation(
        "a key answers for ever",
        "store/programs/admission.py",
        "def _winner(",
        "rows and rows[0][7]",
        "False",
        (f"{_CONTRACT}retention.py::test_b22_after_the_horizon_there_is_a_new_job[sqlite-single]",),
    ),
    Mutation(
        "unique keys of all scopes are one",
        _ADMISSION,
        "-- name: active_job",
        "and active_scope = :scope ",
        "",
        (f"{_CONTRACT}unique.py::test_each_scope_gives_its_own_active_job",),
    ),
    Mutation(
        "one more than the quota",
        "store/programs/quotas.py",
        "def take(",
        'Statement("quota_open", place))[0][0] > quota',
        'Statement("quota_open", place))[0][0] > quota + 1',
        (f"{_CONTRACT}quotas.py::test_j1_as_many_as_the_quota_and_no_more",),
    ),
    # -- slots of concurrency keys
    Mutation(
        "a slot is not freed",
        "store/sqlite/subprograms.py",
        "def release(",
        "yield from _free(params, gone)",
        "pass",
        (f"{_CONTRACT}limits.py::test_a_slot_ends_with_its_lease_once",),
    ),
    Mutation(
        "a slot is not freed (PostgreSQL)",
        "store/postgres/dialect.py",
        "def _freed(",
        "where e.slot_key is not null and",
        "where false and",
        (f"{_CONTRACT}limits.py::test_a_slot_ends_with_its_lease_once",),
    ),
    Mutation(
        "a claim takes slots that are taken",
        _SQLITE,
        "-- name: free_slots",
        "s.job_id is null",
        "true",
        (f"{_CONTRACT}limits.py::test_c8_no_more_than_its_slots_however_it_is_claimed[sqlite-2]",),
    ),
    Mutation(
        "a key does not rest",
        _SQLITE,
        "-- name: free_slots",
        "p.not_before > {now}",
        "false",
        _lite("limits", "a_key_that_rests_since_it_was_looked_at_gives_no_slot"),
    ),
    # -- what is read for whom
    Mutation(
        "a read without its tenant",
        _STATUS,
        "-- name: job_view",
        "j.tenant = :tenant and ",
        "",
        _lite("status", "scope_of_another_sees_nothing"),
    ),
    Mutation(
        "a list without its owner",
        _STATUS,
        "-- name: job_list\n",
        "and j.owner = :owner ",
        "",
        _lite("status", "list_holds_the_owners_own_jobs_only"),
    ),
    Mutation(
        "a change without its owner",
        _COMPLETION,
        "-- name: lock_job\n",
        " and owner = coalesce({textarg:owner}, owner)",
        "",
        (f"{_CONTRACT}verdicts.py::test_verdict_on_a_job_that_is_anothers_is_not_found",),
    ),
    Mutation(
        "a parked result of anybody's",
        _TARGETS,
        "-- name: parked_output",
        "and j.owner = :owner ",
        "",
        _lite("targets", "a_parked_result_is_its_owners_alone"),
    ),
    # -- targets
    Mutation(
        "an attach after a takeover",
        _TARGETS,
        "-- name: attach_target",
        "and taken_over_at is null ",
        "",
        _lite("targets", "an_attach_after_a_takeover_leaves_everything_as_it_was"),
    ),
    Mutation(
        "an attach to whatever version",
        _TARGETS,
        "-- name: attach_target",
        "and target_version = :expected ",
        "",
        _lite("targets", "an_attach_to_another_version_leaves_everything_as_it_was"),
    ),
    # -- retention
    Mutation(
        "a purge without the tombstone",
        "store/programs/retention.py",
        "def purge(",
        'yield Statement("bury_submissions", {"tenant": tenant, "ids": json.dumps(gone), "horizon_ms": horizon_ms})',
        "del horizon_ms",
        _lite("retention", "j11_a_job_goes_whole_and_its_key_stays"),
    ),
    Mutation(
        "a purge of what somebody holds",
        _RETENTION,
        "-- name: lock_due",
        "e.tenant = j.tenant and e.job_id = j.id)",
        "false)",
        _lite("retention", "j11_a_cancelled_job_stays_until_its_holder_has_stopped"),
    ),
    Mutation(
        "effects go with any job of their root",
        _RETENTION,
        "-- name: delete_effects",
        "and j.rerun_of is not null)",
        "and false)",
        _lite("retention", "i1_effects_go_with_the_last_job_that_has_them"),
    ),
    # -- the stores
    Mutation(
        "a claim of unknown outcome is sent again",
        "store/programs/claims.py",
        "@operation(Access.STATEMENT, repeatable=False)\ndef claim(",
        ", repeatable=False",
        "",
        (f"{_FAULTS}lost_commits.py::test_a_claim_is_not_repeated_and_found_by_its_holder",),
    ),
    Mutation(
        "what one request wrote stays though it was refused",
        "store/sqlite/writer.py",
        "def _one(",
        '"rollback to request"',
        '"release request; savepoint request"',
        (f"{_FAULTS}sqlite_batches.py",),
    ),
    Mutation(
        "a commit on SQLite does not wait for the journal's removal",
        "store/sqlite/connection.py",
        "def _prepare(",
        "synchronous = extra",
        "synchronous = full",
        ("tests/powerloss/test_powerloss.py::test_nothing_acknowledged_is_lost_with_the_power[delete]",),
    ),
    Mutation(
        "commits on PostgreSQL are reported before they are on the disk",
        "store/postgres/session.py",
        "def settings(",
        "= 'off' then",
        "= 'none' then",
        ("tests/connections/test_settings.py::test_settings_that_would_hurt_are_put_right",),
    ),
    Mutation(
        "a worker believes in a lease that is over",
        "worker/hold.py",
        "def lost(",
        'return "replaced" if now >= self.lease_until else None',
        "return None",
        ("tests/worker/test_effect_times.py",),
    ),
    Mutation(
        "a due time is fired by everybody who read it",
        "store/sql/schedules.sql",
        "-- name: lock_due_schedule",
        "and version = :version ",
        "",
        (f"{_CONTRACT}schedules.py::test_of_two_who_read_the_same_due_time_one_fires_it",),
    ),
)
