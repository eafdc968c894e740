-- Schedules: made, shown, paused and removed by their owners, fired by workers.

-- name: schedule_to_change
-- A schedule as its owner defined it, locked; nothing returned: there is none.
select kind, schema_version, {str:input}, {str:caller}, {str:rule}, catch_up, {ms:made_at}, {ms:next_at},
  case when paused_at is null then 0 else 1 end, {now_ms}
from {outlast.schedule} where tenant = :tenant and owner = :owner and name = :name {for_update}

-- name: make_schedule
-- Nothing returned: somebody made one of that name meanwhile.
insert into {outlast.schedule} (tenant, owner, name, version, kind, schema_version, input, caller, rule, catch_up, made_at, next_at)
values (:tenant, :owner, :name, 1, :kind, :schema_version, :input, :caller, :rule, :catch_up, {at:made_at}, {at:next_at})
on conflict do nothing
returning name

-- name: change_schedule
-- The row is locked. A pause stays.
update {outlast.schedule} set version = version + 1, kind = :kind, schema_version = :schema_version, input = :input, caller = :caller,
  rule = :rule, catch_up = :catch_up, made_at = {at:made_at}, next_at = {at:next_at}, code = null
where tenant = :tenant and owner = :owner and name = :name
returning name

-- name: pause_schedule
-- The row is locked. Nothing returned: it is paused already.
update {outlast.schedule} set version = version + 1, paused_at = {now}, paused_by = :actor
where tenant = :tenant and owner = :owner and name = :name and paused_at is null
returning name

-- name: resume_schedule
-- The row is locked. What fell due in the pause was not missed.
update {outlast.schedule} set version = version + 1, paused_at = null, paused_by = null, next_at = {at:next_at}
where tenant = :tenant and owner = :owner and name = :name and paused_at is not null
returning name

-- name: remove_schedule
-- Nothing returned: there is none.
delete from {outlast.schedule} where tenant = :tenant and owner = :owner and name = :name
returning name

-- name: schedule_list
-- Of one owner, of a tenant, or of all; of one name or of all.
select tenant, owner, name, kind, {str:rule}, catch_up, {ms:next_at}, {ms:paused_at}, paused_by, {ms:last_due_at}, {str:last_job_id}, code
from {outlast.schedule}
where ({textarg:tenant} is null or tenant = {textarg:tenant}) and ({textarg:owner} is null or owner = {textarg:owner})
  and ({textarg:name} is null or name = {textarg:name})
order by tenant, owner, name

-- name: due_schedules
-- Those whose time has come, from a given one on, in the order in which they fell due.
select tenant, owner, name, version, kind, schema_version, {str:input}, {str:caller}, {str:rule}, catch_up, {ms:made_at}, {ms:next_at}, {now_ms}
from {outlast.schedule}
where paused_at is null and next_at <= {now_once} and (next_at, tenant, owner, name) > ({at:after}, :tenant, :owner, :name)
order by next_at, tenant, owner, name limit :limit

-- name: next_schedule
-- Milliseconds until the next schedule falls due; no row where none waits.
select {ms:next_at} - {now_ms} from {outlast.schedule}
where paused_at is null and next_at > {now_once} order by next_at, tenant, owner, name limit 1

-- name: lock_due_schedule
-- Nothing returned: another has it just now, fired, changed or paused it since it was read (each of which is another version), or what was
-- decided about it is too old.
select version from {outlast.schedule}
where tenant = :tenant and owner = :owner and name = :name and version = :version and {now} <= {at:until}
{skip_locked}

-- name: fire_schedule
-- The row is locked. A due time that was not made up for leaves the latest job as it was.
update {outlast.schedule} set version = version + 1, next_at = {at:next_at}, last_due_at = coalesce({at:due_at}, last_due_at),
  last_job_id = coalesce({uuid:job_id}, last_job_id), code = null
where tenant = :tenant and owner = :owner and name = :name and version = :version
returning name

-- name: note_schedule
-- Why it waits: it stays due, so what others decided about it stands. Nothing returned: another moved it on before, or it says so already.
update {outlast.schedule} set code = :code
where tenant = :tenant and owner = :owner and name = :name and version = :version and coalesce(code, '') <> :code
returning name

-- name: fail_schedule
-- The due time led to no job; nothing returned: another moved it on before.
update {outlast.schedule} set version = version + 1, next_at = {at:next_at}, code = :code
where tenant = :tenant and owner = :owner and name = :name and version = :version
returning name
