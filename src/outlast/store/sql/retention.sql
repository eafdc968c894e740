-- What becomes of jobs that are no longer kept. A purge takes job rows by SKIP LOCKED; rows of a job are deleted by who has its job row.

-- name: walk_jobs
-- A stretch of the jobs in the order of their ids, which is that of time: those that are due, and the last one that was looked at. No
-- index names purge_at: with one, no final update of a job would be HOT.
select w.tenant, {str:w.id}, w.total, {ms:w.finished_at}, cast(w.due as integer), w.looked
from (
  select j.tenant, j.id, j.total, j.finished_at, coalesce(j.purge_at <= {now_once} or j.finished_at <= {in:older_ms}, false) as due,
    lead(j.id) over (order by j.id) as following, count(*) over () as looked
  from (select tenant, id, total, finished_at, purge_at from {outlast.job}
    where id > {uuid:after} and id < {uuid:before} order by id limit :limit) j) w
where w.due or w.following is null
order by w.id

-- name: lock_due
-- Final jobs that are due and that nobody holds a task of. No row where another has the job: a rerun of it, a takeover, another purge.
-- `is true` keeps the tenant out of the search: with it, a planner without statistics reads all jobs of the tenant by owner.
select {str:j.id}, {str:j.effect_root}, {ms:j.finished_at} from {outlast.job} j
where j.id {among_ids:ids} and (j.tenant = :tenant) is true and j.state in ('completed', 'cancelled')
  and (j.purge_at <= {now} or j.finished_at <= {in:older_ms})
  and not exists (select 1 from {outlast.queue_entry} e where e.tenant = j.tenant and e.job_id = j.id)
order by j.id {skip_locked}

-- name: bury_submissions
-- The keys of these jobs answer for them from now on, until the horizon is over.
update {outlast.submission} set purged_at = {now}, expires_at = {in:horizon_ms},
  final_state = (select j.state from {outlast.job} j where j.tenant = {outlast.submission}.tenant and j.id = {outlast.submission}.job_id),
  outcome = (select j.outcome from {outlast.job} j where j.tenant = {outlast.submission}.tenant and j.id = {outlast.submission}.job_id),
  finished_at = (select j.finished_at from {outlast.job} j where j.tenant = {outlast.submission}.tenant and j.id = {outlast.submission}.job_id)
where tenant = :tenant and job_id {among_ids:ids}
returning key

-- name: lock_effects
-- Of two that delete the last two jobs of a root, the second waits here; only its next statement sees that the first one's are gone.
select name from {outlast.effect} where tenant = :tenant and effect_root {among_ids:roots}
order by effect_root, label, name, input_hash {for_update}

-- name: delete_effects
-- Those of roots of which no job is left: neither the first one, nor any that repeats it.
delete from {outlast.effect} where tenant = :tenant and effect_root {among_ids:roots}
  and not exists (select 1 from {outlast.job} j where j.tenant = {outlast.effect}.tenant and j.id = {outlast.effect}.effect_root)
  and not exists (select 1 from {outlast.job} j where j.tenant = {outlast.effect}.tenant and j.effect_root = {outlast.effect}.effect_root
    and j.rerun_of is not null)

-- name: tombstone_of
-- What is left of an owner's job that was purged.
select {str:job_id}, final_state, outcome, {ms:finished_at}, {ms:purged_at} from {outlast.submission}
where tenant = :tenant and job_id = {uuid:job_id} and owner = :owner and purged_at is not null and expires_at > {now} limit 1

-- name: drop_outlived
-- A key whose horizon is over is free, also before the purge comes by.
delete from {outlast.submission} where tenant = :tenant and owner = :owner and key = :key and expires_at <= {now}

-- name: drop_expired
-- Tombstones whose horizon is over, the oldest first. PostgreSQL overrides it, and `drop_tombstones`.
delete from {outlast.submission}
where (tenant, owner, key) in (
  select tenant, owner, key from {outlast.submission}
  where expires_at is not null and expires_at <= {now_once} order by expires_at limit :limit)
  and expires_at <= {now}
returning key

-- name: expired_count
select count(*) from {outlast.submission} where expires_at is not null and expires_at <= {now_once}

-- name: jobs_of_person
-- A stretch of a person's jobs, the newest first.
select {str:id} from {outlast.job} where tenant = :tenant and owner = :owner and id < {uuid:before} order by id desc limit :limit

-- name: lock_jobs_of_person
-- In a statement of its own, in key order: only the next statement's snapshot sees what the last holders committed.
select {str:id}, state, {str:effect_root} from {outlast.job}
where id {among_ids:ids} and (tenant = :tenant) is true and (owner = :owner) is true order by id {for_update}

-- name: jobs_held
-- Of these jobs, those of which somebody still holds a task.
select distinct {str:job_id} from {outlast.queue_entry} where tenant = :tenant and job_id {among_ids:ids}

-- name: drop_submissions
delete from {outlast.submission} where tenant = :tenant and job_id {among_ids:ids}
returning key

-- name: drop_tombstones
-- What is left of a person's jobs that were purged.
delete from {outlast.submission}
where (tenant, owner, key) in (
  select tenant, owner, key from {outlast.submission}
  where tenant = :tenant and owner = :owner and purged_at is not null order by key limit :limit)
returning key

-- name: drop_quotas
-- What says how many open jobs of a kind a person has, once the person has none. Whoever admits one makes it anew.
delete from {outlast.quota}
where tenant = :tenant and owner = :owner and not exists (select 1 from {outlast.job} j
  where j.tenant = {outlast.quota}.tenant and j.owner = {outlast.quota}.owner)
returning kind

-- name: count_jobs_of_person
select count(*), coalesce(sum(case when state in ('open', 'needs_attention') then 1 else 0 end), 0),
  (select count(*) from {outlast.quota} where tenant = :tenant and owner = :owner)
from {outlast.job}
where tenant = :tenant and owner = :owner

-- name: count_tombstones
select count(*) from {outlast.submission} where tenant = :tenant and owner = :owner and purged_at is not null

-- name: count_audit
-- The record of an action is written before it, and counts what it took away in the transactions that do.
update {outlast.audit} set jobs = coalesce(jobs, 0) + :jobs where id = {uuid:id}
