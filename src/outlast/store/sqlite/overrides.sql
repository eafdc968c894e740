-- The parts that only SQLite's sub-programs use, and what it reads by another index unless it is told.

-- name: claim_candidates
select tenant, job_id, no from {outlast.queue_entry}
where queue = :queue and ready_at is not null and slot_key is null and holder is null and handler in (select value from json_each(:handlers))
  and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
order by priority, ready_at, tenant, job_id, no limit :limit

-- name: claim_one
update {outlast.queue_entry} set fence = fence + 1, holder = :holder, claimed_at = {now}, progress = null,
  lease_until = {now} + min(:lease_ms, deadline_ms), deadline_at = {now} + deadline_ms
where tenant = :tenant and job_id = :job_id and no = :no and holder is null

-- name: claimed_one
select e.tenant, e.job_id, e.no, e.fence, e.spent, e.handler, e.queue, e.deadline_ms, e.deadline_at,
  t.label, t.item, i.input, i.caller, j.owner, j.correlation_id, e.slot_key
from {outlast.queue_entry} e
join {outlast.task} t on t.tenant = e.tenant and t.job_id = e.job_id and t.no = e.no
join {outlast.job_input} i on i.tenant = e.tenant and i.job_id = e.job_id
join {outlast.job} j on j.tenant = e.tenant and j.id = e.job_id
where e.tenant = :tenant and e.job_id = :job_id and e.no = :no

-- name: renew_one
update {outlast.queue_entry} set lease_until = min({now} + :lease_ms, deadline_at), progress = coalesce(:progress, progress)
where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
  and lease_until > {now} and not revoked
returning tenant, job_id, no, fence

-- name: has_children
select 1 from {outlast.edge} where tenant = :tenant and job_id = :job_id and parent = :no limit 1

-- name: keyed_walk
-- The keys of a queue behind a place, one probe of their index each.
with recursive walk(tenant, key) as (
  select * from (select e.tenant, e.slot_key from {outlast.queue_entry} e
    where e.queue = :queue and e.ready_at is not null and e.slot_key is not null and (e.tenant, e.slot_key) > (:tenant, :key)
    order by e.tenant, e.slot_key limit 1)
  union all
  select n.tenant, n.slot_key from walk w join {outlast.queue_entry} n on (n.tenant, n.job_id, n.no) = (
    select * from (
      select * from (select e.tenant, e.job_id, e.no from {outlast.queue_entry} e
        where e.queue = :queue and e.ready_at is not null and e.tenant = w.tenant and e.slot_key > w.key order by e.slot_key limit 1)
      union all
      select * from (select e.tenant, e.job_id, e.no from {outlast.queue_entry} e
        where e.queue = :queue and e.ready_at is not null and e.slot_key is not null and e.tenant > w.tenant
        order by e.tenant, e.slot_key limit 1))
    limit 1))
select tenant, key from walk limit :keys

-- name: keyed_room
-- The limits of the tasks of a key that wait first, and the state of their slots.
select w.slot_limit,
  (select count(*) from {outlast.slot} s where s.tenant = :tenant and s.key = :key and s.n <= w.slot_limit),
  (select count(*) from {outlast.slot} s where s.tenant = :tenant and s.key = :key and s.n <= w.slot_limit and s.job_id is not null),
  (select coalesce(max(s.not_before - {now_ms}), 0) from {outlast.slot} s where s.tenant = :tenant and s.key = :key)
from (
  select slot_limit, row_number() over (order by priority, ready_at, job_id, no) as i from {outlast.queue_entry}
  where queue = :queue and tenant = :tenant and slot_key = :key and ready_at is not null and slot_key is not null
    and holder is null and handler in (select value from json_each(:handlers))
    and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
  order by priority, ready_at, job_id, no limit :window) w
group by w.slot_limit order by min(w.i)

-- name: free_slots
select s.n from {outlast.slot} s
where s.tenant = :tenant and s.key = :key and s.n <= :slot_limit and s.job_id is null
  and not exists (select 1 from {outlast.slot} p where p.tenant = :tenant and p.key = :key and p.not_before > {now})
order by s.n desc limit :take

-- name: keyed_candidates
select tenant, job_id, no from {outlast.queue_entry}
where queue = :queue and tenant = :tenant and slot_key = :key and ready_at is not null and slot_key is not null
  and slot_limit = :slot_limit and holder is null and handler in (select value from json_each(:handlers))
  and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
order by priority, ready_at, job_id, no limit :limit

-- name: take_slot
update {outlast.slot} set job_id = :job_id, no = :no, not_before = null,
  fence = (select e.fence from {outlast.queue_entry} e where e.tenant = :tenant and e.job_id = :job_id and e.no = :no)
where tenant = :tenant and key = :key and n = :n

-- name: take_open_jobs
-- Left to itself it reads all jobs of the tenant by their key.
insert into {outlast.quota_job} (tenant, owner, kind, job_id)
select tenant, owner, kind, id from {outlast.job} indexed by {index.job_owner}
where tenant = :tenant and owner = :owner and kind = :kind and state in ('open', 'needs_attention')
on conflict do nothing

-- name: delete_tasks
delete from {outlast.task} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_attention
delete from {outlast.attention} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_outputs
delete from {outlast.output} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_steps
delete from {outlast.step} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_attempts
delete from {outlast.attempt} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_edges
delete from {outlast.edge} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_inputs
delete from {outlast.job_input} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_counted
delete from {outlast.quota_job} where tenant = :tenant and job_id {among_ids:ids}

-- name: delete_job_rows
delete from {outlast.job} where id {among_ids:ids} and (tenant = :tenant) is true
returning id

-- name: verify_file
-- SQLite's own check: pages, indexes against tables, types. Some builds (3.40 is one) take a column for null in a table whose key is not its
-- first columns: `quota_job`, where `verify_counted` finds such a row, and perhaps tables of the host's. Where that uses up the 100 messages
-- of a check, the other tables are checked alone.
with whole as materialized (select integrity_check as said from pragma_integrity_check),
found as (
  select said from whole
  union
  select c.integrity_check from (
    select name from sqlite_master where type = 'table' and name <> 'outlast_quota_job' and (select count(*) from whole) >= 100) t
  join pragma_integrity_check(t.name) c)
select said from found where said <> 'ok'
  and (substr(said, 1, 14) <> 'NULL value in ' or (substr(said, 15, 8) = 'outlast_' and substr(said, 15, 17) <> 'outlast_quota_job'))
limit :limit

-- name: whereabouts
-- As a statement, not as a table-valued function: that would read the file, and meet its locks.
pragma database_list
