-- breaking: yes
-- Concurrency keys: how many tasks of a tenant may run at once under one name. A slot is a row, for counting holders overshoots.

-- Rows 1..limit of a key, made by its first claim, taken and freed with the lease. job_id, no and fence are the claim that has it
-- (null: free). not_before, on any row of a key: none of its tasks starts before.
create table {outlast.slot} (
  tenant {text} not null,
  key {text} not null,
  n {int} not null,
  job_id {uuid},
  no {int},
  fence {int},
  not_before {time},
  freed_at {time} not null,
  primary key (tenant, key, n)
) {keyed:50};

create index {index.slot_holder} on {outlast.slot} (tenant, job_id, no) where job_id is not null;

alter table {outlast.task} add column slot_key {text};
alter table {outlast.task} add column slot_limit {int};
alter table {outlast.queue_entry} add column slot_key {text};
alter table {outlast.queue_entry} add column slot_limit {int};

-- What has a key waits in an index of its own, so that a thousand waiting for one full key are in nobody's way.
drop index {old_index:entry_claim};
create index {index.entry_claim} on {outlast.queue_entry} (queue, priority, ready_at, tenant, job_id, no)
  where ready_at is not null and slot_key is null;
create index {index.entry_keyed} on {outlast.queue_entry} (queue, tenant, slot_key, priority, ready_at, job_id, no)
  where ready_at is not null and slot_key is not null;
