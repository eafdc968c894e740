-- Steps and outputs.

-- name: store_step
-- The holder's guard is on its own entry, locked, and the row comes from it; the first write wins.
-- Nothing returned: read `step_fence` and `entry`.
insert into {outlast.step} (tenant, job_id, no, name, fence, body)
select e.tenant, e.job_id, e.no, {textarg:name}, e.fence, {jsonarg:body}
from (select tenant, job_id, no, fence from {outlast.queue_entry}
  where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
    and lease_until > {now} and not revoked {for_update}) e
where true
on conflict do nothing
returning name

-- name: step_names
select name from {outlast.step} where tenant = :tenant and job_id = :job_id and no = :no

-- name: step_body
select fence, {str:body} from {outlast.step} where tenant = :tenant and job_id = :job_id and no = :no and name = :name

-- name: parents_of
-- The parents of a task: place, label, handler, state, and the output where there is one.
select p.no, p.label, p.handler, p.state, {str:o.body}
from {outlast.edge} d
join {outlast.task} p on p.tenant = d.tenant and p.job_id = d.job_id and p.no = d.parent
left join {outlast.output} o on o.tenant = d.tenant and o.job_id = d.job_id and o.no = d.parent
where d.tenant = :tenant and d.job_id = :job_id and d.child = :no
order by p.no

-- name: answers_of
-- The owner's answers to a task's question, the last one first.
select {str:s.body} from {outlast.attention} a
join {outlast.step} s on s.tenant = a.tenant and s.job_id = a.job_id and s.no = a.no and s.name = 'answer/' || a.id
where a.tenant = :tenant and a.job_id = :job_id and a.no = :no and a.code = :code and a.action = 'answer'
order by a.resolved_at desc, a.id desc limit 1
