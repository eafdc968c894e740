-- The parts of an admission, one row a statement; PostgreSQL overrides `admit` with one statement for a batch.

-- name: admit_submission
-- Nothing returned: the key is taken, read `submission_of`.
insert into {outlast.submission} (tenant, owner, key, fingerprint, job_id)
values (:tenant, :owner, :key, :fingerprint, :job_id)
on conflict do nothing
returning {str:job_id}

-- name: admit_job
-- Nothing returned: this very job was admitted before (its id is made once, before the insert), or another has its unique key.
insert into {outlast.job} (tenant, id, owner, kind, schema_version, label, state, version, total, open, required_open, attention,
  problems, usable_marked, accepted_at, rerun_of, effect_root, correlation_id, traceparent, active_scope, active_key,
  target_ref, target_version)
values (:tenant, :job_id, :owner, :kind, :schema_version, :label, 'open', 1, :total, :total, :required, 0,
  0, :usable_marked, {now}, :rerun_of, :effect_root, :correlation_id, :traceparent, :scope, :active,
  :target_ref, :target_version)
on conflict do nothing
returning {str:id}

-- name: admit_input
insert into {outlast.job_input} (tenant, job_id, input, caller) values (:tenant, :job_id, :input, :caller)

-- name: admit_task
insert into {outlast.task} (tenant, job_id, no, label, handler, queue, priority, required, usable, state, deps_left, fence, spent,
  max_attempts, base_ms, cap_ms, window_ms, deadline_ms, item, slot_key, slot_limit, not_before)
values (:tenant, :job_id, :no, :label, :handler, :queue, :priority, :required, :usable,
  case when :deps = 0 then 'open' else 'blocked' end, :deps, 0, 0,
  :max_attempts, :base_ms, :cap_ms, :window_ms, :deadline_ms, :item, :slot_key, :slot_limit, {at:not_before})

-- name: admit_edge
insert into {outlast.edge} (tenant, job_id, parent, child, soft) values (:tenant, :job_id, :parent, :child, :soft)

-- name: open_entries
-- The entries of those open tasks of a job that have none yet (T1, T2, T17, T18): runnable now, or when they are due.
insert into {outlast.queue_entry} (tenant, job_id, no, queue, priority, handler, ready_at, due_at, fence, spent, deadline_ms, revoked,
  slot_key, slot_limit)
select tenant, job_id, no, queue, priority, handler,
  case when not_before is null or not_before <= {now} then {now} end,
  case when not_before > {now} then not_before end,
  fence, spent, deadline_ms, false, slot_key, slot_limit
from {outlast.task} t
where tenant = :tenant and job_id = :job_id and state = 'open'
  and not exists (select 1 from {outlast.queue_entry} e where e.tenant = t.tenant and e.job_id = t.job_id and e.no = t.no)
returning queue

-- name: submission_of
-- The job that a key stands for; of one that was purged, how it ended, and whether its horizon is over.
select key, fingerprint, {str:job_id}, final_state, outcome, {ms:finished_at}, {ms:purged_at},
  cast(coalesce(expires_at <= {now}, false) as integer)
from {outlast.submission} where tenant = :tenant and owner = :owner and key = :key

-- name: job_stands
-- Whether this very job was admitted.
select 1 from {outlast.job} where tenant = :tenant and id = :job_id

-- name: active_job
-- The job that has a unique key now.
select {str:id}, owner from {outlast.job} where tenant = :tenant and active_scope = :scope and active_key = :active

-- name: point_submission
-- The key that was just taken stands for a job that was there already.
update {outlast.submission} set job_id = {uuid:job_id} where tenant = :tenant and owner = :owner and key = :key
returning key

-- name: drop_submission
-- The key that was just taken is free again: the request was refused.
delete from {outlast.submission} where tenant = :tenant and owner = :owner and key = :key and job_id = :job_id
returning key

-- name: drop_entries
-- Of jobs that were admitted in this very transaction.
delete from {outlast.queue_entry} where tenant = :tenant and job_id {among_ids:ids}

-- name: drop_pointed
-- The key that was taken in this very transaction, and stood for another's job.
delete from {outlast.submission} where tenant = :tenant and owner = :owner and key = :key
returning key
