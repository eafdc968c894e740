-- Cancel, stop and the owner's decisions. All hold the job lock.

-- name: revoke_entries
-- All of the job's entries, with no word about the holder: it waits for a claim in flight.
update {outlast.queue_entry} set revoked = true where tenant = :tenant and job_id = :job_id
returning no

-- name: cancel_tasks
-- Every task that is not final; the fence and attempts that its entry has stay with it.
update {outlast.task} set state = 'cancelled', finished_at = {now},
  fence = coalesce((select e.fence from {outlast.queue_entry} e where e.tenant = {outlast.task}.tenant and e.job_id = {outlast.task}.job_id and e.no = {outlast.task}.no), fence),
  spent = coalesce((select e.spent from {outlast.queue_entry} e where e.tenant = {outlast.task}.tenant and e.job_id = {outlast.task}.job_id and e.no = {outlast.task}.no), spent)
where tenant = :tenant and job_id = :job_id and state in ('blocked', 'open', 'needs_attention')
returning no

-- name: delete_unheld
delete from {outlast.queue_entry} where tenant = :tenant and job_id = :job_id and holder is null
returning no

-- name: close_attention
update {outlast.attention} set resolved_at = {now}, action = 'closed', actor = :actor
where tenant = :tenant and job_id = :job_id and resolved_at is null
returning id

-- name: cancel_job
update {outlast.job} set state = 'cancelled', cancelled_at = {now}, cancelled_by = :actor, outcome = :outcome, finished_at = {now},
  purge_at = {in:retention_ms}, version = version + 1, open = 0, required_open = 0, attention = 0, active_key = null
where tenant = :tenant and id = :job_id and state in ('open', 'needs_attention')
returning version

-- name: stop_entry
-- T16 by the holder: a revoked entry goes.
delete from {outlast.queue_entry} where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder and revoked
returning no, slot_key

-- name: stop_lost_entry
-- T16 by the sweep: the holder's lease has ended.
delete from {outlast.queue_entry} where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and revoked and lease_until <= {now}
returning no, slot_key

-- name: revoked_left
select count(*) from {outlast.queue_entry} where tenant = :tenant and job_id = :job_id and revoked

-- name: bump_version
-- The representation of the job changed though its state did not.
update {outlast.job} set version = version + 1 where tenant = :tenant and id = :job_id returning version

-- name: attention_of
select a.no, a.actions, a.code, cast(a.resolved_at is not null as integer), a.action, a.request_hash, cast(t.required as integer),
  t.label, a.effect, a.effect_input
from {outlast.attention} a
join {outlast.task} t on t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no
where a.tenant = :tenant and a.job_id = :job_id and a.id = :id

-- name: resolve_attention
update {outlast.attention} set resolved_at = {now}, action = :action, actor = :actor, request_hash = :request_hash
where tenant = :tenant and job_id = :job_id and id = :id and resolved_at is null
returning no

-- name: reopen_task
-- T17, T18: the attempts begin anew, the fence goes on.
update {outlast.task} set state = 'open', spent = 0, not_before = null, finished_at = null
where tenant = :tenant and job_id = :job_id and no = :no and state = 'needs_attention'
returning no

-- name: skip_task
update {outlast.task} set state = 'skipped', finished_at = {now}
where tenant = :tenant and job_id = :job_id and no = :no and state = 'needs_attention' and not required
returning no

-- name: store_answer
insert into {outlast.step} (tenant, job_id, no, name, fence, body)
select tenant, job_id, no, :name, fence, :body from {outlast.task} where tenant = :tenant and job_id = :job_id and no = :no
on conflict do nothing

-- name: windows_over
select a.tenant, {str:a.job_id}, a.id,
  coalesce((select j.correlation_id from {outlast.job} j where j.tenant = a.tenant and j.id = a.job_id), '')
from {outlast.attention} a
where a.resolved_at is null and a.until <= {now_once} and (a.tenant, a.job_id, a.id) > (:tenant, {uuid:job_id}, :id)
order by a.tenant, a.job_id, a.id limit :limit

-- name: window_of
select a.no, cast(t.required as integer)
from {outlast.attention} a
join {outlast.task} t on t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no
where a.tenant = :tenant and a.job_id = :job_id and a.id = :id and a.resolved_at is null and a.until <= {now}
