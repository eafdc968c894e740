-- How many open jobs of a kind an owner may have. Only admissions of kinds that have a quota come here.

-- name: hold_quota
-- Locks the row, which is made if need be; whether the jobs that were open before it are counted. On conflict it writes what is
-- there: an insert alone would not wait for who has the row, nor lock it.
insert into {outlast.quota} as q (tenant, owner, kind, counted) values (:tenant, :owner, :kind, false)
on conflict (tenant, owner, kind) do update set counted = q.counted
returning cast(counted as integer)

-- name: take_open_jobs
insert into {outlast.quota_job} (tenant, owner, kind, job_id)
select tenant, owner, kind, id from {outlast.job}
where tenant = :tenant and owner = :owner and kind = :kind and state in ('open', 'needs_attention')
on conflict do nothing

-- name: quota_counted
update {outlast.quota} set counted = true where tenant = :tenant and owner = :owner and kind = :kind

-- name: take_quota
insert into {outlast.quota_job} (tenant, owner, kind, job_id)
select tenant, owner, kind, id from {outlast.job} where tenant = :tenant and owner = :owner and id {among_ids:ids}

-- name: quota_used
select count(*) from {outlast.quota_job} where tenant = :tenant and owner = :owner and kind = :kind

-- name: free_quota
-- What has ended takes no room. PostgreSQL passes by what a purge is deleting.
delete from {outlast.quota_job} as q
where q.tenant = :tenant and q.owner = :owner and q.kind = :kind and not exists (select 1 from {outlast.job} j
  where j.tenant = q.tenant and j.id = q.job_id and j.state in ('open', 'needs_attention'))

-- name: quota_open
-- The `offset 0` keeps PostgreSQL from answering it by a hash of all jobs.
select count(*) from {outlast.quota_job} q
where q.tenant = :tenant and q.owner = :owner and q.kind = :kind and exists (select 1 from {outlast.job} j
  where j.tenant = q.tenant and j.id = q.job_id and j.state in ('open', 'needs_attention') limit 1 offset 0)
