-- The statements of a relay on an outbox. {p} is a parameter, {outlast.outbox} the table, {now} the database's clock in milliseconds.
-- A row is named by its number and the time of its insert: numbers start anew where a table is emptied.

-- name: probe
-- Fails where the table, or a column, is missing.
select seq, created_at, code, detail, tries, due_at, parked_at, id, tenant, owner, roles, claims, kind, version, input, target_ref, target_version,
  unique_key, unique_policy, not_before, correlation_id
from {outlast.outbox}
where 1 = 0

-- name: read
-- The oldest rows that may be tried now. An input that is too large is left out; any other text that is becomes an empty one, which none may be.
select seq, created_at, tries, {size:input},
  case when {size:input} <= {p} then input end,
  {short:id}, {short:tenant}, {short:owner}, {long:roles}, {long:claims}, {short:kind}, version, {short:target_ref}, {short:target_version},
  {short:unique_key}, {short:unique_policy}, not_before, {short:correlation_id}
from {outlast.outbox}
where parked_at is null and (due_at is null or due_at <= {now})
order by seq
limit {p}

-- name: remove
-- Zero rows: another relay was quicker, or it is another row by now.
delete from {outlast.outbox} where seq = {p} and created_at = {p}

-- name: put_off
-- Zero rows: as for remove.
update {outlast.outbox} set code = {p}, detail = null, tries = tries + 1, due_at = {now} + {p} where seq = {p} and created_at = {p}

-- name: park
-- Zero rows: as for remove.
update {outlast.outbox} set code = {p}, detail = {p}, tries = tries + 1, parked_at = {now} where seq = {p} and created_at = {p}

-- name: standing
-- 0: waits; 1: is put off; 2: is parked.
select case when code is null then 0 when parked_at is null then 1 else 2 end, code, count(*), {now} - min(created_at)
from {outlast.outbox}
group by 1, 2
order by 1, 2

-- name: parked
-- The oldest of those that are parked.
select seq, {short:id}, code, detail
from {outlast.outbox}
where parked_at is not null
order by seq
limit {p}

-- name: may_remove
-- Changes nothing; fails where it is not allowed.
delete from {outlast.outbox} where 1 = 0

-- name: may_mark
-- As for may_remove.
update {outlast.outbox} set code = null, detail = null, tries = tries + 1, due_at = null, parked_at = null where 1 = 0

-- name: release
-- Of all codes, or of one.
update {outlast.outbox} set parked_at = null, due_at = null, code = null, detail = null, tries = 0
where code is not null and code = coalesce({p}, code)
