-- The parts that only SQLite's sub-programs use.

-- name: claim_candidates
select tenant, job_id, no from {outlast.queue_entry}
where queue = :queue and ready_at is not null and holder is null and handler in (select value from json_each(:handlers))
  and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
order by priority, ready_at, tenant, job_id, no limit :limit

-- name: claim_one
update {outlast.queue_entry} set fence = fence + 1, holder = :holder, claimed_at = {now}, progress = null,
  lease_until = {now} + min(:lease_ms, deadline_ms), deadline_at = {now} + deadline_ms
where tenant = :tenant and job_id = :job_id and no = :no and holder is null

-- name: claimed_one
select e.tenant, e.job_id, e.no, e.fence, e.spent, e.handler, e.queue, e.deadline_ms, e.deadline_at,
  t.label, t.item, i.input, i.caller, j.owner, j.correlation_id
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

-- name: verify_file
-- SQLite's own check: pages, indexes against tables, types.
select integrity_check from pragma_integrity_check where integrity_check <> 'ok' limit :limit
