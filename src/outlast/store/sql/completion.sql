-- What ends a task, and what that changes in its job. Each program that uses these has locked the job row first.

-- name: lock_job
-- In a statement of its own: only the next statement's snapshot sees what the last holder committed. An owner of null is an operator.
select state, version, {str:effect_root}, owner from {outlast.job}
where tenant = :tenant and id = :job_id and owner = coalesce({textarg:owner}, owner) {for_update}

-- name: lock_job_skip
-- The sweep's: no row where another has it.
select state, version, {str:effect_root}, owner from {outlast.job}
where tenant = :tenant and id = :job_id {skip_locked}

-- name: end_entry
-- The guarded delete of a holder that ends its task. Nothing returned: read `entry`.
delete from {outlast.queue_entry}
where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
  and lease_until > {now} and not revoked
returning spent, {ms:claimed_at}, slot_key

-- name: end_lost_entry
-- The sweep's: the fence that was read, and its lease has ended.
delete from {outlast.queue_entry}
where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence
  and holder is not null and lease_until <= {now} and not revoked
returning spent, {ms:claimed_at}, slot_key

-- name: end_task
-- The task takes its end, or its question, with the fence and the attempts that the entry had.
update {outlast.task} set state = :state, fence = :fence, spent = :spent, code = :code, worker = :worker,
  started_at = coalesce({at:started_at}, started_at),
  finished_at = case when :state = 'needs_attention' then null else {now} end
where tenant = :tenant and job_id = :job_id and no = :no
returning cast(required as integer), cast(usable as integer)

-- name: insert_output
insert into {outlast.output} (tenant, job_id, no, body, ref) values (:tenant, :job_id, :no, :body, :ref)

-- name: satisfy_children
-- The edges from one completed parent (soft and hard), or from one that failed or was skipped (soft only), are satisfied.
update {outlast.task} set deps_left = deps_left - 1, state = case when deps_left = 1 then 'open' else state end
where tenant = :tenant and job_id = :job_id and state = 'blocked' and no in (
  select child from {outlast.edge} where tenant = :tenant and job_id = :job_id and parent = :no and (soft or :hard_too))
returning cast(deps_left = 0 as integer)

-- name: skip_children
-- T3: optional children of an optional parent that failed or was skipped.
update {outlast.task} set state = 'skipped', code = 'parent_failed', finished_at = {now}
where tenant = :tenant and job_id = :job_id and state = 'blocked' and not required and no in (
  select child from {outlast.edge} where tenant = :tenant and job_id = :job_id and parent = :no and not soft)
returning no

-- name: update_job
-- The one write of a job in a program: counters by difference, the state on the new ones, version + 1, finality.
update {outlast.job} set
  open = open + :d_open, required_open = required_open + :d_required_open, attention = attention + :d_attention,
  problems = problems + :d_problems, version = version + 1,
  state = {job_state:cancelled_at|open + :d_open|attention + :d_attention},
  usable_at = case when usable_at is not null then usable_at
    when {bigint:usable_no} is not null then {now}
    when not usable_marked and required_open > 0 and required_open + :d_required_open = 0 then {now} end,
  usable_ref = case when usable_at is null and {bigint:usable_no} is not null then {textarg:usable_ref} else usable_ref end,
  finished_at = case when open + :d_open = 0 then {now} else finished_at end,
  outcome = case when open + :d_open > 0 then outcome when problems + :d_problems = 0 then 'succeeded' else 'succeeded_with_problems' end,
  purge_at = case when open + :d_open = 0 then {in:retention_ms} else purge_at end,
  active_key = case when open + :d_open > 0 then active_key end
where tenant = :tenant and id = :job_id and state in ('open', 'needs_attention')
returning version, state

-- name: raise_attention
insert into {outlast.attention} (tenant, job_id, id, no, code, message, actions, input_schema, raised_at, until, effect, effect_input)
values (:tenant, :job_id, :id, :no, :code, :message, :actions, :input_schema, {now}, {in:window_ms}, :effect, :effect_input)
on conflict do nothing
