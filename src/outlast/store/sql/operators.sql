-- What operators do, and the record of it.

-- name: open_questions
-- The open questions of a job, with the effect that each may be about. The job is locked.
select a.id, a.no, a.actions, cast(t.required as integer), t.label, a.effect, a.effect_input
from {outlast.attention} a
join {outlast.task} t on t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no
where a.tenant = :tenant and a.job_id = :job_id and a.resolved_at is null
order by a.no

-- name: jobs_asking
-- Jobs with an open question that was raised by then, in key order from a position on, for an operator who goes through them.
select a.tenant, {str:a.job_id}
from {outlast.attention} a join {outlast.job} j on j.tenant = a.tenant and j.id = a.job_id
where a.resolved_at is null and (a.tenant, a.job_id) > (:after_tenant, {uuid:after}) and a.raised_at <= {at:until}
  and ({textarg:tenant} is null or a.tenant = {textarg:tenant})
  and ({textarg:kind} is null or j.kind = {textarg:kind})
  and ({textarg:code} is null or a.code = {textarg:code})
group by a.tenant, a.job_id order by a.tenant, a.job_id limit :limit

-- name: record_audit
insert into {outlast.audit} (id, tenant, at, actor, action, subject, reason)
values ({uuid:id}, :tenant, {now}, :actor, :action, :subject, :reason)
on conflict do nothing

-- name: audit_stands
-- Whether this very deed is on record.
select 1 from {outlast.audit} where id = {uuid:id}

-- name: pause_queue
-- Nothing returned: it is paused already, and stays so by whom and since when it was.
insert into {outlast.queue} as q (name, paused_at, paused_by, reason) values (:name, {now}, :actor, :reason)
on conflict (name) do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason
  where q.paused_at is null
returning name

-- name: resume_queue
update {outlast.queue} set paused_at = null, paused_by = null, reason = null where name = :name and paused_at is not null
returning name

-- name: paused_queues
select name, {ms:paused_at}, paused_by, reason from {outlast.queue} where paused_at is not null order by name
