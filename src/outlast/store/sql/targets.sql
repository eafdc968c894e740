-- Attach, park and takeover: beside the job's state, and after it too.

-- name: target_of
select target_ref, target_version, cast(taken_over_at is not null as integer) from {outlast.job} where tenant = :tenant and id = :job_id

-- name: attach_target
-- The job's own guard, in the transaction that changed the target. Nothing returned: another attach came first, or a takeover.
update {outlast.job} set target_version = :version, attached_at = {now}
where tenant = :tenant and id = :job_id and target_version = :expected and taken_over_at is null and state in ('open', 'needs_attention')
returning version

-- name: park_output
update {outlast.output} set parked = true where tenant = :tenant and job_id = :job_id and no = :no
returning no

-- name: take_over
update {outlast.job} set taken_over_at = {now}, version = version + 1
where tenant = :tenant and id = :job_id and taken_over_at is null
returning version

-- name: parked_output
select {str:o.body}, t.handler from {outlast.job} j
join {outlast.output} o on o.tenant = j.tenant and o.job_id = j.id
join {outlast.task} t on t.tenant = o.tenant and t.job_id = o.job_id and t.no = o.no
where j.tenant = :tenant and j.id = :job_id and j.owner = :owner and o.no = :no and o.parked

-- name: unpark_output
update {outlast.output} set parked = null where tenant = :tenant and job_id = :job_id and no = :no and parked
returning no

-- name: attached_by_owner
update {outlast.job} set target_version = :version, attached_at = {now}, version = version + 1
where tenant = :tenant and id = :job_id
returning version
