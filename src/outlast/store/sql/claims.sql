-- Taking, holding and letting go of an entry. Each writes one entry and what hangs on it, never task or job.

-- name: wake
-- Entries whose time has come become runnable (T4). Rows that another wakes are skipped.
update {outlast.queue_entry} set ready_at = due_at
where ({key}) in (
  select {key} from {outlast.queue_entry}
  where ready_at is null and due_at is not null and due_at <= {now_once}
  order by due_at limit :limit {skip_locked})
  and ready_at is null
returning queue

-- name: next_due
-- Milliseconds until the next entry falls due; no row where none waits.
select {ms:due_at} - {now_ms} from {outlast.queue_entry}
where ready_at is null and due_at is not null order by due_at limit 1

-- name: claimed_rows
-- What a holder's claim statement took, with all that an attempt needs.
select e.tenant, {str:e.job_id}, e.no, e.fence, e.spent, e.handler, e.queue, e.deadline_ms, {ms:e.deadline_at},
  t.label, {str:t.item}, {str:i.input}, {str:i.caller}, j.owner, j.correlation_id, e.slot_key
from (
  select * from {outlast.queue_entry} where queue = :queue and ready_at is not null and slot_key is null and holder = :holder and not revoked
  union all
  select * from {outlast.queue_entry} where queue = :queue and ready_at is not null and slot_key is not null and holder = :holder and not revoked) e
join {outlast.task} t on t.tenant = e.tenant and t.job_id = e.job_id and t.no = e.no
join {outlast.job_input} i on i.tenant = e.tenant and i.job_id = e.job_id
join {outlast.job} j on j.tenant = e.tenant and j.id = e.job_id

-- name: release_entry
-- Retry, snooze and hand-back (T8, T12, T13): the lease ends, the entry waits or is ready. Nothing returned: read `entry`.
update {outlast.queue_entry} set holder = null, lease_until = null, deadline_at = null,
  spent = spent + :consumed,
  first_failed_at = case when :consumed = 0 then first_failed_at else coalesce(first_failed_at, {now}) end,
  ready_at = case when {bigint:delay_ms} is null then {now} end,
  due_at = {in:delay_ms},
  code = coalesce({textarg:code}, code)
where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
  and lease_until > {now} and not revoked
returning spent, {ms:claimed_at}, queue, slot_key

-- name: release_lost
-- T14 with budget left: the sweep's own guard, on the fence that it read.
update {outlast.queue_entry} set holder = null, lease_until = null, deadline_at = null, spent = spent + 1,
  first_failed_at = coalesce(first_failed_at, {now}), ready_at = null, due_at = {in:delay_ms}, code = :code
where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence
  and holder is not null and lease_until <= {now} and not revoked
returning spent, {ms:claimed_at}, queue, slot_key

-- name: insert_attempt
-- One row for each claim that failed, was lost or asked; a repeat changes nothing.
insert into {outlast.attempt} (tenant, job_id, no, fence, number, worker, started_at, ended_at, code, detail)
values (:tenant, :job_id, :no, :fence, :number, :worker, {at:started_at}, {now}, :code, :detail)
on conflict do nothing

-- name: entry
-- What decides about a held task: entry, policy, and the store's clock.
select e.fence, e.holder, e.spent, {ms:e.first_failed_at}, cast(e.revoked as integer), cast(coalesce(e.lease_until > {now}, false) as integer),
  {ms:e.lease_until}, {ms:e.deadline_at}, {now_ms}, t.max_attempts, t.base_ms, t.cap_ms, t.window_ms, cast(t.required as integer), e.code
from {outlast.queue_entry} e
join {outlast.task} t on t.tenant = e.tenant and t.job_id = e.job_id and t.no = e.no
where e.tenant = :tenant and e.job_id = :job_id and e.no = :no

-- name: attempt_of
select code from {outlast.attempt} where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence

-- name: task_end
-- How the task stands once its entry is gone.
select state, fence, spent from {outlast.task} where tenant = :tenant and job_id = :job_id and no = :no

-- name: ended_leases
-- Candidates of the sweep, from a start position on, so that rows which cannot be handled do not hide the rest.
select tenant, {str:job_id}, no, fence, cast(revoked as integer),
  coalesce((select j.correlation_id from {outlast.job} j where j.tenant = e.tenant and j.id = e.job_id), '')
from {outlast.queue_entry} e
where holder is not null and lease_until <= {now_once} and ({key}) > (:tenant, {uuid:job_id}, :no)
order by tenant, job_id, no limit :limit

-- name: queue_depths
select queue, handler, count(*), sum(case when holder is null then 1 else 0 end),
  {now_ms} - min(case when holder is null then {ms:ready_at} end)
from {outlast.queue_entry} where ready_at is not null group by queue, handler order by queue, handler

-- name: queue_waiting
select queue, handler, count(*) from {outlast.queue_entry} where ready_at is null group by queue, handler order by queue, handler

-- name: ready_queues
-- The queues in which something is runnable or held: one probe of each claim index, however much waits in them.
with recursive q(name) as (
  select min(queue) from {outlast.queue_entry} where ready_at is not null and slot_key is null
  union all
  select (select min(queue) from {outlast.queue_entry} where ready_at is not null and slot_key is null and queue > q.name)
  from q where q.name is not null),
k(name) as (
  select min(queue) from {outlast.queue_entry} where ready_at is not null and slot_key is not null
  union all
  select (select min(queue) from {outlast.queue_entry} where ready_at is not null and slot_key is not null and queue > k.name)
  from k where k.name is not null)
select name from q where name is not null union select name from k where name is not null
