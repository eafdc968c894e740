-- breaking: no
-- Quotas: how many open jobs of a kind an owner may have. Pausing a queue needs no table that is not there already.

-- One row for each owner and kind under a quota: whoever admits such a job locks it first, so that no two count the same room.
-- counted: the jobs that were open before there was a quota stand in `quota_job` too.
create table {outlast.quota} (
  tenant {text} not null,
  owner {text} not null,
  kind {text} not null,
  counted {bool} not null,
  primary key (tenant, owner, kind)
) {keyed:50};

-- The jobs that take up room, and perhaps some that have ended: those go when the room seems to be used up, not when they end.
create table {outlast.quota_job} (
  tenant {text} not null,
  owner {text} not null,
  kind {text} not null,
  job_id {uuid} not null,
  primary key (tenant, job_id)
) {keyed:100};

create index {index.quota_job_place} on {outlast.quota_job} (tenant, owner, kind, job_id);
