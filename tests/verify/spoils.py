"""Every rule, broken by hand in a way that breaks no other. `[asks]` stands for the id of the job of that label."""

from __future__ import annotations

NOWHERE = "00000000-0000-7000-8000-000000000001"

_ENDS_SECOND = (  # the optional task of `fresh` ends, for no reason
    "delete from {outlast.queue_entry} where job_id = [fresh] and no = 1",
    "update {outlast.job} set open = open - 1 where label = 'fresh'",
)
_EDGE = "insert into {outlast.edge} (tenant, job_id, parent, child, soft) select tenant, id,"
_OUTPUT = "insert into {outlast.output} (tenant, job_id, no, body) select tenant, job_id,"
_ENTRY = (
    "insert into {outlast.queue_entry} (tenant, job_id, no, queue, priority, handler, ready_at, fence, spent, deadline_ms, revoked) "
    "select tenant, job_id, no, queue, priority, handler, {now}, fence, 0, deadline_ms, false"
)
_ATTEMPT = "insert into {outlast.attempt} (tenant, job_id, no, fence, number, worker, ended_at, code) select tenant, job_id, no,"

_FREED = "update {outlast.slot} set job_id = null, no = null, fence = null"

SPOILS: list[tuple[str, tuple[str, ...]]] = [
    # -- a job
    ("A5 plan", ("update {outlast.job} set total = total + 1 where label = 'fresh'",)),
    ("A5 labels", ("update {outlast.task} set label = 'A' where label = 'B'",)),
    ("A5 input", ("delete from {outlast.job_input} where job_id = [fresh]",)),
    (
        "A5 required",
        (
            "update {outlast.task} set required = false where job_id = [fresh] and no = 0",
            "update {outlast.job} set required_open = 0 where label = 'fresh'",
        ),
    ),
    (
        "A5 required",
        (
            "update {outlast.task} set usable = true where job_id = [fresh] and no = 1",
            "update {outlast.job} set usable_marked = true where label = 'fresh'",
        ),
    ),
    ("A5 marked", ("update {outlast.job} set usable_marked = true where label = 'fresh'",)),
    ("D6 counters", ("update {outlast.job} set open = open + 1 where label = 'fresh'",)),
    ("D6 counters", ("update {outlast.job} set required_open = 0 where label = 'fresh'",)),
    ("D6 counters", ("update {outlast.job} set attention = 0 where label = 'asks'",)),
    ("D6 counters", ("update {outlast.job} set problems = 0 where label = 'done'",)),
    ("D6 state", ("update {outlast.job} set state = 'needs_attention' where label = 'fresh'",)),
    ("D6 state", ("update {outlast.job} set state = 'open' where label = 'asks'",)),
    ("D7 end", ("update {outlast.job} set purge_at = null where label = 'plain'",)),
    ("D7 end", ("update {outlast.job} set finished_at = {now} where label = 'fresh'",)),
    ("D7 outcome", ("update {outlast.job} set outcome = 'succeeded' where label = 'done'",)),
    ("D7 outcome", ("update {outlast.job} set outcome = 'succeeded' where label = 'cancelled'",)),
    ("D7 outcome", ("update {outlast.job} set outcome = 'user' where label = 'fresh'",)),
    ("D7 cancel", ("update {outlast.job} set cancelled_by = null where label = 'cancelled'",)),
    ("E1 tasks", (*_ENDS_SECOND, "update {outlast.task} set state = 'cancelled', finished_at = {now} where job_id = [fresh] and no = 1")),
    (
        "D11 required",
        (
            "update {outlast.task} set state = 'failed', spent = 1 where label = 'F'",
            "delete from {outlast.output} where job_id = [done] and no = 4",
            _ATTEMPT + " fence, 1, 'w', {now}, 'broken' from {outlast.task} where label = 'F'",
        ),
    ),
    ("D8 usable", ("update {outlast.job} set usable_at = null where label = 'plain'",)),
    ("D8 usable", ("update {outlast.job} set usable_at = {now} where label = 'fresh'",)),
    ("D8 ref", ("update {outlast.job} set usable_ref = 'another' where label = 'done'",)),
    ("D8 ref", ("update {outlast.job} set usable_ref = 'another' where label = 'plain'",)),
    ("D10 version", ("update {outlast.job} set version = 5 where label = 'fresh'",)),
    ("D10 version", ("update {outlast.job} set version = 1 where label = 'done'",)),
    ("A3 unique", ("update {outlast.job} set active_scope = 's', active_key = 'k' where label = 'plain'",)),
    ("A3 unique", ("update {outlast.job} set active_scope = null where label = 'unique'",)),
    ("J10 root", (f"update {{outlast.job}} set effect_root = '{NOWHERE}' where label = 'fresh'",)),
    ("E6 target", ("update {outlast.job} set target_version = '1' where label = 'fresh'",)),
    ("E6 target", ("update {outlast.job} set target_version = null where label = 'targets'",)),
    ("E6 target", ("update {outlast.output} set parked = true where job_id = [plain]",)),
    # -- its tasks
    (
        "D6 word",
        (
            "update {outlast.task} set state = 'lost' where job_id = [fresh] and no = 1",
            "delete from {outlast.queue_entry} where job_id = [fresh] and no = 1",
        ),
    ),
    ("D3 output", ("delete from {outlast.output} where job_id = [plain]",)),
    (
        "D3 output",
        (_OUTPUT + " no, '1' from {outlast.task} where label = 'first'",),
    ),
    ("D6 finished", ("update {outlast.task} set finished_at = null where job_id = [plain]",)),
    ("D2 worker", ("update {outlast.task} set worker = null where job_id = [plain]",)),
    ("D2 worker", ("update {outlast.task} set started_at = null where job_id = [plain]",)),
    ("F1 attempts", ("update {outlast.task} set max_attempts = 0 where label = 'B'",)),
    ("C2 steps", ("update {outlast.step} set fence = 9",)),
    (
        "I1 task",
        (_OUTPUT + " 99, '1' from {outlast.task} where label = 'first'",),
    ),
    ("I1 task", ("update {outlast.step} set no = 99",)),
    (
        "I1 task",
        (
            _ATTEMPT.replace("select tenant, job_id, no,", "select tenant, job_id, 99,")
            + " 1, 1, 'w', {now}, 'broken' from {outlast.task} where label = 'first'",
        ),
    ),
    (
        "I1 task",
        (_ENTRY.replace("select tenant, job_id, no,", "select tenant, job_id, 99,") + " from {outlast.task} where label = 'first'",),
    ),
    # -- their entries
    ("A5 entry", ("delete from {outlast.queue_entry} where job_id = [fresh] and no = 1",)),
    (
        "D5 entry",
        (_ENTRY + " from {outlast.task} where job_id = [plain]",),
    ),
    ("D5 entry", ("update {outlast.queue_entry} set holder = null, lease_until = null, deadline_at = null where job_id = [cancelled]",)),
    ("E1 revoked", ("update {outlast.queue_entry} set revoked = true where job_id = [fresh] and no = 1",)),
    ("E1 revoked", ("update {outlast.queue_entry} set revoked = false where job_id = [cancelled]",)),
    ("A5 copy", ("update {outlast.queue_entry} set priority = 9 where job_id = [fresh] and no = 1",)),
    ("A5 copy", ("update {outlast.queue_entry} set handler = 'kind@2:work' where job_id = [fresh] and no = 1",)),
    ("C1 fence", ("update {outlast.task} set fence = 5 where label = 'retrying'",)),
    ("C1 kept", ("update {outlast.task} set spent = spent + 1 where label = 'stopping'",)),
    ("C1 kept", ("update {outlast.task} set fence = 0 where label = 'stopping'",)),
    ("F1 budget", ("update {outlast.task} set max_attempts = 1 where label = 'retrying'",)),
    ("F1 budget", ("update {outlast.queue_entry} set first_failed_at = null where job_id = [asks] and no = 2",)),
    ("C3 lease", ("update {outlast.queue_entry} set lease_until = null where job_id = [asks] and no = 3",)),
    ("C3 lease", ("update {outlast.queue_entry} set deadline_at = {now} where job_id = [fresh] and no = 0",)),
    ("C4 claim", ("update {outlast.queue_entry} set claimed_at = null where job_id = [asks] and no = 3",)),
    ("C4 claim", ("update {outlast.queue_entry} set ready_at = null where job_id = [asks] and no = 3",)),
    (
        "F5 deadline",
        ("update {outlast.queue_entry} set lease_until = deadline_at, deadline_at = lease_until where job_id = [asks] and no = 3",),
    ),
    ("B1 waits", ("update {outlast.queue_entry} set due_at = null where job_id = [fresh] and no = 1",)),
    # -- concurrency keys
    (
        "A5 key",
        (
            "update {outlast.task} set slot_limit = null where label = 'keyed'",
            "update {outlast.queue_entry} set slot_limit = null where job_id = [limited] and no = 1",
        ),
    ),
    (
        "A5 key",
        (
            "update {outlast.task} set slot_limit = 0 where label = 'keyed'",
            "update {outlast.queue_entry} set slot_limit = 0 where job_id = [limited] and no = 1",
        ),
    ),
    ("A5 copy", ("update {outlast.queue_entry} set slot_limit = 9 where job_id = [limited] and no = 1",)),
    ("A5 copy", ("update {outlast.queue_entry} set slot_key = 'other' where job_id = [limited] and no = 1",)),
    ("C8 held", (_FREED + " where job_id = [limited]",)),
    ("C8 held", (_FREED + " where job_id = [still has it]",)),
    ("C8 held", ("update {outlast.slot} set job_id = [limited], no = 0, fence = 1 where job_id is null",)),
    ("C8 taken", ("update {outlast.slot} set job_id = [asks], no = 3, fence = 1 where job_id is null",)),
    ("C8 taken", ("update {outlast.slot} set job_id = [limited], no = 0, fence = 9 where job_id is null",)),
    ("C8 taken", ("update {outlast.slot} set job_id = [limited], no = 1, fence = 1 where job_id is null",)),
    ("C8 taken", ("update {outlast.slot} set job_id = [limited] where job_id is null",)),
    ("C8 limit", ("update {outlast.slot} set n = 9 where job_id = [limited]",)),
    ("C8 limit", ("update {outlast.slot} set n = 0 where job_id = [still has it]",)),
    # -- the graph
    (
        "I1 edge",
        (_EDGE + " 0, 99, false from {outlast.job} where label = 'done'",),
    ),
    ("A5 soft", ("update {outlast.edge} set soft = true where job_id = [done] and parent = 0",)),
    ("A5 soft", ("update {outlast.edge} set soft = true where job_id = [asks] and parent = 3",)),
    (
        "A5 cycle",
        (_EDGE + " 1, 0, false from {outlast.job} where label = 'done'",),
    ),
    ("D9 deps", ("update {outlast.task} set deps_left = 2 where label = 'waits'",)),
    ("D9 deps", ("update {outlast.task} set deps_left = 1 where label = 'first'",)),
    (
        "D9 blocked",
        (
            "delete from {outlast.edge} where job_id = [asks] and child = 4",
            "update {outlast.task} set deps_left = 0 where label = 'waits'",
        ),
    ),
    ("D9 order", ("update {outlast.task} set fence = 1 where label = 'waits'",)),
    ("D9 order", ("update {outlast.task} set fence = 1 where label = 'never'",)),
    (
        "T3 skipped",
        (
            "update {outlast.task} set state = 'blocked', finished_at = null where label = 'after it'",
            "update {outlast.job} set open = open + 1, problems = problems - 1 where label = 'asks'",
        ),
    ),
    (
        "T3 reason",
        (
            *_ENDS_SECOND,
            "update {outlast.job} set problems = 1, version = 2 where label = 'fresh'",
            "update {outlast.task} set state = 'skipped', finished_at = {now} where job_id = [fresh] and no = 1",
        ),
    ),
    # -- attempts
    ("C1 attempt", ("update {outlast.attempt} set fence = 9 where job_id = [asks] and no = 2",)),
    (
        "D1 once",
        (
            _ATTEMPT + " fence, 1, 'w', {now}, 'broken' from {outlast.task} where job_id = [plain]",
            "update {outlast.task} set spent = 1 where job_id = [plain]",
        ),
    ),
    ("C7 failed", ("update {outlast.task} set fence = 2 where label = 'D'",)),
    (
        "C7 runs",
        (
            _ATTEMPT + " fence, 1, 'w', {now}, 'broken' from {outlast.queue_entry} where job_id = [asks] and no = 3",
            "update {outlast.queue_entry} set spent = 1, first_failed_at = {now} where job_id = [asks] and no = 3",
        ),
    ),
    ("C7 spent", ("update {outlast.attempt} set number = 3 where job_id = [asks] and no = 2",)),
    ("C7 spent", ("update {outlast.task} set spent = 2 where label = 'B'",)),
    ("C7 spent", ("delete from {outlast.attempt} where job_id = [done] and no = 1",)),
    ("F7 attempt", ("update {outlast.attempt} set code = 'Boom: /etc/passwd' where job_id = [asks] and no = 2",)),
    ("F7 attempt", ("update {outlast.attempt} set worker = '' where job_id = [asks] and no = 2",)),
    # -- questions
    (
        "D11 asks",
        ("update {outlast.attention} set resolved_at = {now}, action = 'skip', actor = 'ann' where job_id = [asks] and no = 0",),
    ),
    ("D11 asks", ("update {outlast.attention} set resolved_at = null, action = null, actor = null where job_id = [cancelled]",)),
    ("D11 actions", ("update {outlast.attention} set actions = 'retry retry' where job_id = [asks] and no = 0",)),
    ("D11 actions", ("update {outlast.attention} set actions = '' where job_id = [asks] and no = 0",)),
    ("F1 origin", ("update {outlast.attention} set id = '1.9' where job_id = [asks] and no = 1",)),
    ("F6 resolved", ("update {outlast.attention} set actor = null where job_id = [asks] and no = 5",)),
    ("F6 resolved", ("update {outlast.attention} set action = 'lost' where job_id = [cancelled]",)),
    ("F7 question", ("update {outlast.attention} set code = 'Boom: /etc/passwd' where job_id = [asks] and no = 0",)),
    # -- effects
    ("G1 place", ("update {outlast.task} set label = 'renamed' where label = 'calling'",)),
    (
        "G1 place",
        (f"update {{outlast.job}} set effect_root = '{NOWHERE}', rerun_of = '{NOWHERE}' where label = 'effects'",),
    ),
    ("C2 intent", ("update {outlast.effect} set fence = 9 where name = 'fax'",)),
    ("G1 word", ("update {outlast.effect} set state = 'lost' where name = 'fax'",)),
    ("G4 settled", ("update {outlast.effect} set settled_at = null where name = 'mail'",)),
    ("G4 settled", ("update {outlast.effect} set settled_at = {now} where name = 'fax'",)),
    ("G4 outcome", ("update {outlast.effect} set outcome = '1' where name = 'fax'",)),
    ("G3 key", ("update {outlast.effect} set provider_key = 'another' where name = 'fax'",)),
    # -- what lies beside the jobs
    ("I1 job", ("delete from {outlast.job} where label = 'done'",)),
    ("I1 job", ("delete from {outlast.job} where label = 'asks'",)),
    ("I1 job", ("delete from {outlast.job} where label = 'effects'",)),
    ("I1 job", (f"update {{outlast.submission}} set job_id = '{NOWHERE}' where key = 'k1'",)),
    ("I1 job", (f"update {{outlast.slot}} set job_id = '{NOWHERE}', no = 0, fence = 1 where job_id is null",)),
    ("I1 job", (f"update {{outlast.quota_job}} set job_id = '{NOWHERE}'",)),
    ("I1 job", ("update {outlast.submission} set purged_at = null where key = 'k0'",)),
    ("I1 job", ("update {outlast.job} set effect_root = id where label = 'carries on'",)),
    ("A3 owner", ("update {outlast.submission} set owner = 'bob' where key = 'k1'",)),
    ("A3 tombstone", ("update {outlast.submission} set outcome = null where key = 'k0'",)),
    ("A3 tombstone", ("update {outlast.submission} set finished_at = null where key = 'k0'",)),
    ("A3 tombstone", ("update {outlast.submission} set expires_at = null where key = 'k0'",)),
    ("A3 tombstone", ("update {outlast.submission} set final_state = 'lost' where key = 'k0'",)),
    ("A3 tombstone", ("update {outlast.submission} set final_state = 'cancelled' where key = 'k0'",)),
    *(
        ("A3 tombstone", (f"update {{outlast.submission}} set {column} = {value} where key = 'k1'",))
        for column, value in (
            *((name, "{now}") for name in ("purged_at", "expires_at", "finished_at")),
            ("final_state", "'completed'"),
            ("outcome", "'succeeded'"),
        )
    ),
    ("C8 half", ("update {outlast.slot} set no = 0 where job_id is null",)),
    ("C8 half", ("update {outlast.slot} set fence = 1 where job_id is null",)),
    ("I1 counted", ("update {outlast.quota_job} set owner = 'bob'",)),
    ("I1 counted", ("update {outlast.quota_job} set kind = 'another'",)),
    ("I1 counted", ("delete from {outlast.quota}",)),
    ("I1 quota", ("update {outlast.quota} set counted = false",)),
    ("H3 record", ("update {outlast.audit} set reason = ''",)),
    ("H3 record", ("update {outlast.audit} set actor = ''",)),
    ("H3 record", ("update {outlast.audit} set subject = 'ann'",)),
    ("I1 schedule", ("update {outlast.schedule} set last_due_at = null where name = 'fired'",)),
    ("I1 schedule", ("update {outlast.schedule} set owner = 'bob' where name = 'fired'",)),
    ("I1 schedule", ("update {outlast.schedule} set tenant = 'elsewhere' where name = 'fired'",)),
    ("H3 pause", ("update {outlast.schedule} set paused_by = null where name = 'paused'",)),
    ("H3 pause", ("update {outlast.schedule} set paused_at = null where name = 'paused'",)),
    ("H3 pause", ("update {outlast.schedule} set catch_up = -1 where name = 'fired'",)),
    (
        "A1 id",
        (
            *(f"update {{outlast.{table}}} set job_id = [fresh] where tenant = 'other'" for table in ("job_input", "task", "queue_entry")),
            "update {outlast.job} set id = [fresh], effect_root = [fresh] where tenant = 'other'",
        ),
    ),
    (
        "A3 active",
        ("drop index {dropped}", "update {outlast.job} set active_key = 'u' where label = 'unique too'"),
    ),
]
