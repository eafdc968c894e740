-- What is read for a principal: the tenant and, unless an operator asks, the owner stand in each predicate.

-- name: job_view
{job_select}
where j.tenant = :tenant and j.id = :job_id and j.owner = coalesce({textarg:owner}, j.owner)

-- name: job_list
-- One page, newest first, from a cursor on. A filter that is not wanted is `null is null`, which the planner drops; a coalesce it
-- keeps, expects next to no rows, and then reads and sorts all jobs.
{job_select}
where j.tenant = :tenant and j.owner = :owner and j.id < {uuid:before}
  and (not :active or j.state in ('open', 'needs_attention'))
  and ({textarg:state} is null or j.state = {textarg:state})
  and ({textarg:kind} is null or j.kind = {textarg:kind})
  and ({textarg:target} is null or j.target_ref = {textarg:target})
order by j.id desc limit :limit

-- name: job_list_all
-- The operator's, over all owners of a tenant, or of all tenants.
{job_select}
where j.id < {uuid:before} and ({textarg:tenant} is null or j.tenant = {textarg:tenant})
  and (not :active or j.state in ('open', 'needs_attention'))
  and ({textarg:state} is null or j.state = {textarg:state})
  and ({textarg:kind} is null or j.kind = {textarg:kind})
  and ({textarg:target} is null or j.target_ref = {textarg:target})
order by j.id desc limit :limit

-- name: jobs_watched
-- Several jobs at once, for those who watch them. Each was read in its own scope before, and is compared with it again.
{job_select}
where j.id {among_ids:ids} and j.tenant {among:tenants}

-- name: newest_of_owner
-- What is new with an owner, from the index and a few columns: which rows are worth reading whole.
select {str:j.id}, j.version from {outlast.job} j
where j.tenant = :tenant and j.owner = :owner order by j.id desc limit :limit

-- name: job_owner
-- Whose job an id is, for an operator at the store itself.
select tenant, owner from {outlast.job} where id = :job_id

-- name: task_list
select t.no, t.label, t.state, cast(t.required as integer), cast(t.usable as integer), coalesce(e.spent, t.spent), t.max_attempts,
  coalesce(e.code, t.code), e.progress, cast(e.holder is not null as integer),
  case when e.holder is null and e.ready_at is null then {ms:e.due_at} end, o.ref, coalesce(e.fence, t.fence), t.worker, e.holder,
  case when o.parked then 1 else 0 end
from {outlast.task} t
left join {outlast.queue_entry} e on e.tenant = t.tenant and e.job_id = t.job_id and e.no = t.no
left join {outlast.output} o on o.tenant = t.tenant and o.job_id = t.job_id and o.no = t.no
where t.tenant = :tenant and t.job_id = :job_id
order by t.no

-- name: usable_output
-- The output that made the job usable: of the first task marked so that has one, else of the last task that completed in plan order.
select t.no, t.label, t.handler, {str:o.body} from {outlast.job} j
join {outlast.task} t on t.tenant = j.tenant and t.job_id = j.id
join {outlast.output} o on o.tenant = t.tenant and o.job_id = t.job_id and o.no = t.no
where j.tenant = :tenant and j.id = :job_id and j.usable_at is not null and (t.usable or not j.usable_marked)
order by case when j.usable_marked then t.finished_at end, case when j.usable_marked then t.no end,
  case when t.required then 0 else 1 end, t.finished_at desc, t.no desc limit 1

-- name: outputs_of_job
select t.no, t.label, t.handler, {str:o.body} from {outlast.task} t
left join {outlast.output} o on o.tenant = t.tenant and o.job_id = t.job_id and o.no = t.no
where t.tenant = :tenant and t.job_id = :job_id and (t.no = {bigint:no} or ({bigint:no} is null and t.handler = :handler))
order by t.no

-- name: attempts_of_job
select t.label, a.number, a.fence, {ms:a.started_at}, {ms:a.ended_at}, a.code, a.detail, a.worker, a.no
from {outlast.attempt} a
join {outlast.task} t on t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no
where a.tenant = :tenant and a.job_id = :job_id
order by a.ended_at, a.no, a.fence

-- name: ends_of_job
select t.label, t.spent + 1, t.fence, {ms:t.started_at}, {ms:t.finished_at}, t.worker, t.no
from {outlast.task} t where t.tenant = :tenant and t.job_id = :job_id and t.state = 'completed'
order by t.finished_at, t.no

-- name: attention_of_job
select a.id, t.label, a.code, a.message, a.actions, {ms:a.until}, {str:a.input_schema}
from {outlast.attention} a
join {outlast.task} t on t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no
where a.tenant = :tenant and a.job_id = :job_id and a.resolved_at is null
order by a.raised_at, a.no

-- name: answer_schema
-- What an answer to a question must look like, settled or not: it never changes.
select {str:a.input_schema} from {outlast.attention} a
join {outlast.job} j on j.tenant = a.tenant and j.id = a.job_id
where a.tenant = :tenant and a.job_id = :job_id and a.id = :id and j.owner = coalesce({textarg:owner}, j.owner)

-- name: steps_of_job
select t.label, count(*), t.no from {outlast.step} s
join {outlast.task} t on t.tenant = s.tenant and t.job_id = s.job_id and t.no = s.no
where s.tenant = :tenant and s.job_id = :job_id and s.name not like 'answer/%' group by t.label, t.no order by t.no

-- name: rerun_source
-- What a rerun copies.
select j.state, j.outcome, j.kind, j.schema_version, j.owner, {str:j.effect_root}, {str:i.input}, {str:i.caller},
  j.target_ref, j.target_version
from {outlast.job} j join {outlast.job_input} i on i.tenant = j.tenant and i.job_id = j.id
where j.tenant = :tenant and j.id = :job_id and j.owner = coalesce({textarg:owner}, j.owner)

-- name: clock
select {now_ms}

-- name: unfinished_handlers
-- For doctor: what waits, runs or needs attention, by handler, and since when the oldest of its jobs is there.
select t.handler, count(*), {now_ms} - min({ms:j.accepted_at})
from {outlast.task} t join {outlast.job} j on j.tenant = t.tenant and j.id = t.job_id
where t.state in ('open', 'blocked', 'needs_attention') group by t.handler order by t.handler
