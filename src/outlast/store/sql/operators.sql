-- What operators do, and the record of it.

-- name: open_questions
-- The open questions of a job, with the effect that each may be about. The job is locked.
select a.id, a.no, a.actions, cast(t.required as integer), t.label, a.effect, a.effect_input
from {outlast.attention} a
join {outlast.task} t on t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no
where a.tenant = :tenant and a.job_id = :job_id and a.resolved_at is null
order by a.no

-- name: record_audit
insert into {outlast.audit} (id, tenant, at, actor, action, subject, reason)
values ({uuid:id}, :tenant, {now}, :actor, :action, :subject, :reason)
on conflict do nothing
