-- The effect ledger. A row of it is locked last, and who has it waits for nothing more.

-- name: effect_place
-- The holder's guard is on its own entry, which stays locked until the intent is committed. Nothing returned: read `entry`.
select {str:j.effect_root}, t.label
from (select tenant, job_id, no from {outlast.queue_entry}
  where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
    and lease_until > {now} and not revoked {for_update}) e
join {outlast.job} j on j.tenant = e.tenant and j.id = e.job_id
join {outlast.task} t on t.tenant = e.tenant and t.job_id = e.job_id and t.no = e.no

-- name: insert_effect
-- Nothing returned: the effect was met before; read `effect_of`.
insert into {outlast.effect} (tenant, effect_root, label, name, input_hash, job_id, no, fence, provider_key, state, timeout_ms, begun_at)
values (:tenant, {uuid:effect_root}, :label, :name, :input_hash, {uuid:job_id}, :no, :fence, :provider_key, 'intended', :timeout_ms, {now})
on conflict do nothing
returning name

-- name: effect_of
-- The effect, locked, with the milliseconds for which the call of its intent may still be under way.
select state, {str:job_id}, no, fence, provider_key, {str:outcome}, {ms:begun_at} + timeout_ms - {now_ms}
from {outlast.effect}
where tenant = :tenant and effect_root = {uuid:effect_root} and label = :label and name = :name and input_hash = :input_hash {for_update}

-- name: intend_effect
-- The intent is this claim's from now on: a clean repeat after a refusal, or one with the same key.
update {outlast.effect} set state = 'intended', job_id = {uuid:job_id}, no = :no, fence = :fence, timeout_ms = :timeout_ms,
  begun_at = {now}, settled_at = null, outcome = null
where tenant = :tenant and effect_root = {uuid:effect_root} and label = :label and name = :name and input_hash = :input_hash
  and state <> 'confirmed'
returning state

-- name: doubt_effect
-- Another claim met an intent without an outcome.
update {outlast.effect} set state = 'unknown'
where tenant = :tenant and effect_root = {uuid:effect_root} and label = :label and name = :name and input_hash = :input_hash
  and state = 'intended'
returning state

-- name: settle_effect
-- What became of a call. No word about lease, task or job: knowledge of the outside is never refused. That it happened is taken from
-- anybody; that it did not, or that nobody knows, only about the intent that still stands, for a later one may be under way.
update {outlast.effect} set state = {textarg:state}, outcome = {jsonarg:outcome},
  settled_at = case when {textarg:state} = 'unknown' then null else {now} end
where tenant = :tenant and effect_root = {uuid:effect_root} and label = :label and name = :name and input_hash = :input_hash
  and state in ('intended', 'unknown')
  and ({textarg:state} = 'confirmed' or (job_id = {uuid:job_id} and no = :no and fence = :fence))
returning state

-- name: effect_outcome
select state, {str:outcome} from {outlast.effect}
where tenant = :tenant and effect_root = {uuid:effect_root} and label = :label and name = :name and input_hash = :input_hash

-- name: judge_effect
-- The owner's word. A repeat that the owner accepts waits for an intent that is under way.
update {outlast.effect} set state = {textarg:state}, outcome = {jsonarg:outcome}, settled_at = {now}
where tenant = :tenant and effect_root = {uuid:effect_root} and label = :label and name = :name and input_hash = :input_hash
  and (state = 'unknown' or (state = 'intended' and {textarg:state} = 'confirmed'))
returning state

-- name: effects_in_doubt
-- Those of a job, and of what it repeats, that may have happened.
select f.label, f.name, f.state, {ms:f.begun_at} from {outlast.effect} f
where f.tenant = :tenant and f.state in ('intended', 'unknown')
  and f.effect_root = (select j.effect_root from {outlast.job} j where j.tenant = :tenant and j.id = :job_id)
order by f.begun_at, f.label, f.name, f.input_hash
