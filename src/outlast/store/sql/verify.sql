-- What `outlast verify` reads: the rows of a page of jobs, table by table, and what lies beside the jobs. Nothing here writes.
--
-- The columns are those of `domain/soundness/rows.py`, in that order. A page is a range of keys, so that memory stays bounded and each
-- table is read along its own key; rows of no job are left out, for `verify_orphans`.

-- name: verify_jobs
select j.tenant, {str:j.id}, j.state, j.outcome, j.version, j.total, j.open, j.required_open, j.attention, j.problems,
  cast(j.usable_marked as integer), {ms:j.usable_at}, j.usable_ref, {ms:j.finished_at}, {ms:j.purge_at}, {ms:j.cancelled_at}, j.cancelled_by,
  {str:j.rerun_of}, {str:j.effect_root}, j.active_scope, j.active_key, j.target_ref, j.target_version, {ms:j.attached_at}, {ms:j.taken_over_at}
from {outlast.job} j
where (j.tenant, j.id) > (:tenant, {uuid:job_id})
order by j.tenant, j.id limit :limit

-- name: verify_inputs
select x.tenant, {str:x.job_id}, count(*) from {outlast.job_input} x
where {verify_range:x}
group by x.tenant, x.job_id

-- name: verify_tasks
select x.tenant, {str:x.job_id}, x.no, x.label, x.handler, x.queue, x.priority, cast(x.required as integer), cast(x.usable as integer),
  x.state, x.deps_left, x.fence, x.spent, x.max_attempts, x.deadline_ms, {ms:x.started_at}, {ms:x.finished_at}, x.worker,
  x.slot_key, x.slot_limit
from {outlast.task} x
where {verify_range:x}

-- name: verify_entries
select x.tenant, {str:x.job_id}, x.no, x.queue, x.priority, x.handler, x.deadline_ms, {ms:x.ready_at}, {ms:x.due_at}, x.fence, x.spent,
  {ms:x.first_failed_at}, x.holder, {ms:x.claimed_at}, {ms:x.lease_until}, {ms:x.deadline_at}, cast(x.revoked as integer),
  x.slot_key, x.slot_limit
from {outlast.queue_entry} x
where {verify_range:x}

-- name: verify_slots
-- Those that are taken. There are no more slots than keys in use allow, however many jobs there are.
select x.tenant, {str:x.job_id}, x.no, x.fence, x.key, x.n from {outlast.slot} x
where x.job_id is not null and {verify_range:x}

-- name: verify_edges
select x.tenant, {str:x.job_id}, x.parent, x.child, cast(x.soft as integer) from {outlast.edge} x
where {verify_range:x}

-- name: verify_outputs
select x.tenant, {str:x.job_id}, x.no, x.ref, cast(x.parked as integer) from {outlast.output} x
where {verify_range:x}

-- name: verify_attempts
select x.tenant, {str:x.job_id}, x.no, x.fence, x.number, x.worker, x.code from {outlast.attempt} x
where {verify_range:x}

-- name: verify_steps
select x.tenant, {str:x.job_id}, x.no, count(*), min(x.fence), max(x.fence) from {outlast.step} x
where {verify_range:x}
group by x.tenant, x.job_id, x.no

-- name: verify_questions
select x.tenant, {str:x.job_id}, x.id, x.no, x.code, x.actions, {ms:x.resolved_at}, x.action, x.actor from {outlast.attention} x
where {verify_range:x}

-- name: verify_effects
-- With what job, task and entry say about its place.
select f.tenant, {str:f.effect_root}, f.label, f.name, f.input_hash, {str:f.job_id}, f.no, f.fence, f.provider_key, f.state,
  case when f.outcome is null then 0 else 1 end, {ms:f.settled_at}, {str:j.effect_root}, t.label, coalesce(e.fence, t.fence)
from {outlast.effect} f
left join {outlast.job} j on j.tenant = f.tenant and j.id = f.job_id
left join {outlast.task} t on t.tenant = f.tenant and t.job_id = f.job_id and t.no = f.no
left join {outlast.queue_entry} e on e.tenant = f.tenant and e.job_id = f.job_id and e.no = f.no
where (f.tenant, f.effect_root, f.label, f.name, f.input_hash) > (:tenant, {uuid:effect_root}, :label, :name, :input_hash)
order by f.tenant, f.effect_root, f.label, f.name, f.input_hash limit :limit

-- name: verify_orphans
-- By table and job, rows whose job is not there. The key of a purged job is for `verify_tombstones`; an effect may outlive the job whose claim it names, but not all jobs of its root.
select x.tenant, {str:x.job_id}, 'a row of job_input' from {outlast.job_input} x where {verify_jobless:x}
union all select x.tenant, {str:x.job_id}, 'a row of task' from {outlast.task} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of queue_entry' from {outlast.queue_entry} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of edge' from {outlast.edge} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of output' from {outlast.output} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of attempt' from {outlast.attempt} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of step' from {outlast.step} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of attention' from {outlast.attention} x where {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a slot' from {outlast.slot} x
  where x.job_id is not null and {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of quota_job' from {outlast.quota_job} x where {verify_jobless:x}
union all select x.tenant, {str:x.job_id}, 'a row of submission' from {outlast.submission} x
  where x.purged_at is null and {verify_jobless:x} group by x.tenant, x.job_id
union all select x.tenant, {str:x.job_id}, 'a row of effect' from {outlast.effect} x where {verify_jobless:x}
  and not exists (select 1 from {outlast.job} r where r.tenant = x.tenant and r.effect_root = x.effect_root)
limit :limit

-- name: verify_twins
-- Ids that two tenants have.
select min(tenant), {str:id} from {outlast.job} group by id having count(*) > 1 limit :limit

-- name: verify_keys
-- Unique keys that two jobs have.
select tenant, min({str:id}) from {outlast.job} where active_key is not null
group by tenant, active_scope, active_key having count(*) > 1 limit :limit

-- name: verify_half_slots
-- Slots without a job that name something of a claim. Those that name a job are read with it.
select tenant, '', 'slot ' || n || ' of a key names a claim, and no job' from {outlast.slot}
where job_id is null and (no is not null or fence is not null)
order by tenant, key, n limit :limit

-- name: verify_tombstones
-- Keys whose job is gone and that say too little of it, and keys whose job is there and that say it is gone.
select x.tenant, {str:x.job_id}, 'its job is gone, and the key says not how it ended, or not until when it answers' from {outlast.submission} x
where {verify_jobless:x} and x.purged_at is not null and (x.expires_at is null or x.finished_at is null or case x.final_state
    when 'completed' then coalesce(x.outcome, '') not in ('succeeded', 'succeeded_with_problems')
    when 'cancelled' then coalesce(x.outcome, '') not in ('user', 'abandoned', 'superseded')
    else true end)
union all select x.tenant, {str:x.job_id}, 'its job is there, and the key says that it was purged' from {outlast.submission} x
where (coalesce(x.purged_at, x.expires_at, x.finished_at) is not null or coalesce(x.final_state, x.outcome) is not null)
  and exists (select 1 from {outlast.job} j where j.tenant = x.tenant and j.id = x.job_id)
limit :limit

-- name: verify_key_owners
-- Keys of jobs that are there, under another owner: their own owner would not get the job by it.
select x.tenant, {str:x.job_id} from {outlast.submission} x
join {outlast.job} j on j.tenant = x.tenant and j.id = x.job_id
where j.owner <> x.owner limit :limit

-- name: verify_counted
-- Jobs counted by a quota that is not theirs, or by none. Those that are gone are for `verify_orphans`.
select q.tenant, {str:q.job_id}, case when j.owner <> q.owner then 'it is counted for another owner'
  when j.kind <> q.kind then 'it is counted as another kind' else 'it is counted, and by no quota' end
from {outlast.quota_job} q join {outlast.job} j on j.tenant = q.tenant and j.id = q.job_id
where j.owner <> q.owner or j.kind <> q.kind or not exists (
  select 1 from {outlast.quota} u where u.tenant = q.tenant and u.owner = q.owner and u.kind = q.kind)
limit :limit

-- name: verify_quotas
select tenant, '' from {outlast.quota} where not counted limit :limit

-- name: verify_records
-- What operators did, with something of it missing; a person's deletion keeps no name.
select tenant, '', case when action = 'forget' and substr(subject, 1, 7) <> 'sha256:' then 'the record of a deletion names somebody'
  else 'a record lacks who did it, what, or why' end
from {outlast.audit}
where actor = '' or action = '' or subject = '' or reason = '' or (action = 'forget' and substr(subject, 1, 7) <> 'sha256:')
limit :limit

-- name: verify_schedules
-- A schedule's latest job may be purged; one that is there is its owner's.
select s.tenant, {str:s.last_job_id}, case when s.last_due_at is null then 'the latest job of a schedule, without its due time'
  else 'the latest job of a schedule of another owner' end
from {outlast.schedule} s
where s.last_job_id is not null and (s.last_due_at is null or exists (
  select 1 from {outlast.job} j where j.id = s.last_job_id and (j.tenant <> s.tenant or j.owner <> s.owner)))
limit :limit

-- name: verify_pauses
select tenant, '', case when paused_at is null then 'not paused, and somebody paused it'
  when paused_by is null then 'paused, and by nobody' else 'makes up for fewer due times than none' end
from {outlast.schedule}
where (paused_at is null) <> (paused_by is null) or catch_up < 0
limit :limit

-- name: verify_file
-- What the store itself says about its files; only SQLite has something to say.
select '' where false limit {bigint:limit}
