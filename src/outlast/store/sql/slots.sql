-- The slots of concurrency keys: rows 1..limit of a key, each free or of one claim. Who holds the entry may write its slot, and a claim a free one.

-- name: make_slots
-- Those of a key that are not there yet, in their order; it may wait for another that makes them, holding nothing else.
with recursive s(n) as (select cast(1 as bigint) union all select n + 1 from s where n < {bigint:slot_limit})
insert into {outlast.slot} (tenant, key, n, freed_at)
select {textarg:tenant}, {textarg:key}, n, {now} from s where true
on conflict do nothing

-- name: free_slot
-- With the lease that ends in the same transaction, once. The key rests for `pause_ms`, if that is given.
update {outlast.slot} set job_id = null, no = null, fence = null, freed_at = {now}, not_before = coalesce({in:pause_ms}, not_before)
where tenant = :tenant and key = :key and job_id = {uuid:job_id} and no = :no and fence = :fence
returning n

-- name: drop_idle_slots
-- Those that nobody has used for long, of keys that may never come again; the next claim of such a key makes them anew.
delete from {outlast.slot} where (tenant, key, n) in (
  select tenant, key, n from {outlast.slot}
  where job_id is null and freed_at <= {in:ago_ms} and (not_before is null or not_before <= {now})
  order by tenant, key, n limit :limit {skip_locked})
  and job_id is null
returning n
