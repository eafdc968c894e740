-- What PostgreSQL does in one statement, for a batch, where SQLite takes several.

-- name: admit
-- A row for each job admitted. Missing: its key (or, keyless, its id) was taken, or another job has its unique key; read who has it
-- in a second statement, for this one's snapshot cannot see the winner. The OR keeps the look-up in `s` from becoming a join, so that rows go in by key order.
with r as materialized (
  select * from unnest(:tenants::text[], :owners::text[], :keys::text[], :fingerprints::text[], :ids::uuid[], :kinds::text[],
    :versions::bigint[], :labels::text[], :totals::bigint[], :requireds::bigint[], :usables::boolean[], :reruns::uuid[], :roots::uuid[],
    :correlations::text[], :traces::text[], :inputs::text[], :callers::text[], :scopes::text[], :actives::text[],
    :target_refs::text[], :target_versions::text[])
    as r(tenant, owner, key, fingerprint, id, kind, version, label, total, required, usable, rerun, root, correlation, trace, input, caller,
      scope, active, target_ref, target_version)
  order by tenant collate "C", owner collate "C", key collate "C", id),
s as (
  insert into {outlast.submission} (tenant, owner, key, fingerprint, job_id)
  select tenant, owner, key, fingerprint, id from r where key is not null
  on conflict do nothing returning job_id),
j as (
  insert into {outlast.job} (tenant, id, owner, kind, schema_version, label, state, version, total, open, required_open, attention,
    problems, usable_marked, accepted_at, rerun_of, effect_root, correlation_id, traceparent, active_scope, active_key,
    target_ref, target_version)
  select tenant, id, owner, kind, version, label, 'open', 1, total, total, required, 0, 0, usable, {now}, rerun, root, correlation, trace,
    scope, active, target_ref, target_version
  from r where key is null or id in (select job_id from s)
  order by tenant collate "C", scope collate "C", active collate "C", owner collate "C", key collate "C", id
  on conflict do nothing returning tenant, id),
i as (
  insert into {outlast.job_input} (tenant, job_id, input, caller)
  select tenant, id, input::json, caller::json from r where id in (select id from j)),
t as (
  insert into {outlast.task} (tenant, job_id, no, label, handler, queue, priority, required, usable, state, deps_left, fence, spent,
    max_attempts, base_ms, cap_ms, window_ms, deadline_ms, item, slot_key, slot_limit, not_before)
  select j.tenant, x.job_id, x.no, x.label, x.handler, x.queue, x.priority, x.required, x.usable,
    case when x.deps = 0 then 'open' else 'blocked' end, x.deps, 0, 0,
    x.max_attempts, x.base_ms, x.cap_ms, x.window_ms, x.deadline_ms, x.item::json, x.slot_key, x.slot_limit, to_timestamp(x.not_before / 1000.0)
  from unnest(:t_ids::uuid[], :t_nos::bigint[], :t_labels::text[], :t_handlers::text[], :t_queues::text[], :t_priorities::bigint[],
    :t_requireds::boolean[], :t_usables::boolean[], :t_deps::bigint[], :t_max_attempts::bigint[], :t_bases::bigint[], :t_caps::bigint[],
    :t_windows::bigint[], :t_deadlines::bigint[], :t_items::text[], :t_slot_keys::text[], :t_slot_limits::bigint[], :t_not_befores::bigint[])
    as x(job_id, no, label, handler, queue, priority, required, usable, deps, max_attempts, base_ms, cap_ms, window_ms, deadline_ms, item,
      slot_key, slot_limit, not_before)
  join j on j.id = x.job_id
  returning tenant, job_id, no, queue, priority, handler, deps_left, deadline_ms, slot_key, slot_limit, not_before),
d as (
  insert into {outlast.edge} (tenant, job_id, parent, child, soft)
  select j.tenant, x.job_id, x.parent, x.child, x.soft
  from unnest(:e_ids::uuid[], :e_parents::bigint[], :e_children::bigint[], :e_softs::boolean[]) as x(job_id, parent, child, soft)
  join j on j.id = x.job_id),
e as (
  insert into {outlast.queue_entry} (tenant, job_id, no, queue, priority, handler, ready_at, due_at, fence, spent, deadline_ms, revoked,
    slot_key, slot_limit)
  select tenant, job_id, no, queue, priority, handler,
    case when not_before is null or not_before <= {now} then {now} end, case when not_before > {now} then not_before end,
    0, 0, deadline_ms, false, slot_key, slot_limit
  from t where deps_left = 0)
select id::text from j

-- name: wake
with due as materialized (
  select ctid as place from {outlast.queue_entry}
  where ready_at is null and due_at is not null and due_at <= {now_once}
  order by due_at limit :limit for no key update skip locked)
update {outlast.queue_entry} e set ready_at = e.due_at from due where e.ctid = due.place and e.ready_at is null
returning e.queue

-- name: claim
with picked as materialized (
  select e.ctid as place from {outlast.queue_entry} e
  where e.queue = :queue and e.ready_at is not null and e.slot_key is null and e.holder is null and e.handler = any(:handlers::text[])
    and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
  order by e.priority, e.ready_at, e.tenant, e.job_id, e.no
  limit :limit for no key update of e skip locked),
held as (
  update {outlast.queue_entry} e set fence = e.fence + 1, holder = :holder, claimed_at = {now}, progress = null,
    lease_until = {now} + least(:lease_ms::bigint, e.deadline_ms) * interval '1 ms',
    deadline_at = {now} + e.deadline_ms * interval '1 ms'
  from picked p where e.ctid = p.place and e.holder is null
  returning e.tenant, e.job_id, e.no, e.fence, e.spent, e.handler, e.queue, e.deadline_ms, e.deadline_at, e.priority, e.ready_at,
    e.slot_key)
select h.tenant, h.job_id::text, h.no, h.fence, h.spent, h.handler, h.queue, h.deadline_ms, {ms:h.deadline_at},
  t.label, t.item::text, i.input::text, i.caller::text, j.owner, j.correlation_id, h.slot_key
from held h
join {outlast.task} t on t.tenant = h.tenant and t.job_id = h.job_id and t.no = h.no
join {outlast.job_input} i on i.tenant = h.tenant and i.job_id = h.job_id
join {outlast.job} j on j.tenant = h.tenant and j.id = h.job_id
order by h.priority, h.ready_at

-- name: renew
-- Rows that another holds are skipped: one task in a long finish must not hold up the leases of all the others.
with r as materialized (
  select * from unnest(:tenants::text[], :ids::uuid[], :nos::bigint[], :fences::bigint[], :holders::text[], :progress::text[])
    as r(tenant, job_id, no, fence, holder, progress)
  order by tenant collate "C", job_id, no),
l as materialized (
  select x.place, r.fence, r.holder, r.progress from r, lateral (
    select e.ctid as place from {outlast.queue_entry} e
    where e.tenant = r.tenant and e.job_id = r.job_id and e.no = r.no and e.fence = r.fence and e.holder = r.holder
      and e.lease_until > {now} and not e.revoked for no key update skip locked) x)
update {outlast.queue_entry} e set lease_until = least({now} + :lease_ms::bigint * interval '1 ms', e.deadline_at),
  progress = coalesce(l.progress, e.progress)
from l where e.ctid = l.place and e.fence = l.fence and e.holder = l.holder and e.lease_until > {now} and not e.revoked
returning e.tenant, e.job_id::text, e.no, e.fence

-- name: hand_back
-- Several at once, when a worker drains: rows that another holds are skipped, and handed back one by one.
with r as materialized (
  select * from unnest(:tenants::text[], :ids::uuid[], :nos::bigint[], :fences::bigint[], :holders::text[])
    as r(tenant, job_id, no, fence, holder)
  order by tenant collate "C", job_id, no),
l as materialized (
  select x.place, r.fence, r.holder from r, lateral (
    select e.ctid as place from {outlast.queue_entry} e
    where e.tenant = r.tenant and e.job_id = r.job_id and e.no = r.no and e.fence = r.fence and e.holder = r.holder
      and e.lease_until > {now} and not e.revoked for no key update skip locked) x),
e as (
  update {outlast.queue_entry} x set holder = null, lease_until = null, deadline_at = null, ready_at = {now}, due_at = null
  from l where x.ctid = l.place and x.fence = l.fence and x.holder = l.holder and x.lease_until > {now} and not x.revoked
  returning x.tenant, x.job_id, x.no, x.fence, x.slot_key),
s as ({freed})
select tenant, job_id::text, no, fence from e

-- name: release
-- Snooze and hand-back (T12, T13): as `release_entry`, and the slot is free.
with e as (
  update {outlast.queue_entry} set holder = null, lease_until = null, deadline_at = null,
    ready_at = case when :delay_ms::bigint is null then {now} end, due_at = {in:delay_ms}
  where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
    and lease_until > {now} and not revoked
  returning tenant, job_id, no, fence, queue, slot_key),
s as ({freed})
select queue from e

-- name: retry
with e as (
  update {outlast.queue_entry} set holder = null, lease_until = null, deadline_at = null, spent = spent + 1,
    first_failed_at = coalesce(first_failed_at, {now}), ready_at = null, due_at = {in:delay_ms}, code = :code::text
  where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence and holder = :holder
    and lease_until > {now} and not revoked
  returning tenant, job_id, no, fence, spent, claimed_at, queue, slot_key),
s as ({freed:pause_ms}),
a as (
  insert into {outlast.attempt} (tenant, job_id, no, fence, number, worker, started_at, ended_at, code, detail)
  select tenant, job_id, no, fence, spent, :worker::text, claimed_at, {now}, :code::text, :detail::text from e
  on conflict do nothing)
select queue from e

-- name: retry_lost
with e as (
  update {outlast.queue_entry} set holder = null, lease_until = null, deadline_at = null, spent = spent + 1,
    first_failed_at = coalesce(first_failed_at, {now}), ready_at = null, due_at = {in:delay_ms}, code = :code::text
  where tenant = :tenant and job_id = :job_id and no = :no and fence = :fence
    and holder is not null and lease_until <= {now} and not revoked
  returning tenant, job_id, no, fence, spent, claimed_at, queue, slot_key),
s as ({freed}),
a as (
  insert into {outlast.attempt} (tenant, job_id, no, fence, number, worker, started_at, ended_at, code, detail)
  select tenant, job_id, no, fence, spent, :worker::text, claimed_at, {now}, :code::text, :detail::text from e
  on conflict do nothing)
select queue from e

-- name: finish
-- A row for each result accepted, with the number of tasks that the statement opened; what is missing is refused: read `entry`.
-- `j` locks the job and then the entry by LATERAL, in key order, so that the guards are judged after the wait whatever the plan.
-- Counters are grouped: an UPDATE ... FROM that matches a row twice applies once.
with r as materialized (
  select * from unnest(:tenants::text[], :ids::uuid[], :nos::bigint[], :fences::bigint[], :holders::text[], :workers::text[],
    :bodies::text[], :refs::text[]) as r(tenant, job_id, no, fence, holder, worker, body, ref)
  order by tenant collate "C", job_id, no),
j as materialized (
  select r.* from r,
  lateral (select j.id from {outlast.job} j where j.tenant = r.tenant and j.id = r.job_id
    and j.state in ('open', 'needs_attention') for no key update) j,
  lateral (select from {outlast.queue_entry} x where x.tenant = r.tenant and x.job_id = j.id and x.no = r.no
    and x.fence = r.fence and x.holder = r.holder and x.lease_until > {now} and not x.revoked for no key update) x),
e as (
  delete from {outlast.queue_entry} x using j
  where x.tenant = j.tenant and x.job_id = j.job_id and x.no = j.no and x.fence = j.fence and x.holder = j.holder
    and x.lease_until > {now} and not x.revoked
  returning x.tenant, x.job_id, x.no, x.fence, x.spent, x.claimed_at, x.slot_key, j.worker, j.body, j.ref),
s as ({freed}),
t as (
  update {outlast.task} t set state = 'completed', fence = e.fence, spent = e.spent, code = null, worker = e.worker,
    started_at = e.claimed_at, finished_at = {now}
  from e where t.tenant = e.tenant and t.job_id = e.job_id and t.no = e.no
  returning t.tenant, t.job_id, t.no, t.required, t.usable, e.ref),
o as (
  insert into {outlast.output} (tenant, job_id, no, body, ref) select tenant, job_id, no, body::json, ref from e),
d as (
  update {outlast.task} k set deps_left = k.deps_left - g.n, state = case when k.deps_left = g.n then 'open' else k.state end
  from (select x.tenant, x.job_id, x.child, count(*) as n from t
    join {outlast.edge} x on x.tenant = t.tenant and x.job_id = t.job_id and x.parent = t.no group by 1, 2, 3) g
  where k.tenant = g.tenant and k.job_id = g.job_id and k.no = g.child and k.state = 'blocked'
  returning k.tenant, k.job_id, k.no, k.queue, k.priority, k.handler, k.fence, k.spent, k.deadline_ms, k.slot_key, k.slot_limit, k.not_before, k.deps_left),
de as (
  insert into {outlast.queue_entry} (tenant, job_id, no, queue, priority, handler, ready_at, due_at, fence, spent, deadline_ms, revoked,
    slot_key, slot_limit)
  select tenant, job_id, no, queue, priority, handler,
    case when not_before is null or not_before <= {now} then {now} end, case when not_before > {now} then not_before end,
    fence, spent, deadline_ms, false, slot_key, slot_limit
  from d where deps_left = 0 returning 1),
c as (
  select tenant, job_id, count(*) as n, count(*) filter (where required) as rq, min(no) filter (where usable) as us,
    (array_agg(ref order by no) filter (where usable))[1] as usable_ref
  from t group by 1, 2 order by 1, 2),
u as (
  update {outlast.job} j set open = j.open - c.n, required_open = j.required_open - c.rq, version = j.version + 1,
    state = {job_state:j.cancelled_at|j.open - c.n|j.attention},
    usable_at = case when j.usable_at is not null then j.usable_at
      when c.us is not null or (not j.usable_marked and j.required_open > 0 and j.required_open = c.rq) then {now} end,
    usable_ref = case when j.usable_at is null and c.us is not null then c.usable_ref else j.usable_ref end,
    finished_at = case when j.open = c.n then {now} end,
    outcome = case when j.open = c.n then case when j.problems = 0 then 'succeeded' else 'succeeded_with_problems' end end,
    purge_at = case when j.open = c.n then {in:retention_ms} end,
    active_key = case when j.open > c.n then j.active_key end
  from c where j.tenant = c.tenant and j.id = c.job_id)
select e.tenant, e.job_id::text, e.no, (select count(*) from de) from e

-- name: keyed_rooms
-- The keys of a queue behind a place, one probe of their index each, with the limits of the tasks that wait first and the state of their
-- slots; the last one tells where to go on. Nothing is locked.
with recursive walk(tenant, key) as (
  (select e.tenant, e.slot_key from {outlast.queue_entry} e
    where e.queue = :queue and e.ready_at is not null and e.slot_key is not null and (e.tenant, e.slot_key) > (:tenant::text, :key::text)
    order by e.tenant, e.slot_key limit 1)
  union all
  select n.tenant, n.slot_key from walk w, lateral (
    select e.tenant, e.slot_key from {outlast.queue_entry} e
    where e.queue = :queue and e.ready_at is not null and e.slot_key is not null and (e.tenant, e.slot_key) > (w.tenant, w.key)
    order by e.tenant, e.slot_key limit 1) n)
select k.tenant, k.key, f.slot_limit,
  (select count(*) from {outlast.slot} s where s.tenant = k.tenant and s.key = k.key and s.n <= f.slot_limit),
  (select count(*) from {outlast.slot} s where s.tenant = k.tenant and s.key = k.key and s.n <= f.slot_limit and s.job_id is not null),
  (select coalesce(max({ms:s.not_before} - {now_ms}), 0) from {outlast.slot} s where s.tenant = k.tenant and s.key = k.key)
from (select tenant, key from walk limit :keys) k
left join lateral (
  select w.slot_limit, min(w.i) as i from (
    select e.slot_limit, row_number() over (order by e.priority, e.ready_at, e.job_id, e.no) as i from {outlast.queue_entry} e
    where e.queue = :queue and e.tenant = k.tenant and e.slot_key = k.key and e.ready_at is not null and e.slot_key is not null
      and e.holder is null and e.handler = any(:handlers::text[])
      and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
    order by e.priority, e.ready_at, e.job_id, e.no limit :window) w
  group by w.slot_limit) f on true
order by k.tenant, k.key, f.i

-- name: claim_keyed
-- For each key, as many free slots as are wanted, and as many waiting tasks as slots were got; rows that others have are passed by, and
-- what finds no partner is let go. Nothing waits here.
with k as materialized (
  select * from unnest(:tenants::text[], :keys::text[], :limits::bigint[], :takes::bigint[]) with ordinality
    as k(tenant, key, slot_limit, take, turn)),
f as materialized (
  select k.tenant, k.key, k.slot_limit, k.turn, array_agg(x.n) as ns from k, lateral (
    select s.n from {outlast.slot} s
    where s.tenant = k.tenant and s.key = k.key and s.n <= k.slot_limit and s.job_id is null
      and not exists (select 1 from {outlast.slot} p where p.tenant = k.tenant and p.key = k.key and p.not_before > {now})
    order by s.n desc limit k.take for no key update of s skip locked) x
  group by 1, 2, 3, 4),
p as materialized (
  select x.place, f.turn, f.ns[row_number() over (partition by f.turn order by x.priority, x.ready_at, x.job_id, x.no)] as n
  from f, lateral (
    select e.ctid as place, e.priority, e.ready_at, e.job_id, e.no from {outlast.queue_entry} e
    where e.queue = :queue and e.tenant = f.tenant and e.slot_key = f.key and e.ready_at is not null and e.slot_key is not null
      and e.slot_limit = f.slot_limit and e.holder is null and e.handler = any(:handlers::text[])
      and not exists (select 1 from {outlast.queue} q where q.name = :queue and q.paused_at is not null)
    order by e.priority, e.ready_at, e.job_id, e.no
    limit cardinality(f.ns) for no key update of e skip locked) x),
held as (
  update {outlast.queue_entry} e set fence = e.fence + 1, holder = :holder, claimed_at = {now}, progress = null,
    lease_until = {now} + least(:lease_ms::bigint, e.deadline_ms) * interval '1 ms',
    deadline_at = {now} + e.deadline_ms * interval '1 ms'
  from p where e.ctid = p.place and e.holder is null
  returning e.tenant, e.job_id, e.no, e.fence, e.spent, e.handler, e.queue, e.deadline_ms, e.deadline_at, e.slot_key, p.n, p.turn),
taken as (
  update {outlast.slot} s set job_id = h.job_id, no = h.no, fence = h.fence, not_before = null
  from held h where s.tenant = h.tenant and s.key = h.slot_key and s.n = h.n)
select h.tenant, h.job_id::text, h.no, h.fence, h.spent, h.handler, h.queue, h.deadline_ms, {ms:h.deadline_at},
  t.label, t.item::text, i.input::text, i.caller::text, j.owner, j.correlation_id, h.slot_key
from held h
join {outlast.task} t on t.tenant = h.tenant and t.job_id = h.job_id and t.no = h.no
join {outlast.job_input} i on i.tenant = h.tenant and i.job_id = h.job_id
join {outlast.job} j on j.tenant = h.tenant and j.id = h.job_id
order by h.turn, h.n desc

-- name: free_quota
-- A purge has its rows in another order, so none that it holds is waited for.
with ended as materialized (
  select q.ctid as place from {outlast.quota_job} q
  where q.tenant = :tenant and q.owner = :owner and q.kind = :kind and not exists (select 1 from {outlast.job} j
    where j.tenant = q.tenant and j.id = q.job_id and j.state in ('open', 'needs_attention') limit 1 offset 0)
  for no key update of q skip locked)
delete from {outlast.quota_job} q using ended e where q.ctid = e.place

-- name: delete_jobs
-- Jobs that are locked, with all that is theirs alone. `is true` as in `lock_due`.
with tasks as (delete from {outlast.task} where tenant = :tenant and job_id {among_ids:ids}),
attention as (delete from {outlast.attention} where tenant = :tenant and job_id {among_ids:ids}),
outputs as (delete from {outlast.output} where tenant = :tenant and job_id {among_ids:ids}),
steps as (delete from {outlast.step} where tenant = :tenant and job_id {among_ids:ids}),
attempts as (delete from {outlast.attempt} where tenant = :tenant and job_id {among_ids:ids}),
edges as (delete from {outlast.edge} where tenant = :tenant and job_id {among_ids:ids}),
inputs as (delete from {outlast.job_input} where tenant = :tenant and job_id {among_ids:ids}),
counted as (delete from {outlast.quota_job} where tenant = :tenant and job_id {among_ids:ids})
delete from {outlast.job} where id {among_ids:ids} and (tenant = :tenant) is true
returning id::text

-- name: drop_expired
-- Materialized: as a sub-query it may be run again for each row, and each time takes other ones.
with over as materialized (
  select ctid as place from {outlast.submission}
  where expires_at is not null and expires_at <= {now_once}
  order by expires_at limit :limit for no key update skip locked)
delete from {outlast.submission} s using over where s.ctid = over.place and s.expires_at <= {now}
returning s.key

-- name: drop_idle_slots
-- Materialized, as in `drop_expired`.
with idle as materialized (
  select ctid as place from {outlast.slot}
  where job_id is null and freed_at <= {in:ago_ms} and (not_before is null or not_before <= {now})
  order by tenant, key, n limit :limit for no key update skip locked)
delete from {outlast.slot} s using idle where s.ctid = idle.place and s.job_id is null
returning s.n

-- name: drop_tombstones
with left_over as materialized (
  select ctid as place from {outlast.submission}
  where tenant = :tenant and owner = :owner and purged_at is not null
  order by key limit :limit for no key update skip locked)
delete from {outlast.submission} s using left_over where s.ctid = left_over.place
returning s.key

-- name: whereabouts
-- In the form of SQLite's list. The instant at which the server started tells it from any other, whatever leads to it; whoever may
-- connect may read it.
select 0, 'main', extract(epoch from pg_catalog.pg_postmaster_start_time())::text || ' ' || d.oid::text,
  pg_catalog.to_regclass('{outlast.job}') is not null
from pg_catalog.pg_database d where d.datname = pg_catalog.current_database()
