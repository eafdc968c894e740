-- breaking: no
-- Schedules: what is submitted when. A row is written by its owner, and by whoever fires it.

-- made_at: since when its rule holds, from which intervals count. next_at: the due time that is waited for. last_due_at, last_job_id: of the
-- latest job that came of it. code: why the latest due time led to none, or the one that is waited for has none yet. version: + 1 with each
-- change and each firing.
create table {outlast.schedule} (
  tenant {text} not null,
  owner {text} not null,
  name {text} not null,
  version {int} not null,
  kind {text} not null,
  schema_version {int} not null,
  input {json} not null,
  caller {json} not null,
  rule {json} not null,
  catch_up {int} not null,
  made_at {time} not null,
  next_at {time} not null,
  paused_at {time},
  paused_by {text},
  last_due_at {time},
  last_job_id {uuid},
  code {text},
  primary key (tenant, owner, name)
) {bodies};

create index {index.schedule_due} on {outlast.schedule} (next_at, tenant, owner, name) where paused_at is null;
